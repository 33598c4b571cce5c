//! From a derived JSON schema to the structural schema of a CRD, in the form in which the kinds are published.
//!
//! Never here: what is true of one field or kind only; that is an attribute at its type.

use anyhow::{Context as _, bail, ensure};
use mapi_api::schema::GATE;
use serde_json::{Map, Value};

use super::FeatureSet;

type Schema = Map<String, Value>;

const RULES: &str = "x-kubernetes-validations";
const KEEP_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Brings a schema and everything in it into shape. Fails, naming the place, on what a structural schema cannot say.
pub fn normalise(schema: &mut Value, set: FeatureSet) -> anyhow::Result<()> {
    let schema = as_object(schema);
    unwrap_compositions(schema)?;
    unwrap_type(schema)?;
    schema.remove("title");
    schema.remove("$schema");
    join_lines(schema);
    drop_zero_default(schema);
    name_format(schema);
    open_or_close(schema);
    gate_rules(schema, set)?;
    properties(schema, set)?;
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            normalise(inner, set).with_context(|| format!("in {key}"))?;
        }
    }
    check_structural(schema)
}

/// `true` is the schema that anything meets.
fn as_object(schema: &mut Value) -> &mut Schema {
    if !schema.is_object() {
        *schema = Value::Object(Schema::new());
    }
    schema.as_object_mut().expect("it was made one above")
}

/// An `Option` is derived as "this or null", and an enum whose values are documented as one constant a value.
fn unwrap_compositions(schema: &mut Schema) -> anyhow::Result<()> {
    if schema.contains_key(INT_OR_STRING) {
        return Ok(());
    }
    for key in ["anyOf", "allOf", "oneOf"] {
        let Some(Value::Array(mut parts)) = schema.remove(key) else { continue };
        parts.retain(|part| part.get("type") != Some(&"null".into()));
        if parts.iter().all(|part| part.get("const").is_some() || part.get("enum").is_some()) {
            let values = parts.iter().flat_map(values).collect();
            schema.insert("type".into(), "string".into());
            schema.insert("enum".into(), Value::Array(values));
            continue;
        }
        let [Value::Object(part)] = parts.as_mut_slice() else {
            bail!("{key} has {} alternatives, a CRD can hold one", parts.len());
        };
        // What is said at the field comes before what is said at its type.
        for (name, value) in std::mem::take(part) {
            schema.entry(name).or_insert(value);
        }
    }
    Ok(())
}

fn values(part: &Value) -> Vec<Value> {
    let constant = part.get("const").cloned();
    part.get("enum")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
        .into_iter()
        .chain(constant)
        .collect()
}

fn unwrap_type(schema: &mut Schema) -> anyhow::Result<()> {
    if let Some(Value::Array(types)) = schema.get("type") {
        let types: Vec<_> = types.iter().filter(|name| **name != "null").cloned().collect();
        let [only] = types.as_slice() else { bail!("type is one of {types:?}, a CRD can hold one") };
        schema.insert("type".into(), only.clone());
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    Ok(())
}

/// Doc comments are broken into lines for the code's readers; only an empty line ends a paragraph.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text =
            text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
}

/// The derive takes over `serde(default)`. Absent means the same to us, and the server must not write such a value into
/// the objects of users.
fn drop_zero_default(schema: &mut Schema) {
    if schema.get("default").is_some_and(is_zero) {
        schema.remove("default");
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_zero),
    }
}

/// The API server knows the formats of signed integers only.
fn name_format(schema: &mut Schema) {
    let known = match schema.get("format").and_then(Value::as_str) {
        Some("int8" | "uint8" | "int16" | "uint16") => "int32",
        Some("uint32" | "uint64" | "uint" | "int") => "int64",
        _ => return,
    };
    schema.insert("format".into(), known.into());
}

/// A structural schema prunes what it does not know, unless it is told to keep everything.
fn open_or_close(schema: &mut Schema) {
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {
            schema.remove("additionalProperties");
        }
        Some(Value::Bool(true)) => {
            schema.remove("additionalProperties");
            schema.insert(KEEP_UNKNOWN.into(), true.into());
        }
        _ => {}
    }
    let says_nothing = !schema.contains_key("type") && !schema.contains_key(INT_OR_STRING);
    if says_nothing && !schema.contains_key("properties") {
        schema.insert(KEEP_UNKNOWN.into(), true.into());
    }
}

/// Whether a field or rule is part of a feature set. Takes its mark away.
fn is_on(schema: &mut Schema, set: FeatureSet) -> bool {
    match schema.remove(GATE) {
        Some(Value::String(gate)) => set.has(&gate),
        _ => true,
    }
}

fn gate_rules(schema: &mut Schema, set: FeatureSet) -> anyhow::Result<()> {
    let Some(rules) = schema.get_mut(RULES) else { return Ok(()) };
    let rules = rules.as_array_mut().context("validation rules are a list")?;
    rules.retain_mut(|rule| rule.as_object_mut().is_none_or(|rule| is_on(rule, set)));
    if rules.is_empty() {
        schema.remove(RULES);
    }
    Ok(())
}

fn properties(schema: &mut Schema, set: FeatureSet) -> anyhow::Result<()> {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return Ok(()) };
    properties.retain(|_, property| property.as_object_mut().is_none_or(|property| is_on(property, set)));
    for (name, property) in properties.iter_mut() {
        normalise(property, set).with_context(|| format!("in field `{name}`"))?;
    }
    let names: Vec<_> = properties.keys().cloned().collect();
    let Some(Value::Array(required)) = schema.get_mut("required") else { return Ok(()) };
    required.retain(|name| names.iter().any(|n| *name == **n));
    required.sort_by(|a, b| a.as_str().cmp(&b.as_str()));
    if required.is_empty() {
        schema.remove("required");
    }
    Ok(())
}

fn check_structural(schema: &Schema) -> anyhow::Result<()> {
    for key in ["$ref", "$defs", "const", "nullable", "patternProperties"] {
        ensure!(!schema.contains_key(key), "`{key}` cannot be in a CRD");
    }
    let is_typed = ["type", INT_OR_STRING, KEEP_UNKNOWN].iter().any(|key| schema.contains_key(*key));
    ensure!(is_typed, "the schema has no type");
    Ok(())
}
