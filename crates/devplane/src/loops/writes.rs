//! How loops write: as the controllers of Kubernetes would, with their names in the managed fields. Never here: what is
//! written.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::environment::{seconds, uid};
use crate::kinds::Kind;
use crate::managed::{Manager, Reach, note_update};
use crate::state::{DeleteOptions, State};
use crate::storage::{Key, Object};

/// Who writes for the loops, in managed fields.
pub(crate) const CONTROLLERS: &str = "kube-controller-manager";
/// Who writes what the server itself finds out.
pub(crate) const SERVER: &str = "kube-apiserver";

/// A condition of an object, but for its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub kind: &'a str,
    pub status: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Writes the next status of an object. `old` is its state that `value` was made of.
pub(crate) fn write_status(
    state: &mut State,
    kind: &Kind,
    old: &Object,
    mut value: Value,
    manager: &str,
) -> Value {
    let time = seconds(state.environment.now());
    let api_version = kind.api_version();
    let manager = Manager {
        name: manager,
        api_version: &api_version,
        subresource: "status",
        time: &time,
        reach: Reach::of(kind, "status"),
    };
    note_update(&kind.schema, Some(&old.value()), &mut value, &manager);
    state.update(kind, old, value)
}

/// Creates an object of a loop. `value` has its names and contents.
pub(crate) fn create(state: &mut State, kind: &Kind, mut value: Value) {
    let now = state.environment.now();
    let time = seconds(now);
    value["metadata"]["uid"] = uid(&*state.environment).into();
    value["metadata"]["creationTimestamp"] = time.clone().into();
    let api_version = kind.api_version();
    let manager = Manager {
        name: CONTROLLERS,
        api_version: &api_version,
        subresource: "",
        time: &time,
        reach: Reach::of(kind, ""),
    };
    note_update(&kind.schema, None, &mut value, &manager);
    state.storage.put(now, kind, value);
}

/// Deletes an object, if it is still the one that was looked at.
pub(crate) fn delete(state: &mut State, kind: &Kind, object: &Object, options: DeleteOptions) {
    let options = DeleteOptions { uid: Some(object.uid.clone()), ..options };
    if let Err(error) = state.delete(kind, object, &options) {
        tracing::warn!(
            kind = kind.plural,
            name = object.key.name,
            error = error.message,
            "cannot delete an object"
        );
    }
}

/// The object of this name as it is now.
pub(crate) fn get(state: &State, kind: &Kind, namespace: &str, name: &str) -> Option<Arc<Object>> {
    let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
    state.storage.get(&kind.bucket, &key).cloned()
}

/// Sets a condition in `status.conditions`. Its time of transition changes with its status only. Says whether that
/// changed anything.
pub(crate) fn set_condition(value: &mut Value, condition: Condition<'_>, time: &str) -> bool {
    let conditions = &mut value["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let conditions = conditions.as_array_mut().expect("it was made an array");
    let Condition { kind, status, reason, message } = condition;
    let Some(old) = conditions.iter_mut().find(|old| old["type"] == kind) else {
        conditions.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": time,
        }));
        return true;
    };
    let before = old.clone();
    if old["status"] != status {
        old["lastTransitionTime"] = time.into();
    }
    old["status"] = status.into();
    old["reason"] = reason.into();
    old["message"] = message.into();
    *old != before
}

/// Sets the condition `PodScheduled` of a pod that was given a node.
pub(crate) fn set_scheduled(pod: &mut Value, time: &str) {
    const SCHEDULED: &str = "PodScheduled";
    let conditions = &mut pod["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let conditions = conditions.as_array_mut().expect("it was made an array");
    conditions.retain(|condition| condition["type"] != SCHEDULED);
    conditions.push(
        json!({ "type": SCHEDULED, "status": "True", "lastProbeTime": null, "lastTransitionTime": time }),
    );
}

/// The condition of a type.
pub(crate) fn condition<'a>(value: &'a Value, kind: &str) -> Option<&'a Value> {
    value["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Sets the condition `DisruptionTarget` of a pod: it is about to be deleted, and why. `observed` tells of which
/// generation of the pod that is said.
pub(crate) fn set_disruption(pod: &mut Value, reason: &str, message: &str, time: &str, observed: bool) {
    const TARGET: &str = "DisruptionTarget";
    set_condition(pod, Condition { kind: TARGET, status: "True", reason, message }, time);
    let generation = pod["metadata"]["generation"].clone();
    let conditions = pod["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == TARGET) {
        condition["lastProbeTime"] = Value::Null;
        if observed && generation.is_i64() {
            condition["observedGeneration"] = generation.clone();
        }
    }
    if observed && generation.is_i64() {
        pod["status"]["observedGeneration"] = generation;
    }
}
