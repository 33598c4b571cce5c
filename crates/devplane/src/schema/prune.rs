//! Taking out of objects what their schema does not know. Never here: defaults, nulls.

use serde_json::{Map, Value};

use super::{Role, Schema};

/// Prunes, and names what is gone: first the fields of `metadata`, then those of the object, then those of the `metadata`
/// of embedded resources, each part in order.
pub(super) fn prune(schema: &Schema, value: &mut Value) -> Vec<String> {
    let mut pruner =
        Pruner { path: String::new(), plain: Vec::new(), metadata: Vec::new(), embedded: Vec::new() };
    pruner.value(schema, value, Place::Plain);
    if schema.role == Role::Root {
        for part in [&mut pruner.plain, &mut pruner.metadata, &mut pruner.embedded] {
            part.sort_unstable();
        }
    }
    let mut gone = pruner.metadata;
    gone.append(&mut pruner.plain);
    gone.append(&mut pruner.embedded);
    gone
}

/// Whose fields are being looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    Metadata,
    Embedded,
    EmbeddedMetadata,
}

struct Pruner {
    path: String,
    plain: Vec<String>,
    metadata: Vec<String>,
    embedded: Vec<String>,
}

impl Pruner {
    fn value(&mut self, schema: &Schema, value: &mut Value, place: Place) {
        match value {
            Value::Object(fields) => self.object(schema, fields, place),
            Value::Array(items) => {
                let Some(of_items) = &schema.items else { return };
                let length = self.path.len();
                for (index, item) in items.iter_mut().enumerate() {
                    if item.is_object() || item.is_array() {
                        self.path.push_str(&format!("[{index}]"));
                        self.value(of_items, item, place.within());
                        self.path.truncate(length);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, schema: &Schema, fields: &mut Map<String, Value>, place: Place) {
        let place = match schema.role {
            Role::Metadata if matches!(place, Place::Embedded) => Place::EmbeddedMetadata,
            Role::Metadata => Place::Metadata,
            Role::Root | Role::Plain | Role::Quantity if schema.embedded_resource => Place::Embedded,
            Role::Root | Role::Plain | Role::Quantity => place,
        };
        let length = self.path.len();
        fields.retain(|name, value| {
            let stays = match schema.field(name) {
                Some(of_field) => {
                    if value.is_object() || value.is_array() {
                        self.enter(name);
                        self.value(of_field, value, place);
                        self.path.truncate(length);
                    }
                    true
                }
                None => schema.preserve_unknown || schema.forbids_additional,
            };
            if !stays {
                self.enter(name);
                self.note(place);
                self.path.truncate(length);
            }
            stays
        });
    }

    fn enter(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }

    fn note(&mut self, place: Place) {
        let path = self.path.clone();
        match place {
            Place::Plain | Place::Embedded => self.plain.push(path),
            Place::Metadata => self.metadata.push(path),
            Place::EmbeddedMetadata => self.embedded.push(path),
        }
    }
}

impl Place {
    /// An item of a list of embedded resources is none by itself: its own schema says so.
    fn within(self) -> Place {
        match self {
            Place::Embedded => Place::Plain,
            Place::Plain | Place::Metadata | Place::EmbeddedMetadata => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;

    fn check(value: serde_json::Value, left: serde_json::Value, gone: &[&str]) {
        let spec = json!({
            "type": "object",
            "properties": {
                "known": { "type": "string" },
                "list": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } } },
                "map": {
                    "type": "object",
                    "additionalProperties": { "type": "object", "properties": { "n": { "type": "integer" } } },
                },
                "any_map": { "type": "object", "additionalProperties": true },
                "no_map": { "type": "object", "additionalProperties": false },
                "empty": { "type": "object" },
                "free": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": true,
                    "properties": { "k": { "type": "object", "properties": { "a": { "type": "string" } } } },
                },
                "anything": { "x-kubernetes-preserve-unknown-fields": true },
                "resource": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": true,
                    "properties": { "spec": { "type": "object", "properties": { "a": { "type": "string" } } } },
                },
            },
        });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let schema = Schema::of_crd(&schema, "schema").expect("the schema is right");
        let mut value = value;
        assert_eq!(schema.prune(&mut value), gone, "{left}");
        assert_eq!(value, left);
    }

    #[test]
    fn what_the_schema_does_not_know_is_taken_out_and_named() {
        check(json!({ "spec": { "known": "a" } }), json!({ "spec": { "known": "a" } }), &[]);
        check(json!({ "spec": { "foo": null }, "aoo": 1 }), json!({ "spec": {} }), &["aoo", "spec.foo"]);
        check(
            json!({ "spec": { "list": [{ "n": 1, "m": 2 }, 7] } }),
            json!({ "spec": { "list": [{ "n": 1 }, 7] } }),
            &["spec.list[0].m"],
        );
        check(
            json!({ "spec": { "map": { "a.b": { "n": 1, "y": 2 } } } }),
            json!({ "spec": { "map": { "a.b": { "n": 1 } } } }),
            &["spec.map.a.b.y"],
        );
        check(
            json!({ "spec": { "any_map": { "a": 1, "b": { "c": 1 } }, "no_map": { "x": 1 }, "empty": { "z": 1 } } }),
            json!({ "spec": { "any_map": { "a": 1, "b": {} }, "no_map": { "x": 1 }, "empty": {} } }),
            &["spec.any_map.b.c", "spec.empty.z"],
        );
    }

    #[test]
    fn what_is_to_be_preserved_stays_but_for_fields_with_schemas_of_their_own() {
        check(
            json!({ "spec": { "free": { "u": { "v": [null] }, "k": { "b": 1 } }, "anything": { "a": [1] } } }),
            json!({ "spec": { "free": { "u": { "v": [null] }, "k": {} }, "anything": { "a": [1] } } }),
            &["spec.free.k.b"],
        );
    }

    #[test]
    fn metadata_comes_first_and_that_of_embedded_resources_last() {
        let resource = json!({
            "apiVersion": "v1", "kind": "X", "metadata": { "name": "a", "foo": 1 }, "spec": { "b": 1 }, "z": 1,
        });
        check(
            json!({ "metadata": { "name": "x", "moo": 1, "labels": { "l": "v" } }, "spec": { "resource": resource }, "zoo": 1 }),
            json!({
                "metadata": { "name": "x", "labels": { "l": "v" } },
                "spec": { "resource": { "apiVersion": "v1", "kind": "X", "metadata": { "name": "a" }, "spec": {} } },
            }),
            &["metadata.moo", "spec.resource.spec.b", "spec.resource.z", "zoo", "spec.resource.metadata.foo"],
        );
    }
}
