//! Reads a stored object; of a Machine that is being deleted, what can be read suffices.
//!
//! An object that does not fit its type is left alone, for acting on half of a spec would be wrong. A deletion is
//! different: it needs who the machine is, its hooks, its Node and its conditions, and nothing of the rest. Without this a
//! Machine that a looser schema or another version spoilt could never go, because our finalizer holds it.
//! Never here: hooks, `nodeRef`, conditions, `authoritativeAPI`, the provider id. Without them a removal is not safe.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Misfit, Object, names};

/// Fields that the removal of a Machine does not need.
const EXPENDABLE: [&str; 10] = [
    "spec.metadata",
    "spec.taints",
    "status.addresses",
    "status.errorMessage",
    "status.errorReason",
    "status.lastOperation",
    "status.lastUpdated",
    "status.phase",
    "status.synchronizedAPI",
    "status.synchronizedGeneration",
];

/// Reads an object. What does not fit is dropped if the object is a Machine that is being deleted and the field is
/// expendable; else the first error is given.
pub fn read<T: Object + DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| without_misfits(text, &error).ok_or(error))
}

fn without_misfits<T: Object + DeserializeOwned>(text: &str, error: &serde_json::Error) -> Option<T> {
    if T::kind(&()) != names::KIND_MACHINE || T::group(&()) != names::GROUP {
        return None;
    }
    let mut tree: Value = serde_json::from_str(text).ok()?;
    tree["metadata"].get("deletionTimestamp").filter(|time| !time.is_null())?;
    let mut misfit = Misfit::of(text, error).path;
    // Each round drops a field, so there are at most as many rounds as fields.
    for _ in EXPENDABLE {
        let field = EXPENDABLE.into_iter().find(|field| is_within(&misfit, field))?;
        let (part, name) = field.split_once('.').expect("each path has two names");
        tree[part].as_object_mut()?.remove(name)?;
        let rest = tree.to_string();
        match serde_json::from_str(&rest) {
            Ok(object) => return Some(object),
            Err(error) => misfit = Misfit::of(&rest, &error).path,
        }
    }
    None
}

fn is_within(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, MachineSet};
    use serde_json::json;

    fn check(object: &Value, is_readable: bool) {
        assert_eq!(read::<Machine>(&object.to_string()).is_ok(), is_readable, "{object}");
    }

    #[test]
    fn a_machine_that_is_being_deleted_is_read_without_what_its_removal_does_not_need() {
        let spoilt = |deleted: bool, spec: Value, status: Value| {
            let time = deleted.then_some("2026-01-01T00:00:00Z");
            json!({"metadata": {"name": "a", "deletionTimestamp": time}, "spec": spec, "status": status})
        };
        check(&spoilt(false, json!({"taints": "x"}), json!({})), false);
        check(&spoilt(true, json!({"taints": "x"}), json!({})), true);
        check(
            &spoilt(true, json!({"taints": [{"key": 5}], "metadata": 1}), json!({"addresses": "none"})),
            true,
        );
        check(&spoilt(true, json!({"lifecycleHooks": "x"}), json!({})), false);
        check(&spoilt(true, json!({}), json!({"nodeRef": "x"})), false);
        check(&spoilt(true, json!({}), json!({"conditions": "x", "phase": 1})), false);
    }

    #[test]
    fn what_fits_is_kept_beside_what_is_dropped() {
        let text = json!({
            "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"providerID": "x://1", "taints": "x", "lifecycleHooks": {"preDrain": [{"name": "h", "owner": "o"}]}},
        });
        let machine = read::<Machine>(&text.to_string()).expect("it is being deleted");
        assert_eq!(machine.provider_id(), Some("x://1"));
        assert_eq!(machine.spec.lifecycle_hooks.pre_drain.len(), 1);
    }

    #[test]
    fn other_kinds_are_read_whole_or_not_at_all() {
        let text = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"replicas":"x"}}"#;
        assert!(read::<MachineSet>(text).is_err());
    }
}
