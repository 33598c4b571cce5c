//! Lists whose items must differ, and which item of a list is which. Never here: what the items are.

use serde_json::{Map, Value};

use super::{ListType, Role, Schema};
use crate::status::{Fault, FieldError};

/// What is there more than once in sets and maps.
pub(super) fn check(schema: &Schema, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, value, &mut String::new(), &mut errors);
    errors
}

fn walk(schema: &Schema, value: &Value, path: &mut String, errors: &mut Vec<FieldError>) {
    let length = path.len();
    match value {
        Value::Array(items) => {
            match schema.list_type {
                ListType::Atomic => {}
                ListType::Set => doubles(items, path, errors),
                ListType::Map => {
                    let keys: Vec<Value> = items.iter().map(|item| key(schema, item)).collect();
                    doubles(&keys, path, errors);
                }
            }
            let Some(of_items) = schema.items.as_ref().filter(|items| items.below.lists) else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(of_items, item, path, errors);
                path.truncate(length);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let Some(of_field) = schema.field(name) else { continue };
                if !of_field.below.lists || of_field.role == Role::Metadata {
                    continue;
                }
                if schema.properties.contains_key(name) {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(name);
                } else {
                    path.push_str(&format!("[{name}]"));
                }
                walk(of_field, value, path, errors);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn doubles(items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].contains(item) {
            errors.push(FieldError::new(Fault::Duplicate, format!("{path}[{index}]"), item, ""));
        }
    }
}

/// What tells an item of a map from others.
fn key(schema: &Schema, item: &Value) -> Value {
    let named = |name: &String| item.get(name).map(|value| (name.clone(), value.clone()));
    Value::Object(schema.list_map_keys.iter().filter_map(named).collect::<Map<_, _>>())
}

/// The item of the list before that an item of the list now comes from. Only maps know.
pub(super) fn same<'a>(schema: &Schema, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
    if schema.list_type != ListType::Map {
        return None;
    }
    let is_same = |old: &&Value| schema.list_map_keys.iter().all(|key| old.get(key) == item.get(key));
    old?.as_array()?.iter().find(is_same)
}
