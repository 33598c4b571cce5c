//! Roles, their bindings, and classes of priority: what is refused of them. Never here: who may do what.

use serde_json::Value;

use crate::kinds::Kind;
use crate::status::FieldError;

const GROUP: &str = "rbac.authorization.k8s.io";

/// The highest value of a class that is not the system's. Source: the API of Kubernetes.
const PRIORITY_LIMIT: i64 = 1_000_000_000;

/// What is wrong with a role.
pub(super) fn role(kind: &Kind, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, rule) in new["rules"].as_array().into_iter().flatten().enumerate() {
        let has = |field: &str| rule[field].as_array().is_some_and(|list| !list.is_empty());
        let path = |field: &str| format!("rules[{at}].{field}");
        if !has("verbs") {
            errors.push(FieldError::required(path("verbs"), "verbs must contain at least one value"));
        }
        if has("nonResourceURLs") {
            if kind.namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(path("nonResourceURLs"), &rule["nonResourceURLs"], detail));
            }
            if ["apiGroups", "resources", "resourceNames"].into_iter().any(has) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(path("nonResourceURLs"), &rule["nonResourceURLs"], detail));
            }
            continue;
        }
        for (field, detail) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if !has(field) {
                errors.push(FieldError::required(path(field), detail));
            }
        }
    }
    errors
}

/// What is wrong with the binding of a role.
pub(super) fn binding(kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let role = &new["roleRef"];
    if role["apiGroup"] != GROUP {
        errors.push(FieldError::unsupported("roleRef.apiGroup", &role["apiGroup"], &[GROUP]));
    }
    let kinds: &[&str] = if kind.namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !role["kind"].as_str().is_some_and(|kind| kinds.contains(&kind)) {
        errors.push(FieldError::unsupported("roleRef.kind", &role["kind"], kinds));
    }
    if role["name"].as_str().is_none_or(str::is_empty) {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (at, subject) in new["subjects"].as_array().into_iter().flatten().enumerate() {
        check_subject(kind, &format!("subjects[{at}]"), subject, &mut errors);
    }
    if let Some(old) = old
        && old["roleRef"] != new["roleRef"]
    {
        errors.push(FieldError::invalid("roleRef", role, "cannot change roleRef"));
    }
    errors
}

fn check_subject(kind: &Kind, path: &str, subject: &Value, errors: &mut Vec<FieldError>) {
    const KINDS: [&str; 3] = ["ServiceAccount", "User", "Group"];
    let text = |field: &str| subject[field].as_str().unwrap_or_default();
    if text("name").is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let group = match text("kind") {
        "ServiceAccount" => "",
        "User" | "Group" => GROUP,
        _ => {
            errors.push(FieldError::unsupported(format!("{path}.kind"), &subject["kind"], &KINDS));
            return;
        }
    };
    if text("apiGroup") != group {
        errors.push(FieldError::unsupported(format!("{path}.apiGroup"), &subject["apiGroup"], &[group]));
    }
    if group.is_empty() && !kind.namespaced && text("namespace").is_empty() {
        errors.push(FieldError::required(format!("{path}.namespace"), ""));
    }
}

/// What is wrong with a class of priority.
pub(super) fn priority(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    let is_system = matches!(name, "system-cluster-critical" | "system-node-critical");
    if name.starts_with("system-") && !is_system {
        let detail = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known \
             system priority class"
        );
        errors.push(FieldError::forbidden("metadata.name", detail));
    } else if !is_system && new["value"].as_i64().is_some_and(|value| value > PRIORITY_LIMIT) {
        let detail = format!("maximum allowed value of a user defined priority is {PRIORITY_LIMIT}");
        errors.push(FieldError::forbidden("value", detail));
    }
    let policy = &new["preemptionPolicy"];
    if !matches!(policy.as_str(), Some("PreemptLowerPriority" | "Never")) {
        errors.push(FieldError::unsupported("preemptionPolicy", policy, &["PreemptLowerPriority", "Never"]));
    }
    if old.is_some_and(|old| old["value"] != new["value"]) {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    errors
}
