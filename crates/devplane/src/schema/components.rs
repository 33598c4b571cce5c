//! Schemas of the kinds of Kubernetes, out of an OpenAPI v3 document. Never here: which kinds are served.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ListType, Role, Schema, parse};

/// A type with the default that it is used with, as JSON; empty for none.
type Use<'a> = (&'a str, String);

/// The types of a document, each made once, when it is first asked for.
pub(crate) struct Components<'a> {
    types: Option<&'a Map<String, Value>>,
    /// By name and default: where a type is used with a default of its own, it is another schema with the same children.
    /// `None` while the type is being made.
    made: RefCell<BTreeMap<Use<'a>, Option<Arc<Schema>>>>,
}

impl<'a> Components<'a> {
    /// The types under `components.schemas`.
    pub(crate) fn new(document: &'a Value) -> Self {
        let types = document["components"]["schemas"].as_object();
        Components { types, made: RefCell::default() }
    }

    /// A type by its name: `io.k8s.api.core.v1.Pod`.
    pub(crate) fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        let (name, json) = self.types?.get_key_value(name)?;
        Some(self.named(name, json, None))
    }

    fn named(&self, name: &'a str, json: &'a Value, default: Option<&Value>) -> Arc<Schema> {
        let key = (name, default.map(Value::to_string).unwrap_or_default());
        if let Some(made) = self.made.borrow().get(&key) {
            return made.clone().unwrap_or_else(|| Arc::new(opaque()));
        }
        let schema = if let Some(default) = default {
            let plain = self.named(name, json, None);
            Arc::new(Schema { default: Some(default.clone()), ..Schema::clone(&plain) })
        } else {
            self.made.borrow_mut().insert((name, String::new()), None);
            Arc::new(self.typed(name, json))
        };
        self.made.borrow_mut().insert(key, Some(Arc::clone(&schema)));
        schema
    }

    fn typed(&self, name: &str, json: &'a Value) -> Schema {
        let mut schema = self.inline(json);
        schema.type_name = Some(type_name(name).into());
        if name.ends_with(".resource.Quantity") {
            schema.role = Role::Quantity;
        }
        schema
    }

    fn child(&self, json: &'a Value) -> Arc<Schema> {
        let Some((target, own)) = reference(json) else { return Arc::new(self.inline(json)) };
        let Some((name, found)) = self.types.and_then(|types| types.get_key_value(target)) else {
            return Arc::new(opaque());
        };
        let schema = self.named(name, found, own.and_then(|own| own.get("default")));
        // What stands beside the reference and is no default limits the type in this one place.
        match own.filter(|own| own.keys().any(|key| !matches!(&**key, "allOf" | "default" | "description"))) {
            Some(own) => Arc::new(overlaid(&schema, own)),
            None => schema,
        }
    }

    fn inline(&self, json: &'a Value) -> Schema {
        let Some(json) = json.as_object() else { return opaque() };
        let mut schema = parse::plain(json);
        if let Some(properties) = json.get("properties").and_then(Value::as_object) {
            schema.properties =
                properties.iter().map(|(name, child)| (name.clone(), self.child(child))).collect();
        }
        schema.additional =
            json.get("additionalProperties").filter(|child| child.is_object()).map(|child| self.child(child));
        schema.items = json.get("items").map(|child| self.child(child));
        complete(&mut schema, json);
        schema
    }
}

/// What follows from what a type of Kubernetes says.
fn complete(schema: &mut Schema, json: &Map<String, Value>) {
    if schema.checks.format.as_deref() == Some("int-or-string") {
        schema.int_or_string = true;
        schema.kind = None;
        schema.checks.format = None;
    }
    let is_bare = schema.properties.is_empty() && schema.additional.is_none() && schema.items.is_none();
    if is_bare && matches!(schema.kind, None | Some(super::Type::Object)) && !schema.int_or_string {
        schema.preserve_unknown = true;
    }
    if schema.patch_merge && !json.contains_key("x-kubernetes-list-type") {
        match &schema.patch_merge_key {
            Some(key) => {
                schema.list_type = ListType::Map;
                schema.list_map_keys = vec![key.clone()];
            }
            None if schema.items.is_some() => schema.list_type = ListType::Set,
            None => {}
        }
    }
}

/// The type that is referred to, directly or as the one part of `allOf`; and what stands beside it.
fn reference(json: &Value) -> Option<(&str, Option<&Map<String, Value>>)> {
    if let Some(target) = json.get("$ref") {
        return Some((last_part(target)?, None));
    }
    let parts = json.get("allOf")?.as_array()?;
    let [only] = &**parts else { return None };
    Some((last_part(only.get("$ref")?)?, json.as_object()))
}

fn last_part(target: &Value) -> Option<&str> {
    target.as_str()?.rsplit('/').next()
}

fn overlaid(schema: &Schema, own: &Map<String, Value>) -> Schema {
    let over = parse::plain(own);
    let mut schema = schema.clone();
    schema.nullable |= over.nullable;
    schema.preserve_unknown |= over.preserve_unknown;
    schema.is_atomic_map |= over.is_atomic_map;
    schema.patch_merge |= over.patch_merge;
    schema.patch_retain_keys |= over.patch_retain_keys;
    schema
}

/// `v1.PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn type_name(name: &str) -> &str {
    match name.rmatch_indices('.').nth(1) {
        Some((at, _)) => &name[at + 1..],
        None => name,
    }
}

fn opaque() -> Schema {
    Schema { preserve_unknown: true, ..Schema::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::Components;
    use crate::schema::{ListType, Role, Type};

    fn document() -> serde_json::Value {
        let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "components": { "schemas": {
            "io.k8s.api.core.v1.Pod": { "type": "object", "properties": {
                "metadata": { "allOf": [to("io.k8s.meta.v1.ObjectMeta")], "default": {} },
                "spec": { "allOf": [to("io.k8s.api.core.v1.PodSpec")], "default": {}, "description": "what" },
                "again": to("io.k8s.api.core.v1.PodSpec"),
                "and_again": { "allOf": [to("io.k8s.api.core.v1.PodSpec")], "default": {} },
            } },
            "io.k8s.api.core.v1.PodSpec": { "type": "object", "required": ["containers"], "properties": {
                "containers": {
                    "type": "array",
                    "items": { "allOf": [to("io.k8s.api.core.v1.Container")], "default": {} },
                    "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name",
                },
                "strategy": { "allOf": [to("io.k8s.api.core.v1.Strategy")], "x-kubernetes-patch-strategy": "retainKeys" },
                "port": to("io.k8s.pkg.util.intstr.IntOrString"),
                "cpu": to("io.k8s.pkg.api.resource.Quantity"),
                "raw": { "type": "object" },
            } },
            "io.k8s.api.core.v1.Container": { "type": "object", "properties": { "name": { "type": "string", "default": "" } } },
            "io.k8s.api.core.v1.Strategy": { "type": "object", "properties": { "type": { "type": "string" } } },
            "io.k8s.pkg.util.intstr.IntOrString": { "type": "string", "format": "int-or-string" },
            "io.k8s.pkg.api.resource.Quantity": { "oneOf": [{ "type": "string" }, { "type": "number" }] },
            "io.k8s.meta.v1.ObjectMeta": { "type": "object", "properties": { "name": { "type": "string" } } },
            "io.k8s.Props": { "type": "object", "properties": {
                "title": { "type": "string" }, "items": to("io.k8s.Props"),
                "not": { "allOf": [to("io.k8s.Props")], "default": {} },
            } },
        } } })
    }

    #[test]
    fn a_type_is_made_once_and_shared() {
        let document = document();
        let pod = Components::new(&document).schema("io.k8s.api.core.v1.Pod").expect("it is there");
        let spec = &pod.properties["spec"];
        assert_eq!(spec.default, Some(json!({})));
        assert_eq!(spec.type_name.as_deref(), Some("v1.PodSpec"));
        assert!(Arc::ptr_eq(spec, &pod.properties["and_again"]));
        let again = &pod.properties["again"];
        assert_eq!(again.default, None);
        assert!(Arc::ptr_eq(&spec.properties["containers"], &again.properties["containers"]));
    }

    #[test]
    fn what_kubernetes_means_by_its_types_is_kept() {
        let document = document();
        let components = Components::new(&document);
        let spec = components.schema("io.k8s.api.core.v1.PodSpec").expect("it is there");
        let containers = &spec.properties["containers"];
        assert_eq!(
            (containers.list_type, &*containers.list_map_keys),
            (ListType::Map, &["name".to_owned()][..])
        );
        assert!(spec.properties["strategy"].patch_retain_keys);
        assert!(spec.properties["port"].int_or_string && spec.properties["port"].kind.is_none());
        assert_eq!(spec.properties["cpu"].role, Role::Quantity);
        assert!(spec.properties["raw"].preserve_unknown);
        assert!(components.schema("io.k8s.Nothing").is_none());
    }

    #[test]
    fn a_type_that_contains_itself_is_opaque_at_its_second_level() {
        let document = document();
        let props = Components::new(&document).schema("io.k8s.Props").expect("it is there");
        assert_eq!(props.properties["title"].kind, Some(Type::String));
        for name in ["items", "not"] {
            let inner = &props.properties[name];
            assert!(inner.preserve_unknown && inner.properties.is_empty(), "{name}");
        }
    }
}
