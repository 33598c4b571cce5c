//! Values as messages of Kubernetes show them, which is how Go prints them. Never here: decisions.

use serde_json::{Number, Value};

/// As `%v` prints it: `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(value) => value.to_string(),
        Value::Number(value) => number(value),
        Value::String(value) => value.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(plain), " ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}:{}", plain(value)));
            format!("map[{}]", joined(fields, " "))
        }
    }
}

/// As `%#v` prints it: `map[string]interface {}{"a":1}`.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".into(),
        Value::Bool(_) | Value::Number(_) => plain(value),
        Value::String(_) => value.to_string(),
        Value::Array(items) => format!("[]interface {{}}{{{}}}", joined(items.iter().map(literal), ", ")),
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{}:{}", Value::from(&**name), literal(value)));
            format!("map[string]interface {{}}{{{}}}", joined(fields, ", "))
        }
    }
}

/// As `%T` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Go leaves out a fraction of 0, and writes very large and very small numbers with an exponent of two digits.
fn number(number: &Number) -> String {
    let Some(float) = number.as_f64().filter(|_| number.is_f64()) else { return number.to_string() };
    if float == 0.0 || (1e-4..1e21).contains(&float.abs()) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    parts.collect::<Vec<_>>().join(between)
}
