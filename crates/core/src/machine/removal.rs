//! What a cloud's answer means for a Machine that is to go.
//!
//! I3: the finalizer goes only after the cloud said, later than the last terminate, that nothing is there, and after
//! that answer can be believed. An instance whose create may still be under way is not in any answer yet.

use std::time::Duration;

use mapi_api::names::condition as types;
use mapi_api::{Condition, Conditions, Node, Object};
use mapi_cloud::{Activity, Answer, Kind as Class, Sighting, Want};

use super::draft::{self, Draft};
use super::invalid::{self, Complaint};
use super::memory::{self, Creates, later, since, until};
use super::{Facts, Serving, events, is_recorded, may_have_created};
use crate::{Action, Kind, Plan, Target};

/// Thirty seconds: a call to a cloud is given up by then, so a create that a process sent before the Machine was marked
/// has reached the cloud or never will. What the cloud needs to show it comes on top. Shorter leaks (I2), longer only
/// waits.
const CREATE_CALL: Duration = Duration::from_secs(30);

/// As for live machines: half a minute at first, five minutes at most.
const POLL_FIRST: Duration = Duration::from_secs(30);
const POLL_MOST: Duration = Duration::from_secs(300);

/// No answer makes a key hot.
const LEAST: Duration = Duration::from_secs(1);

/// No cloud can be asked. The finalizer goes only if nothing can have been created.
pub(super) fn unserved(facts: &Facts, complaint: Complaint) -> Plan {
    if !may_have_created(facts.machine) {
        return finish(facts, vec![]);
    }
    let message = format!("{}; the instance cannot be removed before", complaint.message);
    keep_for_spec(Draft::new(facts), facts, Complaint { message, ..complaint })
}

/// The condition says what is missing (spec item 4). Nothing is retried: the object's own change wakes its key.
fn keep_for_spec(mut draft: Draft, facts: &Facts, complaint: Complaint) -> Plan {
    let condition = complaint.condition();
    let stored = facts.machine.status.conditions.find(types::SPEC_VALID);
    if stored.is_none_or(|c| !c.same_state(&condition)) {
        draft.then(events::warning(facts.machine, "FailedValidate", "Validate", complaint.message.clone()));
    }
    draft.condition(condition);
    draft.plan().gate(complaint.reason, complaint.message)
}

pub(super) fn settle(facts: &Facts, answer: &Answer) -> Plan {
    let mut draft = Draft::new(facts);
    draft.tell(answer);
    let is_refused = answer.failure.as_ref().is_some_and(|f| f.error.kind == Class::Invalid);
    match &answer.sighting {
        Sighting::Unknown if !may_have_created(facts.machine) => finish(facts, draft.into_happened()),
        Sighting::Unknown => keep(draft, facts, answer, None),
        Sighting::Present(instance) => {
            // It was seen: from now on its absence is believed at once.
            draft.condition(Condition::yes(types::INSTANCE_EXISTS));
            draft.state(instance);
            keep(draft, facts, answer, instance.look_again)
        }
        // Item 23: a spec that the cloud refuses holds nothing up if nothing is recorded.
        Sighting::Absent
            if (answer.failure.is_none() && answer.gate.is_none())
                || (is_refused && !is_recorded(facts.machine)) =>
        {
            match doubt(facts, answer) {
                None => finish(facts, draft.into_happened()),
                Some(left) => draft.plan().after(left).gate(
                    "WaitingForSettling",
                    "a create may have been asked for, its instance may still appear",
                ),
            }
        }
        // No live instance, but what belongs to it is not gone.
        Sighting::Absent => keep(draft, facts, answer, None),
    }
}

fn keep(mut draft: Draft, facts: &Facts, answer: &Answer, look_again: Option<Duration>) -> Plan {
    draft.provider_status(answer);
    match answer.failure.as_ref().filter(|f| f.error.kind == Class::Invalid) {
        Some(failure) => draft.condition(invalid::refused(&failure.error.message).condition()),
        None if answer.failure.is_none() => draft.spec_is_valid(),
        None => {}
    }
    let next = match (&answer.failure, &answer.gate, look_again) {
        (Some(failure), _, _) => memory::delay(failure, facts.memory.failures(Want::Absent)),
        (None, Some(gate), _) => gate.again.max(LEAST),
        (None, None, Some(look)) => look.max(LEAST),
        (None, None, None) => poll(facts, draft.changes_status()),
    };
    let plan = draft.plan().after(next);
    match (&answer.failure, &answer.gate) {
        (Some(failure), _) => plan.gate("InstanceNotRemoved", failure.error.to_string()),
        (None, Some(gate)) => plan.gate(gate.reason, gate.message.clone()),
        (None, None) => plan.gate("WaitingForInstance", "the instance is still there"),
    }
}

/// How long an "absent" is not believed yet: nobody saw the instance, and a create may be under way or out of sight.
fn doubt(facts: &Facts, answer: &Answer) -> Option<Duration> {
    let machine = facts.machine;
    // A Node is no sighting: an instance may join before the cloud's own looks show it.
    let was_seen = machine.status.conditions.is_true(types::INSTANCE_EXISTS)
        || !machine.status.addresses.is_empty()
        || answer.taken.contains(&Activity::Delete);
    let none_made = match facts.memory.creates {
        Creates::Void => true,
        Creates::Unknown => !may_have_created(machine),
    };
    if was_seen || none_made {
        return None;
    }
    let settle = match facts.serving {
        Serving::By { settle } => *settle,
        Serving::Missing { .. } | Serving::Unknown { .. } => Duration::ZERO,
    };
    let marked = machine.metadata.deletion_timestamp.as_ref().map_or(facts.now, |time| time.0);
    until(facts.now, later(marked, settle + CREATE_CALL))
}

/// The Node goes before the finalizer, so that none is left behind by a crash in between.
fn finish(facts: &Facts, mut actions: Vec<Action>) -> Plan {
    actions.extend(own_node(facts).map(|node| Action::Delete(Target::of(Kind::Node, node))));
    actions.push(draft::remove_finalizer(facts));
    Plan::actions(actions)
}

/// The Node of this Machine and no other that took its name (I19): by UID where one is recorded, else by provider id.
fn own_node<'a>(facts: &Facts<'a>) -> Option<&'a Node> {
    let machine = facts.machine;
    let node_ref = machine.status.node_ref.as_ref()?;
    let node = facts.node.filter(|node| Some(node.name()) == machine.node_name())?;
    match node_ref.uid.as_deref().filter(|uid| !uid.is_empty()) {
        Some(uid) => node.uid() == uid,
        None => machine.provider_id().is_some() && machine.provider_id() == node.provider_id(),
    }
    .then_some(node)
}

fn poll(facts: &Facts, changes: bool) -> Duration {
    match facts.machine.metadata.deletion_timestamp.as_ref() {
        Some(marked) if !changes => (since(facts.now, marked.0) / 2).clamp(POLL_FIRST, POLL_MOST),
        Some(_) | None => POLL_FIRST,
    }
}
