//! Schemas against rows of text. What the rows say was asked of a real API server, whose type names with random numbers
//! are `selfType` here.

use std::fmt::Write as _;

use expect_test::{ExpectFile, expect_file};
use serde_json::{Map, Value, json};

use super::Schema;

/// Fields of `spec` with their schemas, an empty line, and rows, each with indented lines for what comes out.
struct Table {
    text: String,
    fields: Map<String, Value>,
    rows: Vec<String>,
}

impl Table {
    fn of(file: &ExpectFile) -> Table {
        let text = file.data();
        let (head, rows) = text.split_once("\n\n").unwrap_or(("", text.trim_start()));
        let field = |line: &str| {
            let (name, schema) = line.split_once(": ").expect("a name and a schema");
            (name.to_owned(), value(schema))
        };
        Table {
            fields: head.lines().map(field).collect(),
            rows: rows.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect(),
            text: if head.is_empty() { String::new() } else { format!("{head}\n\n") },
        }
    }

    fn schema(&self) -> Schema {
        let spec = json!({ "type": "object", "properties": self.fields });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        Schema::of_crd(&schema, "schema").unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    /// Writes each row with what comes out of it, and compares.
    fn check(mut self, file: ExpectFile, lines_of: impl Fn(&str) -> Vec<String>) {
        for row in &self.rows {
            writeln!(self.text, "{row}").expect("a string takes all");
            for line in lines_of(row).iter().flat_map(|text| text.lines()) {
                writeln!(self.text, "    {line}").expect("a string takes all");
            }
        }
        file.assert_eq(&self.text);
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn filled(schema: &Schema, spec: &str) -> Value {
    let mut object = json!({ "metadata": { "name": "x" }, "spec": value(spec) });
    schema.fill(&mut object);
    object
}

#[test]
fn values_are_refused_as_kubernetes_refuses_them() {
    let file = expect_file!["./values.txt"];
    let table = Table::of(&file);
    let schema = table.schema();
    table.check(file, |row| {
        schema.check(&filled(&schema, row), None).iter().map(ToString::to_string).collect()
    });
}

#[test]
fn rules_are_run_as_kubernetes_runs_them() {
    for file in [expect_file!["./rules.txt"], expect_file!["./functions.txt"]] {
        let table = Table::of(&file);
        let schema = table.schema();
        let errors = |row: &str| schema.check(&filled(&schema, row), None);
        table.check(file, |row| errors(row).iter().map(ToString::to_string).collect());
    }
}

#[test]
fn what_was_wrong_and_did_not_change_is_let_through() {
    let file = expect_file!["./updates.txt"];
    let table = Table::of(&file);
    let schema = table.schema();
    table.check(file, |row| {
        let (old, new) = row.split_once(" -> ").expect("what was and what is");
        // What was is as it was stored, when nothing was asked of it yet.
        let old = json!({ "metadata": { "name": "x" }, "spec": value(old) });
        let complaints = schema.check_and_warn(&filled(&schema, new), Some(&old));
        let warnings = complaints.warnings.iter().map(|warning| format!("warning {warning}"));
        complaints.errors.iter().map(ToString::to_string).chain(warnings).collect()
    });
}

#[test]
fn schemas_must_be_structural() {
    let file = expect_file!["./definitions.txt"];
    Table::of(&file).check(file, |row| {
        let schema = json!({ "type": "object", "properties": { "spec": value(row) } });
        let errors = Schema::of_crd(&schema, "schema").err().unwrap_or_default();
        let texts = errors.iter().map(ToString::to_string);
        texts
            .map(|text| text.replace("schema.properties[spec].", "").replace("schema.properties[spec]", ""))
            .collect()
    });
}

#[test]
fn expressions_must_make_sense() {
    let shown = regex::Regex::new(r#"Invalid value: \{"Rule":.*?"OptionalOldSelf":(null|true)\}: "#)
        .expect("it is right");
    let file = expect_file!["./expressions.txt"];
    let table = Table::of(&file);
    let fields = Value::Object(table.fields.clone());
    table.check(file, |row| {
        let spec =
            json!({ "type": "object", "properties": fields, "x-kubernetes-validations": [value(row)] });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let errors = Schema::of_crd(&schema, "schema").err().unwrap_or_default();
        let texts = errors.iter().map(|error| error.to_string());
        let short = |text: String| text.replace("schema.properties[spec].x-kubernetes-validations[0].", "");
        texts.map(|text| shown.replace_all(&short(text), "").into_owned()).collect()
    });
}

#[test]
fn rules_that_compare_items_need_keys_to_tell_them_apart() {
    let rule = json!([{ "rule": "self == oldSelf" }]);
    let item = json!({ "type": "string", "x-kubernetes-validations": rule });
    let keyed = json!({
        "type": "object", "required": ["k"], "properties": { "k": item }, "x-kubernetes-validations": rule,
    });
    let check = |spec: Value| {
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let errors = Schema::of_crd(&schema, "schema").err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let refused = "schema.properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self == oldSelf\": \
                   oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[spec]";
    assert_eq!(check(json!({ "type": "array", "items": item })), refused);
    assert_eq!(check(json!({ "type": "array", "x-kubernetes-list-type": "set", "items": item })), refused);
    let map = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": keyed,
    });
    assert_eq!(check(map), "");
    assert_eq!(check(json!({ "type": "object", "additionalProperties": item })), "");
}

#[test]
fn rules_of_the_whole_object_see_its_name_and_kind() {
    let rule = |rule: &str| json!({ "type": "object", "x-kubernetes-validations": [{ "rule": rule, "message": "no" }] });
    let object = |name: &str| json!({ "apiVersion": "g.io/v1", "kind": "K", "metadata": { "name": name, "labels": {} } });
    let schema = rule("self.metadata.name == 'a' && self.kind == 'K' && self.apiVersion == 'g.io/v1'");
    let schema = Schema::of_crd(&schema, "schema").expect("the rule makes sense");
    assert!(schema.check(&object("a"), None).is_empty());
    let errors = schema.check(&object("b"), None);
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), ["<nil>: Invalid value: no"]);
    let errors =
        Schema::of_crd(&rule("self.metadata.labels.size() == 1"), "schema").expect_err("labels are not seen");
    assert!(errors[0].detail.contains("undefined field 'labels'"), "{errors:?}");
}

#[test]
fn a_function_that_we_lack_makes_the_crd_invalid() {
    for (rule, name) in [("quantity(self.s).isInteger()", "quantity"), ("self.l.all(i, x, i > 0)", "all")] {
        let fields =
            json!({ "s": { "type": "string" }, "l": { "type": "array", "items": { "type": "string" } } });
        let schema =
            json!({ "type": "object", "properties": fields, "x-kubernetes-validations": [{ "rule": rule }] });
        let schema = json!({ "type": "object", "properties": { "spec": schema } });
        let errors = Schema::of_crd(&schema, "schema").expect_err(rule);
        let wanted = format!("undeclared reference to '{name}' (in container '')");
        assert!(errors[0].detail.contains(&wanted), "{errors:?}");
    }
}

#[test]
fn fields_that_rules_cannot_name_count_when_objects_are_compared() {
    let spec = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "x-kubernetes-validations": [{ "rule": "self == oldSelf", "message": "fixed" }],
    });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    let schema = Schema::of_crd(&schema, "schema").expect("the rule makes sense");
    let object = |spec: Value| json!({ "metadata": { "name": "x" }, "spec": spec });
    let (one, other) = (object(json!({ "a": { "b": [1] } })), object(json!({ "a": { "b": [2] } })));
    assert!(schema.check(&one, Some(&one)).is_empty());
    assert_eq!(schema.check(&other, Some(&one)).len(), 1);
}
