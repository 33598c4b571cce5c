//! Patches of an object: JSON patch, merge patch, strategic merge patch. Never here: server-side apply.

mod decode;
mod json;
mod order;
mod spelling;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(crate) use decode::{decode_merge, decode_strategic};
pub(crate) use json::json;
pub(crate) use spelling::{literal, plain, type_name};
pub(crate) use strategic::strategic;

/// Applies a merge patch (RFC 7386).
///
/// Beyond the standard, and as Kubernetes does, what comes where no object was loses the nulls of objects inside its
/// lists, too.
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    match (&mut *object, patch) {
        (Value::Object(fields), Value::Object(patch)) => merge_fields(fields, patch),
        (Value::Object(_), _) => *object = patch.clone(),
        (_, _) => {
            *object = patch.clone();
            drop_nulls(object);
        }
    }
}

fn merge_fields(fields: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.as_str()).or_insert(Value::Null), value);
        }
    }
}

/// Takes out the fields that are null, at any depth. Items that are null stay.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
