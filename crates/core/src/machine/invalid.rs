//! Specs that cannot be acted upon: what is wrong with them, and how that is told (spec item 6).
//! Nothing is retried: the object's own change wakes its key.

use mapi_api::names::{condition as types, finalizer, label, reason};
use mapi_api::{Condition, Conditions, Object};

use super::draft::{self, Draft};
use super::{Facts, Serving, events, is_recorded};
use crate::Plan;

/// What is wrong with a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Reason of condition `SpecValid`.
    pub reason: &'static str,
    /// Path, value, and what is allowed.
    pub message: String,
}

impl Complaint {
    /// As condition `SpecValid`.
    pub(super) fn condition(&self) -> Condition {
        let severity = mapi_api::condition::severity::ERROR;
        Condition::no(types::SPEC_VALID, severity, self.reason, self.message.clone())
    }
}

/// Everything that is wrong before a cloud is asked. The reason is that of the first complaint.
pub(super) fn complaint(facts: &Facts) -> Option<Complaint> {
    let no_label = facts.machine.label(label::CLUSTER).is_none_or(str::is_empty).then(|| Complaint {
        reason: reason::MISSING_LABEL,
        message: format!(
            "metadata.labels: missing {} label: its value must be the id of the cluster",
            label::CLUSTER
        ),
    });
    match (no_label, unserved(facts.serving)) {
        (Some(first), Some(second)) => {
            Some(Complaint { message: format!("{}; {}", first.message, second.message), ..first })
        }
        (first, second) => first.or(second),
    }
}

/// Why no cloud can be asked, if none can.
pub(super) fn unserved(serving: &Serving) -> Option<Complaint> {
    match serving {
        Serving::By { settle: _ } => None,
        Serving::Missing { served } => Some(Complaint {
            reason: reason::MISSING_PROVIDER_SPEC,
            message: format!(
                "spec.providerSpec.value: value field must be set to an object whose kind is one of {}",
                list(served)
            ),
        }),
        Serving::Unknown { kind, served } => Some(Complaint {
            reason: reason::UNKNOWN_PROVIDER_KIND,
            message: format!(
                "spec.providerSpec.value.kind: `{kind}` is served by no cloud here: must be one of {}",
                list(served)
            ),
        }),
    }
}

fn list(kinds: &[String]) -> String {
    if kinds.is_empty() {
        return "(no kind is served here)".into();
    }
    kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
}

/// Tells what is wrong, once. The finalizer is added only if an instance may be left behind without it.
pub(super) fn plan(facts: &Facts, complaint: Complaint) -> Plan {
    let mut draft = Draft::new(facts);
    let condition = complaint.condition();
    let is_new =
        facts.machine.status.conditions.find(types::SPEC_VALID).is_none_or(|c| !c.same_state(&condition));
    draft.condition(condition);
    if is_new {
        draft.then(events::warning(facts.machine, "FailedValidate", "Validate", complaint.message.clone()));
    }
    let mut plan = draft.plan().gate(complaint.reason, complaint.message);
    if is_recorded(facts.machine) && !facts.machine.has_finalizer(finalizer::MACHINE) {
        plan.actions.insert(0, draft::add_finalizer(facts));
    }
    plan
}

/// The complaint of a cloud about a provider spec.
pub(super) fn refused(message: &str) -> Complaint {
    Complaint {
        reason: reason::INVALID_PROVIDER_SPEC,
        message: format!("spec.providerSpec.value: {message}"),
    }
}
