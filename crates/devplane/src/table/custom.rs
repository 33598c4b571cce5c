//! Columns of CRDs. Never here: kinds of Kubernetes.

use jiff::Timestamp;
use serde_json::Value;

use super::path::Path;
use super::{age, heading, name_heading};
use crate::kinds::Column;

/// A column after the name.
pub(super) struct Cell {
    column: Column,
    path: Path,
}

/// The columns of a kind, its age where it names none.
pub(super) fn cells(columns: &[Column]) -> Vec<Cell> {
    let age = || Column {
        name: "Age".into(),
        kind: "date".into(),
        format: String::new(),
        description: "Time since the object was made.".into(),
        priority: 0,
        path: ".metadata.creationTimestamp".into(),
    };
    let columns = if columns.is_empty() { vec![age()] } else { columns.to_vec() };
    columns.into_iter().map(|column| Cell { path: Path::new(&column.path), column }).collect()
}

pub(super) fn headings(cells: &[Cell]) -> Value {
    let columns = cells.iter().map(|Cell { column, .. }| {
        let description = match column.description.as_str() {
            "" => format!("Value of {}", column.path),
            given => given.to_owned(),
        };
        heading(&column.name, &column.kind, &column.format, column.priority, &description)
    });
    std::iter::once(name_heading(0)).chain(columns).collect()
}

pub(super) fn values(cells: &[Cell], object: &Value, now: Timestamp) -> Vec<Value> {
    let values = cells.iter().map(|cell| {
        let found = cell.path.first(object);
        found.and_then(|found| value(&cell.column.kind, found, now)).unwrap_or_default()
    });
    std::iter::once(object["metadata"]["name"].as_str().unwrap_or_default().into()).chain(values).collect()
}

/// A value in a column of a type; what is of another type is not shown.
fn value(kind: &str, found: &Value, now: Timestamp) -> Option<Value> {
    match kind {
        "integer" => found.as_i64().or_else(|| whole(found.as_f64()?.trunc())).map(Value::from),
        "number" => found.is_number().then(|| found.clone()),
        "boolean" => found.is_boolean().then(|| found.clone()),
        "date" => found.is_string().then(|| age::since(found, now).into()),
        _ => Some(text(found).into()),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()).and_then(whole) {
            Some(whole) => whole.to_string(),
            None => number.to_string(),
        },
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A number without a fraction.
fn whole(number: f64) -> Option<i64> {
    if number.fract() == 0.0 { format!("{number:.0}").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn column(kind: &str, path: &str) -> Column {
        Column {
            name: "C".into(),
            kind: kind.into(),
            format: String::new(),
            description: String::new(),
            priority: 1,
            path: path.into(),
        }
    }

    #[test]
    fn a_value_is_shown_as_the_type_of_its_column_says() {
        let now: Timestamp = "2024-01-01T00:05:00Z".parse().unwrap();
        let object = json!({"metadata": {"name": "n"}, "spec": {
            "s": "text", "e": "", "i": 7, "f": 1.5, "big": 12_345_678_901_i64, "w": 2.0, "t": true, "num": "12",
            "o": {"b": 1, "a": [1, "x", null]}, "z": null,
            "d": "2024-01-01T00:00:00Z", "dx": "junk", "future": "2099-01-01T00:00:00Z",
        }});
        let rows = [
            ("string", "s", json!("text")),
            ("string", "e", json!("")),
            ("string", "i", json!("7")),
            ("string", "f", json!("1.5")),
            ("string", "big", json!("12345678901")),
            ("string", "w", json!("2")),
            ("string", "t", json!("true")),
            ("string", "o", json!(r#"{"a":[1,"x",null],"b":1}"#)),
            ("string", "z", json!("<no value>")),
            ("string", "missing", json!(null)),
            ("integer", "i", json!(7)),
            ("integer", "f", json!(1)),
            ("integer", "w", json!(2)),
            ("integer", "num", json!(null)),
            ("integer", "t", json!(null)),
            ("integer", "z", json!(null)),
            ("number", "i", json!(7)),
            ("number", "f", json!(1.5)),
            ("number", "s", json!(null)),
            ("boolean", "t", json!(true)),
            ("boolean", "i", json!(null)),
            ("date", "d", json!("5m")),
            ("date", "dx", json!("<invalid>")),
            ("date", "future", json!("<invalid>")),
            ("date", "e", json!("<unknown>")),
            ("date", "i", json!(null)),
            ("date", "missing", json!(null)),
        ];
        for (kind, field, expected) in rows {
            let cells = cells(&[column(kind, &format!(".spec.{field}"))]);
            assert_eq!(values(&cells, &object, now), [json!("n"), expected], "{kind} {field}");
        }
    }

    #[test]
    fn a_kind_without_columns_shows_its_age() {
        let now: Timestamp = "2024-01-01T00:05:00Z".parse().unwrap();
        let object = json!({"metadata": {"name": "n", "creationTimestamp": "2024-01-01T00:00:00Z"}});
        let cells = cells(&[]);
        assert_eq!(values(&cells, &object, now), [json!("n"), json!("5m")]);
        let age = &headings(&cells)[1];
        assert_eq!(
            (&age["name"], &age["type"], &age["priority"]),
            (&json!("Age"), &json!("date"), &json!(0))
        );
    }

    #[test]
    fn a_column_is_named_as_its_crd_says() {
        let given = Column { description: "hi".into(), format: "byte".into(), ..column("string", ".spec.a") };
        let headings = headings(&cells(&[given, column("date", ".spec.b")]));
        assert_eq!(headings[0]["format"], "name");
        assert_eq!(
            headings[1],
            json!({"name": "C", "type": "string", "format": "byte", "priority": 1, "description": "hi"})
        );
        assert_eq!(headings[2]["description"], "Value of .spec.b");
    }
}
