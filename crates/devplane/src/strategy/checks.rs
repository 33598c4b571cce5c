//! What is refused of a built-in kind beside what its schema says. The rules that users meet; what only a kubelet or a
//! scheduler would mind is let through. Never here: rules of `metadata`.

use serde_json::Value;

use super::{data, events, immutable, name, nodes, pods, roles, services, workloads};
use crate::kinds::{Kind, kinds_of_crd, warnings_of_crd};
use crate::metadata;
use crate::status::FieldError;
use crate::{admission, policy};

/// What is wrong with an object of a built-in kind.
pub(crate) fn check(kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    match name(kind) {
        ("", "configmaps") => data::config_map(old, new),
        ("", "secrets") => data::secret(old, new),
        ("", "namespaces") => namespace(new),
        ("", "nodes") => nodes::check(old, new),
        ("", "pods") => pods::check(old, new),
        ("", "services") => services::check(old, new),
        ("" | "events.k8s.io", "events") => events::event(kind, old, new),
        ("coordination.k8s.io", "leases") => events::lease(new),
        ("apps", plural) => workloads::workload(plural, old, new),
        ("policy", "poddisruptionbudgets") => workloads::budget(new),
        ("scheduling.k8s.io", "priorityclasses") => roles::priority(old, new),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => roles::role(kind, new),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => {
            roles::binding(kind, old, new)
        }
        ("apiextensions.k8s.io", _) => crd(old, new),
        (
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations" | "validatingwebhookconfigurations",
        ) => admission::check(new),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => policy::check(new),
        ("admissionregistration.k8s.io", "validatingadmissionpolicybindings") => policy::check_binding(new),
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

fn namespace(new: &Value) -> Vec<FieldError> {
    let finalizers = new["spec"]["finalizers"].as_array().into_iter().flatten();
    let plain = finalizers.filter(|finalizer| finalizer.as_str().is_some_and(metadata::is_plain));
    let complain = |finalizer| {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        FieldError::invalid("spec.finalizers", finalizer, detail)
    };
    plain.map(complain).collect()
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
