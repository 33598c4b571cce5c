//! What is refused of a built-in kind beside what its schema says. The rules that users meet; what only a kubelet or a
//! scheduler would mind is let through. Never here: rules of `metadata`.

use serde_json::Value;

use super::{immutable, name, pods};
use crate::kinds::{Kind, kinds_of_crd, warnings_of_crd};
use crate::selector::Labels;
use crate::status::FieldError;
use crate::{admission, policy};

/// What is wrong with an object of a built-in kind.
pub(crate) fn check(kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    match name(kind) {
        ("", "pods") => pods::check(old, new),
        ("apps", _) => workload(old, new),
        ("policy", "poddisruptionbudgets") => budget(new),
        ("", "secrets") => secret(old, new),
        ("", "configmaps") => config_map(old, new),
        ("apiextensions.k8s.io", _) => crd(old, new),
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => admission::check(new),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => policy::check(new),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => policy::check_binding(new),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => match old {
            Some(old) if old["roleRef"] != new["roleRef"] => {
                vec![FieldError::invalid("roleRef", &new["roleRef"], "cannot change roleRef")]
            }
            Some(_) | None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// What is odd about an object of a built-in kind, and let through.
pub(crate) fn warnings(kind: &Kind, new: &Value) -> Vec<String> {
    match name(kind) {
        ("apiextensions.k8s.io", _) => warnings_of_crd(new),
        _ => Vec::new(),
    }
}

fn crd(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = kinds_of_crd(new).err().unwrap_or_default();
    let is_established = |crd: &&Value| {
        let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    };
    if let Some(old) = old.filter(is_established) {
        let fixed = [("spec.scope", "/spec/scope"), ("spec.names.kind", "/spec/names/kind")];
        let changed = fixed.into_iter().filter(|(_, at)| old.pointer(at) != new.pointer(at));
        errors.extend(changed.map(|(path, at)| immutable(path, new.pointer(at).unwrap_or(&Value::Null))));
    }
    errors
}

fn workload(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    if let Some(old) = old
        && old["spec"]["selector"] != spec["selector"]
    {
        errors.push(immutable("spec.selector", &spec["selector"]));
    }
    if spec["selector"].is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if let Some(selector) = Labels::of_object(&spec["selector"]) {
        let labels = spec["template"]["metadata"]["labels"].as_object().into_iter().flatten();
        let labels: Vec<(String, String)> =
            labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into())).collect();
        if !selector.matches(&labels) {
            let value = &spec["template"]["metadata"]["labels"];
            let detail = "`selector` does not match template `labels`";
            errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
        }
    }
    if let Some(replicas) = spec["replicas"].as_i64().filter(|replicas| *replicas < 0) {
        errors.push(FieldError::invalid(
            "spec.replicas",
            &replicas.into(),
            "must be greater than or equal to 0",
        ));
    }
    errors
}

fn budget(new: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        return vec![FieldError::invalid("spec", spec, detail)];
    }
    Vec::new()
}

fn secret(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = fixed_data(old, new);
    if let Some(old) = old
        && old["type"] != new["type"]
    {
        errors.push(immutable("type", &new["type"]));
    }
    errors
}

fn config_map(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    fixed_data(old, new)
}

/// Data that was declared immutable.
fn fixed_data(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let Some(old) = old.filter(|old| old["immutable"] == true) else { return Vec::new() };
    let mut errors = Vec::new();
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    for field in ["data", "binaryData"] {
        if old[field] != new[field] {
            errors.push(FieldError::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
    errors
}
