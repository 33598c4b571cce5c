//! Schemas for tests.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::schema::{ListType, Schema, Type};

/// A schema from what tests need of the JSON form.
pub(crate) fn schema(json: &Value) -> Schema {
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    let is = |name: &str| json.get(name) == Some(&Value::Bool(true));
    let part = |name: &str| json.get(name).map(|part| Arc::new(schema(part)));
    let properties = json.get("properties").and_then(Value::as_object).into_iter().flatten();
    let keys = json.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
    let strategies: Vec<&str> = text("x-kubernetes-patch-strategy").unwrap_or_default().split(',').collect();
    Schema {
        kind: text("type").map(kind),
        properties: properties.map(|(name, part)| (name.clone(), Arc::new(schema(part)))).collect(),
        additional: part("additionalProperties"),
        items: part("items"),
        default: json.get("default").cloned(),
        int_or_string: is("x-kubernetes-int-or-string"),
        preserve_unknown: is("x-kubernetes-preserve-unknown-fields"),
        list_type: match text("x-kubernetes-list-type") {
            Some("map") => ListType::Map,
            Some("set") => ListType::Set,
            _ => ListType::Atomic,
        },
        list_map_keys: keys.filter_map(Value::as_str).map(str::to_owned).collect(),
        is_atomic_map: text("x-kubernetes-map-type") == Some("atomic"),
        patch_merge: strategies.contains(&"merge"),
        patch_retain_keys: strategies.contains(&"retainKeys"),
        patch_merge_key: text("x-kubernetes-patch-merge-key").map(str::to_owned),
        ..Schema::default()
    }
}

fn kind(name: &str) -> Type {
    match name {
        "object" => Type::Object,
        "array" => Type::Array,
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        other => panic!("no type `{other}`"),
    }
}

/// `metadata`, as far as tests use it.
pub(crate) fn metadata() -> Value {
    let string = json!({ "type": "string" });
    let map = json!({ "type": "object", "additionalProperties": string });
    json!({ "type": "object", "properties": {
        "name": string, "namespace": string, "uid": string, "resourceVersion": string, "creationTimestamp": string,
        "labels": map, "annotations": map,
        "finalizers": {
            "type": "array", "items": string, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
        },
        "ownerReferences": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
            "items": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": string, "kind": string, "name": string, "uid": string,
            }},
        },
        "managedFields": { "type": "array", "items": { "type": "object" } },
    }})
}

/// A kind with a field of every sort.
pub(crate) fn thing() -> Schema {
    let string = json!({ "type": "string" });
    let strings =
        |list_type: &str| json!({ "type": "array", "items": string, "x-kubernetes-list-type": list_type });
    let structure = |fields: Value| json!({ "type": "object", "properties": fields });
    let pair = structure(json!({ "x": string, "y": string }));
    let spec = structure(json!({
        "replicas": { "type": "integer" }, "text": string, "flag": { "type": "boolean" },
        "port": { "x-kubernetes-int-or-string": true },
        "labels": { "type": "object", "additionalProperties": string },
        "pairs": { "type": "object", "additionalProperties": pair },
        "struct": structure(json!({ "x": string, "deep": structure(json!({ "z": string, "w": string })) })),
        "atomicMap": { "type": "object", "x-kubernetes-map-type": "atomic", "properties": { "a": string, "b": string } },
        "plain": strings("atomic"), "set": strings("set"),
        "numbers": { "type": "array", "items": { "type": "integer" }, "x-kubernetes-list-type": "set" },
        "items": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": structure(json!({ "name": string, "v": string, "w": string, "pair": pair })),
        },
        "ports": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["protocol", "port"],
            "items": structure(json!({
                "port": { "type": "integer" }, "protocol": { "type": "string", "default": "TCP" }, "v": string,
            })),
        },
        "any": { "x-kubernetes-preserve-unknown-fields": true },
    }));
    let status = structure(json!({ "phase": string, "replicas": { "type": "integer" } }));
    schema(&structure(json!({
        "apiVersion": string, "kind": string, "metadata": metadata(), "spec": spec, "status": status,
    })))
}
