//! Whole objects inside of objects. Never here: their fields.

use serde_json::{Map, Value};

use super::{Schema, names};
use crate::status::FieldError;

/// What is wrong with `apiVersion`, `kind` and `metadata` of embedded resources.
pub(super) fn check(schema: &Schema, value: &Value, path: &mut String, errors: &mut Vec<FieldError>) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                resource(fields, path, errors);
            }
            for (name, value) in fields {
                let Some(of_field) = schema.field(name).filter(|field| field.below.embedded) else {
                    continue;
                };
                if schema.properties.contains_key(name) {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(name);
                } else {
                    path.push_str(&format!("[{name}]"));
                }
                check(of_field, value, path, errors);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(of_items) = schema.items.as_ref().filter(|items| items.below.embedded) else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                check(of_items, item, path, errors);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn resource(fields: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let mut text = |name: &str, wrong: &dyn Fn(&str) -> Vec<String>| {
        let path = format!("{path}.{name}");
        match fields.get(name) {
            None => errors.push(FieldError::required(path, "")),
            Some(value) => {
                let text = value.as_str().unwrap_or_default();
                let wrong = if text.is_empty() { vec!["must not be empty".to_owned()] } else { wrong(text) };
                errors.extend(wrong.into_iter().map(|detail| FieldError::invalid(&path, value, detail)));
            }
        }
    };
    text("apiVersion", &|text| {
        if text.matches('/').count() > 1 {
            vec![format!("unexpected GroupVersion string: {text}")]
        } else {
            Vec::new()
        }
    });
    text("kind", &|text| {
        let wrong = names::label_1035(&text.to_lowercase());
        wrong
            .into_iter()
            .map(|why| format!("may have mixed case, but should otherwise match: {why}"))
            .collect()
    });
    if let Some(metadata) = fields.get("metadata") {
        self::metadata(metadata, &format!("{path}.metadata"), errors);
    }
}

fn metadata(metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut push = |field: &str, value: &str, wrong: Vec<String>| {
        let path = format!("{path}.{field}");
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&path, &value.into(), why)));
    };
    if let Some(namespace) = metadata["namespace"].as_str().filter(|namespace| !namespace.is_empty()) {
        push("namespace", namespace, names::label_1123(namespace));
    }
    for (field, has_limits) in [("labels", true), ("annotations", false)] {
        for (key, value) in metadata[field].as_object().into_iter().flatten() {
            let name = if has_limits { key.clone() } else { key.to_lowercase() };
            push(field, key, names::qualified(&name));
            if let Some(value) = value.as_str().filter(|_| has_limits) {
                push(field, value, names::label_value(value));
            }
        }
    }
}
