//! The new state of a Machine as it is being decided, and the least patches that lead to it.
//!
//! Order of the actions: events about what happened, the main patch (an id that is not recorded could be lost), the
//! status patch, the metric of the phase, events about what the Machine says now. A status patch moves `lastUpdated`
//! if and only if it changes anything else.

use mapi_api::condition::{self, severity, whole_seconds};
use mapi_api::machine::{LifecycleHook, MachineStatus, phase};
use mapi_api::names::{annotation, condition as types, finalizer, label, reason};
use mapi_api::{Condition, Conditions, Object, RawJson, Time};
use mapi_cloud::{Activity, Answer, Failure, Instance};
use serde_json::{Value, json};

use super::{Facts, events, memory};
use crate::{Action, Kind, Measure, Plan, Sub, Target, patch};

/// State of an instance of which nothing is expected any more.
const UNKNOWN: &str = "Unknown";

/// The new state of a Machine.
pub(super) struct Draft<'a> {
    facts: &'a Facts<'a>,
    status: MachineStatus,
    main: Value,
    happened: Vec<Action>,
    afterwards: Vec<Action>,
}

impl<'a> Draft<'a> {
    /// The stored state with what depends on the Machine alone brought up to date: ownership, hooks, the phase of a
    /// Machine that is being deleted, and no error unless it failed.
    pub(super) fn new(facts: &'a Facts<'a>) -> Self {
        let machine = facts.machine;
        let mut draft = Self {
            facts,
            status: machine.status.clone(),
            main: json!({}),
            happened: vec![],
            afterwards: vec![],
        };
        if let Some(owned) = facts.ownership_patch() {
            draft.status.conditions = serde_json::from_value(owned["status"]["conditions"].clone())
                .expect("an ownership of ours is recorded as a list of conditions");
        }
        let hooks = &machine.spec.lifecycle_hooks;
        draft.condition(hook_condition(types::DRAINABLE, "Drain", &hooks.pre_drain));
        draft.condition(hook_condition(types::TERMINABLE, "Terminate", &hooks.pre_terminate));
        if machine.is_deleting() {
            draft.phase(phase::DELETING);
        } else if machine.phase() != phase::FAILED {
            draft.clear_error();
        }
        draft
    }

    /// Sets a condition.
    pub(super) fn condition(&mut self, condition: Condition) {
        condition::set(&mut self.status.conditions, condition, self.facts.now);
    }

    /// The spec was accepted. Written only where the opposite was: a healthy Machine costs no write for it.
    pub(super) fn spec_is_valid(&mut self) {
        if self.status.conditions.find(types::SPEC_VALID).is_some() {
            self.condition(Condition::yes(types::SPEC_VALID));
        }
    }

    /// Sets a phase other than Failed.
    pub(super) fn phase(&mut self, phase: &str) {
        self.status.phase = Some(phase.into());
        self.clear_error();
    }

    fn clear_error(&mut self) {
        self.status.error_reason = None;
        self.status.error_message = None;
    }

    /// Sets phase Failed, with its cause, and takes back what was said of the instance's state.
    pub(super) fn fail(&mut self, reason: Option<&str>, message: &str) {
        self.status.phase = Some(phase::FAILED.into());
        self.status.error_reason = reason.map(Into::into);
        self.status.error_message = Some(message.into());
        self.annotate(annotation::INSTANCE_STATE, UNKNOWN);
        if let Some(status) = self.status.provider_status.take() {
            self.status.provider_status = Some(without_state(status));
        }
    }

    /// Takes over the provider status of an answer, if it says something else.
    pub(super) fn provider_status(&mut self, answer: &Answer) {
        let Some(new) = &answer.provider_status else { return };
        // Texts differ where values do not: servers sort keys.
        if self.status.provider_status.as_ref().is_none_or(|old| old.value() != new.value()) {
            self.status.provider_status = Some(new.clone());
        }
    }

    /// Takes over what identifies an instance and where it is. Fields that the cloud leaves empty are left alone.
    pub(super) fn adopt(&mut self, instance: &Instance) {
        let machine = self.facts.machine;
        if let Some(id) = instance.provider_id.as_deref().filter(|id| !id.is_empty())
            && machine.provider_id() != Some(id)
        {
            self.main["spec"]["providerID"] = id.into();
        }
        let places = [
            (label::REGION, &instance.region),
            (label::ZONE, &instance.zone),
            (label::INSTANCE_TYPE, &instance.instance_type),
        ];
        for (key, value) in places {
            if !value.is_empty() && machine.label(key) != Some(value) {
                self.main["metadata"]["labels"][key] = value.as_str().into();
            }
        }
        if instance.is_interruptible {
            if machine.label(label::INTERRUPTIBLE).is_none() {
                self.main["metadata"]["labels"][label::INTERRUPTIBLE] = "".into();
            }
            // From there nodelink copies it to the Node.
            if !machine.spec.metadata.labels.contains_key(label::INTERRUPTIBLE) {
                self.main["spec"]["metadata"]["labels"][label::INTERRUPTIBLE] = "".into();
            }
        }
    }

    /// Takes over the state of an instance, in the cloud's word.
    pub(super) fn state(&mut self, instance: &Instance) {
        if !instance.state.is_empty() {
            self.annotate(annotation::INSTANCE_STATE, &instance.state);
        }
    }

    fn annotate(&mut self, key: &str, value: &str) {
        if self.facts.machine.annotation(key) == Some(value) {
            // Also takes back a value that this draft was about to write.
            if let Some(annotations) =
                self.main.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
            {
                annotations.remove(key);
            }
        } else {
            self.main["metadata"]["annotations"][key] = value.into();
        }
    }

    /// Takes over the addresses of an instance.
    pub(super) fn addresses(&mut self, instance: &Instance) {
        self.status.addresses.clone_from(&instance.addresses);
    }

    /// Whether the instance has an address or an id, with what this draft takes over.
    pub(super) fn is_provisioned(&self) -> bool {
        !self.status.addresses.is_empty()
            || self.facts.machine.provider_id().is_some()
            || self.main.pointer("/spec/providerID").is_some()
    }

    /// Tells what the cloud did, and what it failed to do.
    pub(super) fn tell(&mut self, answer: &Answer) {
        self.happened.extend(events::of_taken(self.facts.machine, answer));
        let Some(failure) = &answer.failure else { return };
        self.happened.extend(events::of_failure(self.facts.machine, failure));
        self.happened.extend(failure_measure(self.facts, failure));
    }

    /// Runs an action once everything else went through.
    pub(super) fn then(&mut self, action: Action) {
        self.afterwards.push(action);
    }

    /// Whether the status will be written.
    pub(super) fn changes_status(&self) -> bool {
        patch::between(&self.facts.machine.status, &self.status).is_some()
    }

    /// Whether all that the status will say anew is in the provider status.
    pub(super) fn changes_only_provider_status(&self) -> bool {
        let stored = &self.facts.machine.status;
        let rest = MachineStatus { provider_status: stored.provider_status.clone(), ..self.status.clone() };
        self.status.provider_status != stored.provider_status && rest == *stored
    }

    /// The same without the new provider status.
    pub(super) fn without_provider_status(mut self) -> Self {
        self.status.provider_status.clone_from(&self.facts.machine.status.provider_status);
        self
    }

    /// Only the events about what happened.
    pub(super) fn into_happened(self) -> Vec<Action> {
        self.happened
    }

    /// The plan that leads to this state.
    pub(super) fn plan(self) -> Plan {
        let Self { facts, mut status, main, happened, afterwards } = self;
        let machine = facts.machine;
        let mut actions = happened;
        if !is_empty(&main) {
            actions.push(patch_machine(facts, Sub::Main, main));
        }
        if patch::between(&machine.status, &status).is_some() {
            status.last_updated = Some(Time(whole_seconds(facts.now)));
            let change = patch::between(&machine.status, &status).expect("it has changed already");
            actions.push(patch_machine(facts, Sub::Status, json!({ "status": change })));
            actions.extend(phase_measure(facts, &status));
        }
        actions.extend(afterwards);
        Plan::actions(actions)
    }
}

/// Merge patches without a leaf change nothing.
fn is_empty(patch: &Value) -> bool {
    patch.as_object().is_some_and(|fields| fields.values().all(is_empty))
}

/// Time from creation to a new phase. Deleting is not measured: it says when somebody changed their mind.
fn phase_measure(facts: &Facts, status: &MachineStatus) -> Option<Action> {
    let machine = facts.machine;
    let phase = status.phase.as_deref().filter(|p| *p != machine.phase() && *p != phase::DELETING)?;
    let created = machine.metadata.creation_timestamp.as_ref()?.0;
    let seconds = memory::since(facts.now, created).as_secs_f64();
    Some(Action::Measure(Measure::PhaseTransition { phase: phase.into(), seconds }))
}

fn failure_measure(facts: &Facts, failure: &Failure) -> Option<Action> {
    let activity = failure.activity;
    match activity {
        Activity::Observe => None,
        Activity::Create | Activity::Update | Activity::Delete => {
            let reason = failure.error.kind.word();
            Some(Action::Measure(Measure::InstanceFailed { activity, key: facts.machine.key(), reason }))
        }
    }
}

/// What hooks do to a point of the removal. The list is printed as the original prints it: people match on it.
fn hook_condition(type_: &str, operation: &str, hooks: &[LifecycleHook]) -> Condition {
    if hooks.is_empty() {
        return Condition::yes(type_);
    }
    let entries: Vec<_> =
        hooks.iter().map(|LifecycleHook { name, owner }| format!("{{Name:{name} Owner:{owner}}}")).collect();
    let message = format!("{operation} operation currently blocked by: [{}]", entries.join(" "));
    Condition::no(type_, severity::WARNING, reason::HOOK_PRESENT, message)
}

/// A provider status whose top-level states, where they are texts, say `Unknown`.
fn without_state(status: RawJson) -> RawJson {
    let mut value = status.value();
    let mut is_changed = false;
    for field in ["instanceState", "vmState"] {
        if let Some(state) = value.get_mut(field).filter(|s| s.as_str().is_some_and(|s| s != UNKNOWN)) {
            *state = UNKNOWN.into();
            is_changed = true;
        }
    }
    if is_changed { value.into() } else { status }
}

/// A patch of the Machine.
pub(super) fn patch_machine(facts: &Facts, sub: Sub, patch: Value) -> Action {
    Action::Patch { target: Target::of(Kind::Machine, facts.machine), sub, patch }
}

/// A plan of at most one status patch.
pub(super) fn status_patch(facts: &Facts, patch: Option<Value>) -> Plan {
    Plan::actions(patch.map(|patch| patch_machine(facts, Sub::Status, patch)).into_iter().collect())
}

/// Adds our finalizer after those that are there.
pub(super) fn add_finalizer(facts: &Facts) -> Action {
    let others = facts.machine.metadata.finalizers.iter().flatten().map(String::as_str);
    let all: Vec<_> = others.chain([finalizer::MACHINE]).collect();
    patch_machine(facts, Sub::Main, json!({"metadata": {"finalizers": all}}))
}

/// Removes our finalizer and leaves the others in their order.
pub(super) fn remove_finalizer(facts: &Facts) -> Action {
    let others = facts.machine.metadata.finalizers.iter().flatten().filter(|f| *f != finalizer::MACHINE);
    let others: Vec<_> = others.collect();
    patch_machine(facts, Sub::Main, json!({"metadata": {"finalizers": others}}))
}

/// Protects a Machine before anything is made for it. The patch's own event wakes the key again.
pub(super) fn protect(facts: &Facts) -> Plan {
    let mut plan = status_patch(facts, facts.ownership_patch());
    plan.actions.insert(0, add_finalizer(facts));
    plan
}
