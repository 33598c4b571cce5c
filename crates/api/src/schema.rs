//! What the CRD schemas need beyond the derive: shapes of foreign types, and facts that several fields share.
//!
//! Never here: types of the wire, and anything that the product needs at run time. This module exists with the feature
//! `schema` only, which `xtask` alone turns on.
//!
//! Field attributes say what the API server checks. Where the type that we decode into is more lenient than the
//! schema, it is so on purpose: objects stored before a rule existed must still be readable.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::names::authority;

/// Key of a mark on a field or validation rule: which feature gate it belongs to. The mark itself is not published;
/// what carries it is left out where the gate is off.
pub const GATE: &str = "x-feature-gate";

/// The gate of handing Machines over between the Machine API and Cluster API.
pub const MIGRATION: &str = "MachineAPIMigration";

/// A point in time.
pub fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// An object of which the API server looks at nothing and keeps everything.
pub fn free_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// How many of something: an integer of no stated width.
pub fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "minimum": 0})
}

/// A number or a text.
pub fn int_or_string(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true})
}

/// References to owners, one an identity.
pub fn owner_references(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
        "items": {
            "description": "An object that owns the object.",
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "required": ["apiVersion", "kind", "name", "uid"],
            "properties": {
                "apiVersion": {"type": "string", "description": "API group and version of the owner."},
                "blockOwnerDeletion": {
                    "type": "boolean",
                    "description": "Whether a foreground deletion of the owner waits until this object is gone."
                },
                "controller": {"type": "boolean", "description": "Whether the owner is the one that manages the object."},
                "kind": {"type": "string", "description": "Kind of the owner."},
                "name": {"type": "string", "description": "Name of the owner."},
                "uid": {"type": "string", "description": "Identity of the owner."}
            }
        }
    })
}

/// A list that server-side apply merges by the field `type`.
pub fn map_by_type(schema: &mut Schema) {
    map_by(schema, "type");
}

/// A list that server-side apply merges by the field `name`.
pub fn map_by_name(schema: &mut Schema) {
    map_by(schema, "name");
}

/// Which API a user wants to own an object.
pub fn spec_authority(schema: &mut Schema) {
    synchronized_api(schema);
    schema.insert("default".into(), authority::MACHINE_API.into());
}

/// Which API owns an object now.
pub fn status_authority(schema: &mut Schema) {
    schema.insert(GATE.into(), MIGRATION.into());
    schema
        .insert("enum".into(), json!([authority::MACHINE_API, authority::CLUSTER_API, authority::MIGRATING]));
    schema.insert(
        RULES.into(),
        json!([{
            "message": "The authoritativeAPI field must not transition directly from MachineAPI to ClusterAPI or vice \
                        versa. It must transition through Migrating.",
            "rule": "self == 'Migrating' || self == oldSelf || oldSelf == 'Migrating'",
        }]),
    );
}

/// Which API an object was last synchronised from.
pub fn synchronized_api(schema: &mut Schema) {
    schema.insert(GATE.into(), MIGRATION.into());
    schema.insert("enum".into(), json!([authority::MACHINE_API, authority::CLUSTER_API]));
}

/// A generation that was last synchronised.
pub fn synchronized_generation(schema: &mut Schema) {
    schema.insert(GATE.into(), MIGRATION.into());
    schema.insert("minimum".into(), 0.into());
}

/// Rules on the status of an object that can be handed over.
pub fn migration_rules(schema: &mut Schema) {
    schema.insert(
        RULES.into(),
        json!([
            {
                GATE: MIGRATION,
                "fieldPath": ".synchronizedGeneration",
                "message": "synchronizedGeneration must not decrease unless authoritativeAPI is transitioning from \
                            Migrating to another value",
                "reason": "FieldValueInvalid",
                "rule": "!has(oldSelf.synchronizedGeneration) || (has(self.synchronizedGeneration) && \
                         self.synchronizedGeneration >= oldSelf.synchronizedGeneration) || \
                         (oldSelf.authoritativeAPI == 'Migrating' && self.authoritativeAPI != 'Migrating')",
            },
            {
                GATE: MIGRATION,
                "message": "authoritativeAPI may not be removed once set",
                "rule": "has(self.authoritativeAPI) || !has(oldSelf.authoritativeAPI)",
            },
        ]),
    );
}

const RULES: &str = "x-kubernetes-validations";

fn map_by(schema: &mut Schema, key: &str) {
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), Value::from(vec![key]));
}
