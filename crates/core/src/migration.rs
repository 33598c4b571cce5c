//! Who owns an object while a cluster migrates to Cluster API: the gate in front of every controller.

use mapi_api::condition::{self, Condition, ConditionStatus, severity};
use mapi_api::names::{authority, condition as types, reason};
use mapi_api::{Conditions, Timestamp};
use serde_json::{Value, json};

/// What the fields `authoritativeAPI` of an object say, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Ownership {
    /// These controllers own the object; `Some` is the status patch that records it.
    Ours(Option<Value>),
    /// Somebody else does, or will; `Some` is the status patch that records it. Nothing else may be done.
    Theirs(Option<Value>),
}

/// Decides by the spec's and the status's `authoritativeAPI` and the stored conditions. With the feature gate off every
/// object is ours and no condition is written.
pub fn ownership(
    is_gate_on: bool,
    spec: Option<&str>,
    status: Option<&str>,
    conditions: &[Condition],
    now: Timestamp,
) -> Ownership {
    let status = status.unwrap_or_default();
    if !is_gate_on {
        return Ownership::Ours(None);
    }
    match status {
        "" => Ownership::Theirs(
            spec.filter(|s| !s.is_empty()).map(|spec| json!({"status": {"authoritativeAPI": spec}})),
        ),
        authority::CLUSTER_API | authority::MIGRATING => {
            let paused = Condition {
                status: ConditionStatus::TRUE,
                ..Condition::no(types::PAUSED, "", reason::NOT_MACHINE_API, message(status))
            };
            Ownership::Theirs(record(conditions, paused, now))
        }
        authority::MACHINE_API => {
            let running = Condition::no(
                types::PAUSED,
                severity::INFO,
                reason::MACHINE_API,
                message(authority::MACHINE_API),
            );
            Ownership::Ours(record(conditions, running, now))
        }
        _ => Ownership::Theirs(None),
    }
}

/// Whether controllers that only look at an object must leave it alone. Unlike [`ownership`] it does not depend on the
/// feature gate's writer having been here first.
pub fn is_left_alone(is_gate_on: bool, status: Option<&str>, conditions: &[Condition]) -> bool {
    is_gate_on
        && (conditions.is_true(types::PAUSED) || !matches!(status, None | Some("" | authority::MACHINE_API)))
}

fn message(authority: &str) -> String {
    format!("The AuthoritativeAPI status is set to '{authority}'")
}

/// Only the conditions are patched: phase and errors stay as they are.
fn record(conditions: &[Condition], condition: Condition, now: Timestamp) -> Option<Value> {
    let mut list = conditions.to_vec();
    condition::set(&mut list, condition, now).then(|| json!({"status": {"conditions": list}}))
}
