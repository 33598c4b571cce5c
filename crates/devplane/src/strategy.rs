//! Rules of single kinds of Kubernetes: what is filled in, what a write may not touch, what is refused. Kinds of CRDs have
//! none beside their schema. Never here: rules of all kinds.

mod checks;
mod data;
mod defaults;
mod entry;
mod events;
mod nodes;
mod pod_defaults;
mod pod_spec;
mod pods;
mod roles;
mod services;
mod workloads;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::loops::crds::note_stored_version;
use crate::metadata;
use crate::state::State;
use crate::status::{ApiError, FieldError, Named};
use crate::storage::Object;

pub(crate) use checks::{check, warnings};
pub(crate) use entry::admit;

/// The finalizer of what namespaces contain.
const KUBERNETES: &str = "kubernetes";

/// Group and plural of a built-in kind; both empty for a kind of a CRD, so that no rule fits.
fn name(kind: &Kind) -> (&str, &str) {
    if kind.is_custom() { ("", "") } else { (&kind.group, &kind.plural) }
}

/// Whether changes of its specification are counted in `metadata.generation`.
pub(crate) fn has_generation(kind: &Kind) -> bool {
    kind.is_custom()
        || matches!(
            name(kind),
            ("", "pods")
                | ("apps", _)
                | ("policy", _)
                | ("apiextensions.k8s.io" | "admissionregistration.k8s.io" | "scheduling.k8s.io", _)
        )
}

/// Whether a PUT of an object that is not there makes it.
pub(crate) fn creates_on_update(kind: &Kind) -> bool {
    matches!(
        name(kind),
        ("coordination.k8s.io", "leases")
            | ("" | "events.k8s.io", "events")
            | ("rbac.authorization.k8s.io", _)
    )
}

/// Whether the deletion of an object is answered with it, not with a `Status`.
pub(crate) fn answers_with_object(kind: &Kind) -> bool {
    matches!(name(kind), ("", "pods" | "services" | "serviceaccounts"))
}

/// Refuses the deletion of what every cluster has.
pub(crate) fn check_delete(kind: &Kind, object: &Object) -> Result<(), ApiError> {
    let is_kept = matches!(&*object.key.name, "default" | "kube-system" | "kube-public");
    if name(kind) == ("", "namespaces") && is_kept {
        let named = Named { kind: &kind.plural, group: "", name: &object.key.name };
        return Err(ApiError::forbidden(named, "this namespace may not be deleted"));
    }
    Ok(())
}

/// Whether anything differs that is counted: all but metadata, and but the status where that is written apart.
pub(crate) fn is_other_spec(kind: &Kind, old: &Value, new: &Value) -> bool {
    let parts = |value: &Value| {
        let object = value.as_object().cloned().unwrap_or_default();
        let is_counted = |key: &str| match key {
            "metadata" | "apiVersion" | "kind" => false,
            "status" => kind.is_custom() && !kind.has_status,
            _ => true,
        };
        object.into_iter().filter(|(key, _)| is_counted(key)).collect::<Map<_, _>>()
    };
    parts(old) != parts(new)
}

/// Whether a create brings its status along: the agent of a node registers it with what it knows.
pub(crate) fn keeps_status_at_birth(kind: &Kind) -> bool {
    name(kind) == ("", "nodes")
}

/// Takes over from the old state the parts that a write to this (sub)resource does not touch.
pub(crate) fn keep_parts(kind: &Kind, subresource: &str, old: &Value, new: &mut Value) {
    let copy = |from: &Value, new: &mut Value, field: &str| match &from[field] {
        Value::Null => drop(new.as_object_mut().expect("objects are checked to be so").remove(field)),
        value => new[field] = value.clone(),
    };
    match subresource {
        "status" if kind.is_custom() => {
            let managed = new["metadata"]["managedFields"].clone();
            let mut kept = old.clone();
            copy(new, &mut kept, "status");
            if !managed.is_null() {
                kept["metadata"]["managedFields"] = managed;
            }
            *new = kept;
        }
        "status" => {
            let status = new["status"].clone();
            let metadata = new["metadata"].clone();
            *new = old.clone();
            new["metadata"] = metadata;
            new["status"] = status;
        }
        "finalize" => {
            let finalizers = new["spec"]["finalizers"].clone();
            *new = old.clone();
            new["spec"]["finalizers"] = finalizers;
        }
        _ if kind.has_status => copy(old, new, "status"),
        _ => {}
    }
    if name(kind) == ("", "namespaces") && subresource != "finalize" {
        new["spec"]["finalizers"] = old["spec"]["finalizers"].clone();
    }
}

/// Fills in what an object of this kind leaves out, and takes out what means nothing. Whoever writes owns all of that.
pub(crate) fn fill(kind: &Kind, subresource: &str, old: Option<&Value>, value: &mut Value) {
    metadata::drop_empty(value);
    if kind.is_custom() {
        return;
    }
    drop_nulls(value);
    if subresource.is_empty() {
        defaults::fill(kind, value);
        drop_nulls(value);
    }
    if name(kind) == ("", "nodes") {
        defaults::node_status(value);
    }
    kind.schema.settle(value);
    if name(kind) == ("apps", "daemonsets") && subresource.is_empty() {
        defaults::count_templates(old, value);
    }
    let has_rules = matches!(name(kind), ("rbac.authorization.k8s.io", "roles" | "clusterroles"));
    if has_rules && value["rules"].as_array().is_none_or(Vec::is_empty) {
        value["rules"] = Value::Null;
    }
}

/// What the server itself adds to a new object. Nobody owns that.
pub(crate) fn prepare_create(kind: &Kind, state: &State, value: &mut Value) {
    match name(kind) {
        ("", "namespaces") => {
            let mut finalizers = value["spec"]["finalizers"].as_array().cloned().unwrap_or_default();
            if !finalizers.iter().any(|name| name == KUBERNETES) {
                finalizers.push(KUBERNETES.into());
            }
            value["spec"] = json!({ "finalizers": finalizers });
            value["status"] = json!({ "phase": "Active" });
        }
        ("", "pods") => pods::prepare_create(value),
        ("", "services") => services::allocate(state, None, value),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            value["status"] = json!({ "acceptedNames": { "kind": "", "plural": "" } });
            note_stored_version(value);
        }
        ("policy", "poddisruptionbudgets") => {
            value["status"] = json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 });
        }
        _ => {}
    }
}

/// Takes out nulls: a field of a built-in kind is there or not.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the server itself adds to the next state of an object.
pub(crate) fn prepare_update(kind: &Kind, subresource: &str, state: &State, old: &Value, value: &mut Value) {
    if !subresource.is_empty() {
        return;
    }
    match name(kind) {
        ("", "services") => services::allocate(state, Some(old), value),
        ("apiextensions.k8s.io", "customresourcedefinitions") => note_stored_version(value),
        _ => {}
    }
}

/// A field that may not change.
fn immutable(path: &str, value: &Value) -> FieldError {
    FieldError::invalid(path, value, "field is immutable")
}
