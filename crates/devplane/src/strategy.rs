//! Rules of single kinds of Kubernetes: what is filled in, what a write may not touch, what is refused. Kinds of CRDs have
//! none beside their schema. Never here: rules of all kinds.

mod checks;
mod defaults;
mod pods;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::loops::crds::note_stored_version;
use crate::metadata;
use crate::state::State;
use crate::status::{ApiError, FieldError, Named};
use crate::storage::Object;

pub(crate) use checks::{check, warnings};

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

/// Fills in what a new object of this kind has.
pub(crate) fn prepare_create(kind: &Kind, state: &mut State, value: &mut Value) {
    defaults::fill(kind, value);
    match name(kind) {
        ("", "namespaces") => {
            value["spec"] = json!({ "finalizers": ["kubernetes"] });
            value["status"] = json!({ "phase": "Active" });
            label_namespace(value);
        }
        ("", "pods") => pods::prepare_create(value, state.pod_toleration_s),
        ("", "services") => give_address(state, value),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            value["status"] = json!({ "acceptedNames": { "kind": "", "plural": "" } });
            note_stored_version(value);
        }
        ("policy", "poddisruptionbudgets") => {
            value["status"] = json!({ "currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0 });
        }
        _ => {}
    }
    if !kind.is_custom() {
        drop_nulls(value);
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

/// Fills in what the next state of an object of this kind has.
pub(crate) fn prepare_update(kind: &Kind, subresource: &str, old: &Value, value: &mut Value) {
    if !subresource.is_empty() {
        if !kind.is_custom() {
            drop_nulls(value);
        }
        return;
    }
    defaults::fill(kind, value);
    match name(kind) {
        ("", "namespaces") => label_namespace(value),
        ("apiextensions.k8s.io", "customresourcedefinitions") => note_stored_version(value),
        ("", "services") => {
            for field in ["clusterIP", "clusterIPs"] {
                if value["spec"][field].is_null() && !old["spec"][field].is_null() {
                    value["spec"][field] = old["spec"][field].clone();
                }
            }
        }
        _ => {}
    }
    if !kind.is_custom() {
        drop_nulls(value);
    }
}

fn label_namespace(value: &mut Value) {
    let name = value["metadata"]["name"].clone();
    let metadata = metadata::object(value);
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name;
}

/// Gives a service an address of its own. Nobody listens there.
fn give_address(state: &State, value: &mut Value) {
    let spec = &mut value["spec"];
    let needs = spec["type"] != "ExternalName" && spec["clusterIP"].as_str().is_none_or(str::is_empty);
    if needs {
        let number = state.environment.random();
        // 10.96.0.0/12, as clusters have it by default.
        let address = format!("10.{}.{}.{}", 96 + (number & 15), number >> 8 & 255, 1 + (number >> 16 & 127));
        spec["clusterIP"] = address.into();
    }
    if spec["type"] != "ExternalName" {
        spec["clusterIPs"] = json!([spec["clusterIP"]]);
    }
}

/// A field that may not change.
fn immutable(path: &str, value: &Value) -> FieldError {
    FieldError::invalid(path, value, "field is immutable")
}
