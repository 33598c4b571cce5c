//! The schema of a CRD as it is published. Never here: schemas of Kubernetes.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{LIST_META, OBJECT_META, component_name, reference};
use crate::kinds::Kind;
use crate::schema::{Checks, ListType, Role, Schema};

const API_VERSION: &str = "Version of the API that the object is written in.";
const OF_METADATA: &str = "Name, labels and the like.";
const KIND: &str = "Kind of the object.";

/// The component of a kind.
pub(super) fn component(kind: &Kind) -> Value {
    let mut component = describe(&kind.schema);
    component["properties"]["apiVersion"] = json!({"type": "string", "description": API_VERSION});
    component["properties"]["kind"] = json!({"type": "string", "description": KIND});
    component["properties"]["metadata"] = metadata(OBJECT_META, OF_METADATA);
    component["type"] = "object".into();
    component["x-kubernetes-group-version-kind"] = names(kind, &kind.kind);
    component
}

/// The component of the lists of a kind.
pub(super) fn list(kind: &Kind) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "description": format!("Objects of kind {}.", kind.kind),
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": metadata(LIST_META, "Revision of the list and where it continues."),
            "items": {"type": "array", "description": "The objects.", "items": reference(&component_name(kind))},
        },
        "x-kubernetes-group-version-kind": names(kind, &kind.list_kind),
    })
}

fn names(kind: &Kind, name: &str) -> Value {
    json!([{"group": kind.group, "version": kind.version, "kind": name}])
}

fn metadata(component: &str, description: &str) -> Value {
    json!({"description": description, "allOf": [reference(component)]})
}

fn describe(schema: &Schema) -> Value {
    if schema.role == Role::Metadata {
        return metadata(OBJECT_META, OF_METADATA);
    }
    let mut keywords = Map::new();
    let mut set = |name: &str, value: Value| {
        keywords.insert(name.to_owned(), value);
    };
    if let Some(kind) = schema.kind {
        set("type", kind.name().into());
    }
    if let Some(description) = &schema.description {
        set("description", description.as_str().into());
    }
    if !schema.properties.is_empty() {
        let fields = schema.properties.iter().map(|(name, field)| (name.clone(), describe(field)));
        set("properties", fields.collect::<Map<_, _>>().into());
    }
    if let Some(values) = &schema.additional {
        set("additionalProperties", describe(values));
    } else if schema.forbids_additional {
        set("additionalProperties", false.into());
    }
    if let Some(items) = &schema.items {
        set("items", describe(items));
    }
    let of_embedded = ["apiVersion", "kind"].into_iter().filter(|_| schema.embedded_resource);
    let required: BTreeSet<&str> = schema.required.iter().map(String::as_str).chain(of_embedded).collect();
    if !required.is_empty() {
        set("required", json!(required));
    }
    if let Some(default) = &schema.default {
        set("default", default.clone());
    }
    for (name, value) in facts(schema) {
        set(name, value);
    }
    if schema.int_or_string {
        set("anyOf", json!([{"type": "integer"}, {"type": "string"}]));
    }
    add_checks(&schema.checks, &mut keywords);
    keywords.into()
}

/// What Kubernetes adds to OpenAPI.
fn facts(schema: &Schema) -> Vec<(&'static str, Value)> {
    let flags = [
        ("nullable", schema.nullable),
        ("x-kubernetes-int-or-string", schema.int_or_string),
        ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown),
        ("x-kubernetes-embedded-resource", schema.embedded_resource),
    ];
    let mut facts: Vec<(&'static str, Value)> =
        flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name, true.into())).collect();
    match schema.list_type {
        ListType::Atomic => {}
        ListType::Set => facts.push(("x-kubernetes-list-type", "set".into())),
        ListType::Map => facts.push(("x-kubernetes-list-type", "map".into())),
    }
    if !schema.list_map_keys.is_empty() {
        facts.push(("x-kubernetes-list-map-keys", json!(schema.list_map_keys)));
    }
    if schema.is_atomic_map {
        facts.push(("x-kubernetes-map-type", "atomic".into()));
    }
    facts
}

/// Whole numbers without a fraction.
fn number(value: f64) -> Value {
    let whole = format!("{value:.0}");
    match whole.parse::<i64>() {
        Ok(number) if value.fract() == 0.0 => number.into(),
        Ok(_) | Err(_) => value.into(),
    }
}

fn add_checks(checks: &Checks, keywords: &mut Map<String, Value>) {
    let numbers =
        [("minimum", checks.minimum), ("maximum", checks.maximum), ("multipleOf", checks.multiple_of)];
    let counts = [
        ("minLength", checks.min_length),
        ("maxLength", checks.max_length),
        ("minItems", checks.min_items),
        ("maxItems", checks.max_items),
        ("minProperties", checks.min_properties),
        ("maxProperties", checks.max_properties),
    ];
    let flags = [
        ("exclusiveMinimum", checks.exclusive_minimum),
        ("exclusiveMaximum", checks.exclusive_maximum),
        ("uniqueItems", checks.unique_items),
    ];
    let lists = [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)];
    let numbers = numbers.into_iter().filter_map(|(name, value)| Some((name, number(value?))));
    let counts = counts.into_iter().filter_map(|(name, value)| Some((name, value?.into())));
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (name, true.into()));
    let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
    let lists = lists.map(|(name, list)| (name, list.iter().map(describe).collect()));
    let others = [
        ("enum", (!checks.r#enum.is_empty()).then(|| checks.r#enum.clone().into())),
        ("format", checks.format.as_deref().map(Value::from)),
        ("pattern", checks.pattern.as_ref().map(|pattern| pattern.text.as_str().into())),
        ("not", checks.not.as_deref().map(describe)),
    ];
    let others = others.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let all = numbers.chain(counts).chain(flags).chain(lists).chain(others);
    keywords.extend(all.map(|(name, value)| (name.to_owned(), value)));
}
