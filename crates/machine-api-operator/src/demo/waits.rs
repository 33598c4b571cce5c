//! What a machine waits for, in a few words: what its conditions and its Node say.
//!
//! Never here: the cloud or the cluster itself; this reads what the controllers wrote.

use std::borrow::Cow;

use mapi_api::machine::{LifecycleHook, phase};
use mapi_api::names::{annotation, condition, reason};
use mapi_api::{ConditionStatus, Conditions as _, Machine, Node, Object as _};

/// What a machine waits for; `None` if it works.
pub fn waits_for(machine: &Machine, node: Option<&Node>) -> Option<Cow<'static, str>> {
    if machine.is_deleting() {
        return Some(going(machine));
    }
    let conditions = machine.status.conditions.as_slice();
    if machine.phase() == phase::FAILED {
        let why = machine.status.error_message.as_deref().unwrap_or("nobody knows why");
        return Some(format!("nothing, it failed: {why}").into());
    }
    if let Some(complaint) = conditions.find(condition::SPEC_VALID).filter(|c| !c.is_true()) {
        return Some(format!("a valid spec: {}", complaint.message).into());
    }
    match conditions.find(condition::INSTANCE_EXISTS) {
        None => return Some("a first look".into()),
        Some(exists) if exists.status == ConditionStatus::UNKNOWN => {
            return Some(format!("the cloud: {}", cause(&exists.message)).into());
        }
        Some(exists) if exists.reason == reason::INSTANCE_NOT_CREATED => {
            return Some(match exists.message.split_once(": ") {
                Some((_, why)) => format!("an instance: {why}").into(),
                None => "an instance".into(),
            });
        }
        Some(exists) if exists.reason == reason::INSTANCE_MISSING => {
            return Some("a second look: its instance is gone".into());
        }
        Some(_) => {}
    }
    if machine.phase() != phase::RUNNING {
        return Some(joining(machine));
    }
    match node {
        None => Some("its Node, which is gone".into()),
        Some(node) if node.is_ready() => None,
        Some(node) if node.is_unreachable() => Some("its Node, which is silent".into()),
        Some(_) => Some("its Node to be Ready".into()),
    }
}

/// From the instance to the Node.
fn joining(machine: &Machine) -> Cow<'static, str> {
    match machine.annotation(annotation::INSTANCE_STATE) {
        Some("Running") => "a Node to register".into(),
        Some(state) => format!("the instance: {state}").into(),
        None => "the instance".into(),
    }
}

/// What holds a machine that is being deleted: hooks, the drain, hooks, the instance, in this order.
fn going(machine: &Machine) -> Cow<'static, str> {
    let hooks = &machine.spec.lifecycle_hooks;
    if let Some(hook) = hooks.pre_drain.first() {
        return hooked("drain", hook);
    }
    match machine.status.conditions.find(condition::DRAINED) {
        Some(drained) if drained.is_true() => {}
        Some(drained) => return format!("the drain: {}", cause(&drained.message)).into(),
        // Before the drain begins. Without a Node there is nothing to drain, and no such condition for long.
        None if machine.node_name().is_some() => return "the drain of its Node".into(),
        None => {}
    }
    match hooks.pre_terminate.first() {
        Some(hook) => hooked("termination", hook),
        None => "its instance to go".into(),
    }
}

fn hooked(what: &str, hook: &LifecycleHook) -> Cow<'static, str> {
    format!("{}, before the {what} ({})", hook.owner, hook.name).into()
}

/// The last part of a message that says what failed and why.
fn cause(message: &str) -> &str {
    message.split_once(": ").map_or(message, |(_, why)| why)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(machine: Value, node: Option<&str>, expected: &str) {
        let machine: Machine = serde_json::from_value(machine).expect("a machine");
        let node = node.map(|ready| {
            let value = json!({"metadata": {"name": "n"},
                "status": {"conditions": [{"type": "Ready", "status": ready}]}});
            serde_json::from_value::<Node>(value).expect("a node")
        });
        assert_eq!(waits_for(&machine, node.as_ref()).as_deref().unwrap_or("-"), expected);
    }

    fn exists(status: &str, reason: &str, message: &str) -> Value {
        json!([{"type": "InstanceExists", "status": status, "reason": reason, "message": message}])
    }

    #[test]
    fn a_machine_that_comes_says_what_is_next() {
        check(json!({}), None, "a first look");
        let not_created = |message| {
            json!({"status": {"phase": "Provisioning",
            "conditions": exists("False", "InstanceNotCreated", message)}})
        };
        check(not_created("Instance has not been created"), None, "an instance");
        let message = "Instance has not been created: the quota is used up";
        check(not_created(message), None, "an instance: the quota is used up");
        for (state, text) in [("Starting", "the instance: Starting"), ("Running", "a Node to register")] {
            let machine = json!({"metadata": {"annotations": {"machine.openshift.io/instance-state": state}},
                "status": {"phase": "Provisioned", "conditions": exists("True", "", "")}});
            check(machine, None, text);
        }
    }

    #[test]
    fn a_machine_that_runs_waits_for_a_node_that_does_not_work() {
        let machine = json!({"status": {"phase": "Running", "conditions": exists("True", "", "")}});
        for (node, text) in [
            (Some("True"), "-"),
            (Some("False"), "its Node to be Ready"),
            (Some("Unknown"), "its Node, which is silent"),
            (None, "its Node, which is gone"),
        ] {
            check(machine.clone(), node, text);
        }
    }

    #[test]
    fn a_machine_that_is_in_trouble_says_which() {
        let message = "Failed to check if machine exists: the cloud does not answer";
        let machine = json!({"status": {"conditions": exists("Unknown", "ErrorCheckingProvider", message)}});
        check(machine, None, "the cloud: the cloud does not answer");
        let machine = json!({"status": {"phase": "Running",
            "conditions": exists("False", "InstanceMissing", "Instance not found on provider")}});
        check(machine, Some("Unknown"), "a second look: its instance is gone");
        let machine = json!({"status": {"phase": "Failed", "errorMessage": "no such size"}});
        check(machine, None, "nothing, it failed: no such size");
        let machine = json!({"status": {"conditions": [{"type": "SpecValid", "status": "False", "message": "zone: bad"}]}});
        check(machine, None, "a valid spec: zone: bad");
    }

    #[test]
    fn a_machine_that_goes_says_what_holds_it() {
        let deleting = |hooks: Value, drained: Value| {
            json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"lifecycleHooks": hooks},
            "status": {"phase": "Deleting", "nodeRef": {"name": "n"}, "conditions": drained}})
        };
        let hook = json!([{"name": "example.com/move", "owner": "mover"}]);
        let drained =
            |status: &str, message: &str| json!([{"type": "Drained", "status": status, "message": message}]);
        check(
            deleting(json!({"preDrain": hook}), json!([])),
            None,
            "mover, before the drain (example.com/move)",
        );
        check(deleting(json!({}), json!([])), None, "the drain of its Node");
        check(
            deleting(json!({}), drained("False", "could not drain machine: pod `a/b` has not ended yet")),
            None,
            "the drain: pod `a/b` has not ended yet",
        );
        check(
            deleting(json!({"preTerminate": hook}), drained("True", "")),
            None,
            "mover, before the termination (example.com/move)",
        );
        check(deleting(json!({}), drained("True", "")), None, "its instance to go");
    }
}
