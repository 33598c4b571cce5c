//! The status of a check: counts and conditions. Never here: repairs.

use mapi_api::condition::{self, Condition, severity};
use mapi_api::machine_health_check::MachineHealthCheckStatus;
use mapi_api::names::{condition as types, reason};
use mapi_api::{Conditions, MachineHealthCheck, Timestamp};
use serde_json::json;

use super::settings::Complaint;
use super::{Assessment, Facts};
use crate::plan::Target;
use crate::{Action, Kind, Plan, Sub, patch};

/// The plan for a check that cannot be used: a condition, and nothing until somebody edits it.
pub(super) fn refuse(check: &MachineHealthCheck, complaint: &Complaint, now: Timestamp) -> Plan {
    let Complaint { reason, message } = complaint;
    let mut wanted = check.status.clone();
    let invalid = Condition::no(types::SPEC_VALID, severity::ERROR, reason, message.as_str());
    condition::set(&mut wanted.conditions, invalid, now);
    let actions = write(check, &check.status, &wanted).into_iter().collect();
    Plan::actions(actions).gate(reason, message.as_str())
}

/// The status while repairs are allowed.
pub(super) fn allowed(facts: &Facts<'_>, assessment: &Assessment) -> MachineHealthCheckStatus {
    let mut status = counted(facts, assessment);
    status.remediations_allowed = Some(assessment.remediations_allowed());
    condition::set(&mut status.conditions, Condition::yes(types::REMEDIATION_ALLOWED), facts.now);
    status
}

/// The status while too many are unhealthy.
pub(super) fn restricted(facts: &Facts<'_>, assessment: &Assessment) -> MachineHealthCheckStatus {
    let mut status = counted(facts, assessment);
    status.remediations_allowed = Some(0);
    let message = format!(
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy ({})",
        assessment.counts(facts)
    );
    let stopped =
        Condition::no(types::REMEDIATION_ALLOWED, severity::WARNING, reason::TOO_MANY_UNHEALTHY, message);
    condition::set(&mut status.conditions, stopped, facts.now);
    status
}

/// Whether the stored status says that repairs are stopped already.
pub(super) fn was_restricted(check: &MachineHealthCheck) -> bool {
    let stored = check.status.conditions.find(types::REMEDIATION_ALLOWED);
    stored.is_some_and(|c| !c.is_true() && c.reason == reason::TOO_MANY_UNHEALTHY)
}

/// The write that turns one status into another, if they differ.
pub(super) fn write(
    check: &MachineHealthCheck,
    from: &MachineHealthCheckStatus,
    to: &MachineHealthCheckStatus,
) -> Option<Action> {
    let patch = patch::between(from, to)?;
    let target = Target::of(Kind::MachineHealthCheck, check);
    Some(Action::Patch { target, sub: Sub::Status, patch: json!({ "status": patch }) })
}

fn counted(facts: &Facts<'_>, assessment: &Assessment) -> MachineHealthCheckStatus {
    let mut status = facts.check.status.clone();
    let count = |n: usize| Some(i64::try_from(n).unwrap_or(i64::MAX));
    status.expected_machines = count(assessment.total);
    status.current_healthy = count(assessment.healthy_count);
    // Said only to somebody who was told the contrary.
    if status.conditions.find(types::SPEC_VALID).is_some() {
        condition::set(&mut status.conditions, Condition::yes(types::SPEC_VALID), facts.now);
    }
    if facts.settings.template.is_none() {
        condition::remove(&mut status.conditions, types::TEMPLATE_AVAILABLE);
        condition::remove(&mut status.conditions, types::REQUEST_AVAILABLE);
    }
    status
}
