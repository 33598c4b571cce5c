//! Repairs without a template: the Machine is deleted, or its bare-metal host is asked to be power-cycled.
//! Never here: whether repairs are allowed.

use mapi_api::Object;
use mapi_api::event::EventType;
use mapi_api::machine::phase;
use mapi_api::names::annotation;
use serde_json::json;

use super::{Assessment, Facts, Target, about_machine, full_name, machine_target};
use crate::{Action, Measure, Sub};

/// All repairs of a pass: each is tried, whatever becomes of the others.
pub(super) fn repairs(facts: &Facts<'_>, assessment: &Assessment) -> Option<Action> {
    let actions: Vec<Action> =
        assessment.repairs(facts).filter_map(|(target, _)| repair(facts, target)).collect();
    (!actions.is_empty()).then_some(Action::Batch(actions))
}

/// One event for each Machine whose repair is skipped and was not on the last pass.
pub(super) fn skips(facts: &Facts<'_>, assessment: &Assessment) -> Vec<Action> {
    let news =
        skipped(facts, assessment).filter(|target| !facts.memory.skipped.contains(target.machine.uid()));
    let text = "has no controller owner, skipping remediation";
    news.map(|target| emit(facts, target, EventType::Normal, "SkippedNoController", text)).collect()
}

/// The Machines whose repair this pass skips; none while repairs are stopped.
pub(super) fn skipped<'f>(
    facts: &'f Facts<'_>,
    assessment: &'f Assessment,
) -> impl Iterator<Item = &'f Target<'f>> {
    let repairs = assessment.repairs(facts).map(|(target, _)| target);
    repairs.filter(|target| !assessment.is_restricted() && is_skipped(facts, target))
}

/// Whether a Machine is not repaired because nobody would make a new one. Any controller counts: the Machine of a
/// control plane is replaced by another kind of set.
pub(super) fn is_skipped(facts: &Facts<'_>, target: &Target<'_>) -> bool {
    facts.settings.template.is_none()
        && !is_power_cycled(facts, target)
        && target.machine.controller_owner().is_none()
}

/// A host that failed to be provisioned is not helped by a power cycle.
fn is_power_cycled(facts: &Facts<'_>, target: &Target<'_>) -> bool {
    facts.settings.is_bare_metal && target.machine.phase() != phase::FAILED
}

fn repair(facts: &Facts<'_>, target: &Target<'_>) -> Option<Action> {
    if is_power_cycled(facts, target) {
        return ask_for_power_cycle(facts, target);
    }
    if is_skipped(facts, target) {
        return None;
    }
    let done = "has been remediated by requesting to delete Machine object";
    Some(Action::Try {
        action: Box::new(Action::Delete(machine_target(target))),
        success: vec![
            emit(facts, target, EventType::Normal, "MachineDeleted", done),
            Action::Measure(Measure::Remediated { key: facts.check.key() }),
        ],
        failure: vec![emit(
            facts,
            target,
            EventType::Warning,
            "MachineDeletionFailed",
            "could not be deleted",
        )],
    })
}

/// The annotation is answered by the machine's own cloud, which also removes it.
fn ask_for_power_cycle(facts: &Facts<'_>, target: &Target<'_>) -> Option<Action> {
    if target.machine.annotation(annotation::EXTERNAL_REMEDIATION).is_some() {
        return None;
    }
    let action = Action::Patch {
        target: machine_target(target),
        sub: Sub::Main,
        patch: json!({"metadata": {"annotations": {annotation::EXTERNAL_REMEDIATION: ""}}}),
    };
    let done = "has been annotated for external remediation";
    let failed = "could not be annotated for external remediation";
    Some(Action::Try {
        action: Box::new(action),
        success: vec![emit(facts, target, EventType::Normal, "ExternalAnnotationAdded", done)],
        failure: vec![emit(facts, target, EventType::Warning, "ExternalAnnotationFailed", failed)],
    })
}

fn emit(
    facts: &Facts<'_>,
    target: &Target<'_>,
    type_: EventType,
    reason: &'static str,
    text: &str,
) -> Action {
    let note = format!("Machine {} {text}", full_name(facts.check, target));
    about_machine(target, type_, reason, "Remediate", note)
}
