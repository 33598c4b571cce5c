//! The schema of `metadata`, and what every object has. Never here: what metadata may say.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::{Components, Role, Schema, Type};

/// What the metadata of an object is made of; facts of the API `meta/v1`.
const OBJECT_META: &str = r##"{ "components": { "schemas": {
  "meta.v1.ObjectMeta": { "type": "object", "properties": {
    "annotations": { "type": "object", "additionalProperties": { "type": "string", "default": "" } },
    "creationTimestamp": { "type": "string", "format": "date-time" },
    "deletionGracePeriodSeconds": { "type": "integer", "format": "int64" },
    "deletionTimestamp": { "type": "string", "format": "date-time" },
    "finalizers": { "type": "array", "items": { "type": "string" },
      "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge" },
    "generateName": { "type": "string" },
    "generation": { "type": "integer", "format": "int64" },
    "labels": { "type": "object", "additionalProperties": { "type": "string", "default": "" } },
    "managedFields": { "type": "array", "x-kubernetes-list-type": "atomic",
      "items": { "$ref": "#/components/schemas/meta.v1.ManagedFieldsEntry" } },
    "name": { "type": "string" },
    "namespace": { "type": "string" },
    "ownerReferences": { "type": "array", "items": { "$ref": "#/components/schemas/meta.v1.OwnerReference" },
      "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
      "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid" },
    "resourceVersion": { "type": "string" },
    "selfLink": { "type": "string" },
    "uid": { "type": "string" } } },
  "meta.v1.ManagedFieldsEntry": { "type": "object", "properties": {
    "apiVersion": { "type": "string" },
    "fieldsType": { "type": "string" },
    "fieldsV1": { "type": "object" },
    "manager": { "type": "string" },
    "operation": { "type": "string" },
    "subresource": { "type": "string" },
    "time": { "type": "string", "format": "date-time" } } },
  "meta.v1.OwnerReference": { "type": "object", "x-kubernetes-map-type": "atomic",
    "required": ["apiVersion", "kind", "name", "uid"], "properties": {
    "apiVersion": { "type": "string" },
    "blockOwnerDeletion": { "type": "boolean" },
    "controller": { "type": "boolean" },
    "kind": { "type": "string" },
    "name": { "type": "string" },
    "uid": { "type": "string" } } } } } }"##;

/// The parts of metadata whose values a CRD may limit.
pub(super) const LIMITED: [&str; 2] = ["generateName", "name"];

/// The schema of `metadata` of kinds of CRDs.
pub(super) fn object_meta() -> &'static Arc<Schema> {
    static META: OnceLock<Arc<Schema>> = OnceLock::new();
    META.get_or_init(|| {
        let document: Value = serde_json::from_str(OBJECT_META).expect("the schema of metadata is JSON");
        let schema = Components::new(&document).schema("meta.v1.ObjectMeta").expect("it is there");
        Arc::new(Schema { role: Role::Metadata, ..Schema::clone(&schema) })
    })
}

/// Gives an object `apiVersion`, `kind` and `metadata`; what its own schema says of them limits them further.
pub(super) fn complete(object: &mut Schema) {
    for name in ["apiVersion", "kind"] {
        let text = || Arc::new(Schema { kind: Some(Type::String), ..Schema::default() });
        object.properties.entry(name.to_owned()).or_insert_with(text);
    }
    let own = object.properties.remove("metadata");
    let limits: Vec<(&str, Arc<Schema>)> = own
        .iter()
        .flat_map(|own| LIMITED.map(|name| (name, own.properties.get(name).cloned())))
        .filter_map(|(name, limit)| Some((name, limit?)))
        .collect();
    let metadata = if limits.is_empty() {
        Arc::clone(object_meta())
    } else {
        let mut metadata = Schema::clone(object_meta());
        metadata.properties.extend(limits.into_iter().map(|(name, limit)| (name.to_owned(), limit)));
        Arc::new(metadata)
    };
    object.properties.insert("metadata".to_owned(), metadata);
}
