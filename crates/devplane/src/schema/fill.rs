//! Filling in defaults, and bringing values into the form in which Kubernetes gives them back. Never here: complaints.

use serde_json::{Map, Number, Value};

use super::{Role, Schema};

/// Whole numbers up to here are exact as floating point: 2 to the power of 53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Fills in defaults below a value and drops nulls that may not stay.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => object(schema, fields),
        Value::Array(items) => {
            for item in items {
                match &schema.items {
                    Some(of_items) => {
                        if let (Value::Null, false, Some(default)) =
                            (&*item, of_items.nullable, &of_items.default)
                        {
                            *item = default.clone();
                        }
                        fill(of_items, item);
                    }
                    None => whole(item),
                }
            }
        }
        Value::Number(number) if schema.role == Role::Quantity => *value = Value::String(number.to_string()),
        Value::Number(_) => whole(value),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn object(schema: &Schema, fields: &mut Map<String, Value>) {
    for (name, of_field) in &schema.properties {
        let Some(default) = &of_field.default else { continue };
        let missing = fields.get(name).is_none_or(|value| value.is_null() && !of_field.nullable);
        if missing {
            fields.insert(name.clone(), default.clone());
        }
    }
    fields.retain(|name, value| {
        let Some(of_field) = schema.field(name) else {
            whole(value);
            return true;
        };
        if value.is_null() && !of_field.nullable {
            match &of_field.default {
                Some(default) => *value = default.clone(),
                None if of_field.role == Role::Metadata => *value = Value::Object(Map::new()),
                // A value of any type may be null only where nobody knows the field.
                None => return false,
            }
        }
        fill(of_field, value);
        true
    });
}

/// Kubernetes writes 1.0 as 1, everywhere.
fn whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole_number(number) {
                *value = Value::Number(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(fields) => fields.values_mut().for_each(whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

fn whole_number(number: &Number) -> Option<Number> {
    if !number.is_f64() {
        return None;
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT)?;
    // Exact: whole and below 2 to the power of 53.
    Some(Number::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;

    /// Each case is laid over the defaults that are always there.
    fn check(spec: serde_json::Value, filled: serde_json::Value) {
        let properties = json!({
            "d": { "type": "string", "default": "D" },
            "dn": { "type": "string", "default": "D", "nullable": true },
            "o": {
                "type": "object",
                "properties": {
                    "x": { "type": "integer", "default": 1 },
                    "y": { "type": "object", "default": {}, "properties": { "z": { "type": "string", "default": "zz" } } },
                },
            },
            "od": {
                "type": "object",
                "default": { "q": 1 },
                "properties": { "q": { "type": "integer" }, "r": { "type": "integer", "default": 2 } },
            },
            "l": {
                "type": "array",
                "items": { "type": "object", "properties": { "a": { "type": "string", "default": "A" } } },
            },
            "ls": { "type": "array", "items": { "type": "string", "default": "I" } },
            "lsn": { "type": "array", "items": { "type": "string", "nullable": true } },
            "m": {
                "type": "object",
                "additionalProperties": { "type": "object", "properties": { "a": { "type": "string", "default": "A" } } },
            },
            "ms": { "type": "object", "additionalProperties": { "type": "string", "default": "I" } },
            "msn": { "type": "object", "additionalProperties": { "type": "string", "nullable": true } },
            "nn": { "type": "object", "properties": { "x": { "type": "string" } } },
            "free": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": { "ks": { "type": "string" } },
            },
        });
        let schema = json!({
            "type": "object",
            "properties": { "spec": { "type": "object", "properties": properties } },
        });
        let schema = Schema::of_crd(&schema, "schema").expect("the schema is right");
        let mut value = json!({ "spec": spec });
        schema.fill(&mut value);
        let mut all = json!({ "d": "D", "dn": "D", "od": { "q": 1, "r": 2 } });
        all.as_object_mut().expect("an object").extend(filled.as_object().expect("an object").clone());
        assert_eq!(value["spec"], all, "{spec}");
    }

    #[test]
    fn defaults_are_filled_in_where_a_field_is_missing_or_null() {
        check(json!({}), json!({}));
        check(json!({ "d": null }), json!({}));
        check(json!({ "dn": null }), json!({ "dn": null }));
        check(json!({ "o": {} }), json!({ "o": { "x": 1, "y": { "z": "zz" } } }));
        check(json!({ "o": { "y": null } }), json!({ "o": { "x": 1, "y": { "z": "zz" } } }));
        check(json!({ "od": null }), json!({}));
        check(json!({ "od": {} }), json!({ "od": { "r": 2 } }));
        check(json!({ "l": [{}] }), json!({ "l": [{ "a": "A" }] }));
        check(json!({ "ls": [null] }), json!({ "ls": ["I"] }));
        check(json!({ "m": { "a": {} } }), json!({ "m": { "a": { "a": "A" } } }));
        check(json!({ "ms": { "a": null } }), json!({ "ms": { "a": "I" } }));
    }

    #[test]
    fn nulls_stay_in_lists_and_where_they_are_allowed_or_nothing_is_known() {
        check(json!({ "o": null, "l": null, "nn": { "x": null } }), json!({ "nn": {} }));
        check(json!({ "l": [null] }), json!({ "l": [null] }));
        check(json!({ "lsn": [null] }), json!({ "lsn": [null] }));
        check(json!({ "m": { "a": null } }), json!({ "m": {} }));
        check(json!({ "msn": { "a": null } }), json!({ "msn": { "a": null } }));
        check(json!({ "free": { "n": null, "ks": null } }), json!({ "free": { "n": null } }));
    }

    #[test]
    fn whole_numbers_are_written_as_such() {
        check(
            json!({ "free": { "x": 1.0, "y": [1e3], "z": 1.5 } }),
            json!({ "free": { "x": 1, "y": [1000], "z": 1.5 } }),
        );
    }
}
