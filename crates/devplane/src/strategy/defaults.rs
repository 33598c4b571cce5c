//! What is filled in where a built-in kind leaves something out. Source: the API reference of Kubernetes. Never here:
//! what only a create fills in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{pod_defaults, services};
use crate::kinds::Kind;
use crate::metadata;

/// Fills in an object of a built-in kind.
pub(super) fn fill(kind: &Kind, value: &mut Value) {
    match super::name(kind) {
        ("", "pods") => pod_defaults::pod(&mut value["spec"]),
        ("", "nodes") => node(&mut value["spec"]),
        ("", "namespaces") => namespace(value),
        ("", "secrets") => secret(value),
        ("", "services") => services::fill(&mut value["spec"]),
        ("apps", plural) => workload(plural, &mut value["spec"]),
        ("apiextensions.k8s.io", "customresourcedefinitions") => crd(&mut value["spec"]),
        ("admissionregistration.k8s.io", plural) => {
            each(&mut value["webhooks"], |webhook| self::webhook(plural, webhook));
            policy(plural, &mut value["spec"]);
        }
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(value),
        ("scheduling.k8s.io", "priorityclasses") => {
            missing(value, "preemptionPolicy", "PreemptLowerPriority")
        }
        _ => {}
    }
}

/// Sets a field that is missing.
pub(super) fn missing(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object[field].is_null() {
        object[field] = value.into();
    }
}

/// Sets a field that is missing, or empty, or zero.
pub(super) fn unset(object: &mut Value, field: &str, value: impl Into<Value>) {
    if object[field].is_null() || object[field] == "" || object[field] == 0 {
        object[field] = value.into();
    }
}

pub(super) fn each(list: &mut Value, change: impl FnMut(&mut Value)) {
    list.as_array_mut().into_iter().flatten().for_each(change);
}

fn node(spec: &mut Value) {
    let (one, many) = (spec["podCIDR"].clone(), spec["podCIDRs"][0].clone());
    match (one.as_str(), many.as_str()) {
        (None, Some(_)) => spec["podCIDR"] = many,
        (Some(range), many) if many != Some(range) => spec["podCIDRs"] = json!([range]),
        (None, None) | (Some(_), _) => {}
    }
}

/// A node that does not say what of it can be used can be used as a whole.
pub(super) fn node_status(value: &mut Value) {
    let capacity = value["status"]["capacity"].clone();
    if capacity.is_object() {
        missing(&mut value["status"], "allocatable", capacity);
    }
}

/// A namespace is labelled with its name, for selectors.
fn namespace(value: &mut Value) {
    let name = value["metadata"]["name"].clone();
    let metadata = metadata::object(value);
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    labels["kubernetes.io/metadata.name"] = name;
}

fn secret(value: &mut Value) {
    missing(value, "type", "Opaque");
    let Some(Value::Object(plain)) = value.as_object_mut().and_then(|secret| secret.remove("stringData"))
    else {
        return;
    };
    for (key, text) in plain {
        value["data"][key] = STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

fn workload(plural: &str, spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    if spec["template"].is_object() {
        missing(&mut spec["template"], "metadata", json!({}));
        if spec["template"]["spec"].is_object() {
            pod_defaults::fill(&mut spec["template"]["spec"]);
        }
    }
    match plural {
        "deployments" => {
            missing(spec, "replicas", 1);
            missing(spec, "revisionHistoryLimit", 10);
            missing(spec, "progressDeadlineSeconds", 600);
            strategy(spec, "strategy", json!({ "maxUnavailable": "25%", "maxSurge": "25%" }));
        }
        "daemonsets" => {
            missing(spec, "revisionHistoryLimit", 10);
            strategy(spec, "updateStrategy", json!({ "maxUnavailable": 1, "maxSurge": 0 }));
        }
        "replicasets" => missing(spec, "replicas", 1),
        _ => {}
    }
}

/// Counts the templates of a DaemonSet, in an annotation.
pub(super) fn count_templates(old: Option<&Value>, value: &mut Value) {
    const COUNT: &str = "deprecated.daemonset.template.generation";
    let count = match old {
        None => 1,
        Some(old) => {
            let text = old["metadata"]["annotations"][COUNT].as_str().unwrap_or_default();
            text.parse().unwrap_or(1) + i64::from(old["spec"]["template"] != value["spec"]["template"])
        }
    };
    let annotations = metadata::object(value).entry("annotations").or_insert_with(|| json!({}));
    annotations[COUNT] = count.to_string().into();
}

fn strategy(spec: &mut Value, field: &str, rolling: Value) {
    missing(spec, field, json!({}));
    missing(&mut spec[field], "type", "RollingUpdate");
    if spec[field]["type"] == "RollingUpdate" {
        missing(&mut spec[field], "rollingUpdate", json!({}));
        for (name, value) in rolling.as_object().into_iter().flatten() {
            missing(&mut spec[field]["rollingUpdate"], name, value.clone());
        }
    }
}

fn crd(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    if let Some(kind) = spec["names"]["kind"].as_str().map(str::to_owned) {
        missing(&mut spec["names"], "singular", kind.to_lowercase());
        missing(&mut spec["names"], "listKind", format!("{kind}List"));
    }
    missing(spec, "conversion", json!({ "strategy": "None" }));
}

fn webhook(plural: &str, webhook: &mut Value) {
    missing(webhook, "failurePolicy", "Fail");
    missing(webhook, "matchPolicy", "Equivalent");
    missing(webhook, "namespaceSelector", json!({}));
    missing(webhook, "objectSelector", json!({}));
    missing(webhook, "timeoutSeconds", 10);
    if plural == "mutatingwebhookconfigurations" {
        missing(webhook, "reinvocationPolicy", "Never");
    }
    each(&mut webhook["rules"], |rule| missing(rule, "scope", "*"));
    if webhook["clientConfig"]["service"].is_object() {
        missing(&mut webhook["clientConfig"]["service"], "port", 443);
    }
}

/// Policies and their bindings.
fn policy(plural: &str, spec: &mut Value) {
    let resources = match plural {
        "validatingadmissionpolicies" => {
            missing(spec, "failurePolicy", "Fail");
            &mut spec["matchConstraints"]
        }
        "validatingadmissionpolicybindings" => &mut spec["matchResources"],
        _ => return,
    };
    if resources.is_object() {
        missing(resources, "matchPolicy", "Equivalent");
        missing(resources, "namespaceSelector", json!({}));
        missing(resources, "objectSelector", json!({}));
        for rules in ["resourceRules", "excludeResourceRules"] {
            each(&mut resources[rules], |rule| missing(rule, "scope", "*"));
        }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

fn binding(value: &mut Value) {
    if value["roleRef"].is_object() {
        unset(&mut value["roleRef"], "apiGroup", RBAC);
    }
    each(&mut value["subjects"], |subject| {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            unset(subject, "apiGroup", RBAC);
        }
    });
}
