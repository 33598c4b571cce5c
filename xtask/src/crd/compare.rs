//! What differs between two CRDs, descriptions aside.
//!
//! Never here: tolerance for anything else. A difference that is meant is a change of the reference.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// One line a difference, `path: ours, theirs`. Descriptions of fields are our own words and are not compared; a field
/// that is named `description` is.
pub fn differences(ours: &Value, theirs: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare(&without_descriptions(ours), &without_descriptions(theirs), "", &mut found);
    found
}

fn without_descriptions(definition: &Value) -> Value {
    let mut definition = definition.clone();
    let versions = definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            strip(schema);
        }
    }
    definition
}

fn strip(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.remove("description");
    for property in
        schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        strip(property);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            strip(inner);
        }
    }
}

fn compare(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let missing = Value::Null;
                let path = format!("{path}.{key}");
                compare(a.get(key).unwrap_or(&missing), b.get(key).unwrap_or(&missing), &path, found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(a, b, &format!("{path}[{i}]"), found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: {ours}, {theirs}")),
    }
}
