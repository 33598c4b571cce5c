//! Pods: what a new one has, and what may change of one. Never here: where they run.

use serde_json::{Value, json};

use super::pod_spec;
use crate::status::FieldError;

/// What a new pod is.
pub(super) fn prepare_create(value: &mut Value) {
    value["status"] = json!({ "phase": "Pending", "qosClass": quality(&value["spec"]) });
}

/// Class of quality of service, by what the containers ask for and are limited to.
fn quality(spec: &Value) -> &'static str {
    let containers: Vec<&Value> = spec["containers"].as_array().into_iter().flatten().collect();
    let has = |container: &Value, what: &str| {
        container["resources"][what].as_object().is_some_and(|map| !map.is_empty())
    };
    let is_guaranteed = |container: &&Value| {
        let (limits, requests) = (&container["resources"]["limits"], &container["resources"]["requests"]);
        ["cpu", "memory"].into_iter().all(|name| {
            !limits[name].is_null() && (requests[name].is_null() || requests[name] == limits[name])
        })
    };
    if !containers.is_empty() && containers.iter().all(is_guaranteed) {
        "Guaranteed"
    } else if containers.iter().any(|container| has(container, "requests") || has(container, "limits")) {
        "Burstable"
    } else {
        "BestEffort"
    }
}

/// What is wrong with a pod.
pub(super) fn check(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = match old {
        None => pod_spec::check("spec", &new["spec"]),
        Some(old) => changed(&old["spec"], &new["spec"]),
    };
    if let Some(old) = old
        && fixed(&old["spec"]) != fixed(&new["spec"])
    {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                      existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";
        errors.push(FieldError::forbidden("spec", detail));
    }
    errors
}

/// What is wrong with what may change.
fn changed(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in ["containers", "initContainers"] {
        for (at, container) in new[list].as_array().into_iter().flatten().enumerate() {
            if container["image"].as_str().is_none_or(str::is_empty) {
                errors.push(FieldError::required(format!("spec.{list}[{at}].image"), ""));
            }
        }
    }
    let (was, is) = (&old["activeDeadlineSeconds"], &new["activeDeadlineSeconds"]);
    if let (Some(before), now) = (was.as_i64(), is.as_i64())
        && now.is_none_or(|now| now > before)
    {
        let detail = "must be less than or equal to previous value";
        errors.push(FieldError::invalid("spec.activeDeadlineSeconds", is, detail));
    }
    errors
}

/// The part of a pod's specification that may not change.
fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(spec) = spec.as_object_mut() {
        for field in ["tolerations", "activeDeadlineSeconds"] {
            spec.remove(field);
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["image"] = Value::Null;
        }
    }
    spec
}
