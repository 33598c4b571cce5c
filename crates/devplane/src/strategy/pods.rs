//! Pods: what a new one has, and what may change of one. Never here: where they run.

use serde_json::{Value, json};

use crate::status::FieldError;

/// What the API server and its usual admission fill into a new pod.
pub(super) fn prepare_create(value: &mut Value, toleration_s: i64) {
    value["status"] = json!({ "phase": "Pending", "qosClass": quality(&value["spec"]) });
    let spec = &mut value["spec"];
    if !spec.is_object() {
        return;
    }
    for (field, given) in [
        ("serviceAccountName", json!("default")),
        ("serviceAccount", spec["serviceAccountName"].as_str().unwrap_or("default").into()),
        ("enableServiceLinks", json!(true)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
    ] {
        if spec[field].is_null() {
            spec[field] = given;
        }
    }
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            let is_of_key =
                toleration["key"] == taint || toleration["key"].as_str().is_none_or(str::is_empty);
            let is_of_effect =
                toleration["effect"].as_str().is_none_or(|effect| matches!(effect, "" | "NoExecute"));
            is_of_key && is_of_effect
        });
        if !is_tolerated {
            tolerations.push(json!({
                "key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": toleration_s,
            }));
        }
    }
    spec["tolerations"] = tolerations.into();
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
    let mut errors = Vec::new();
    let none = Vec::new();
    let containers = new["spec"]["containers"].as_array().unwrap_or(&none);
    if containers.is_empty() {
        errors.push(FieldError::required("spec.containers", ""));
    }
    for (at, container) in containers.iter().enumerate() {
        let path = |field: &str| format!("spec.containers[{at}].{field}");
        if container["name"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(path("name"), ""));
        }
        if container["image"].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(path("image"), ""));
        }
    }
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
