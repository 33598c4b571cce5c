//! What a cloud's answer means for a Machine that is to live.

use std::time::Duration;

use mapi_api::condition::severity;
use mapi_api::machine::phase;
use mapi_api::names::{condition as types, reason};
use mapi_api::{Condition, Conditions, Object};
use mapi_cloud::{Activity, Answer, Failure, Instance, Kind as Class, Sighting, Want};

use super::draft::Draft;
use super::memory::{self, Reaction, later, reaction, since, until};
use super::{Facts, Serving, events, invalid};
use crate::Plan;
use crate::spread::spread;

/// Ten seconds: longer than the glitches of load balancers and list caches that answer "none" for an instance that
/// lives, and short beside the minutes that a replacement takes. A Failed Machine never comes back, so one answer is
/// not enough (item 21).
const CONFIRM: Duration = Duration::from_secs(10);

/// Ten seconds: an instance that boots quickly has its addresses by then, and one write tells all of it. Longer would
/// leave the Machine saying "not created" for long. Details in the provider status wait as long for company.
const PATIENCE: Duration = Duration::from_secs(10);

/// Half a minute, as in the original: nothing was announced yet and a user watches.
const POLL_FIRST: Duration = Duration::from_secs(30);

/// Five minutes: a look costs a cloud call, and what stays unchanged for minutes stays so (item 36).
const POLL_MOST: Duration = Duration::from_secs(300);

/// Ten minutes, as in the original: how long an instance that vanished unannounced goes unnoticed. Spread over four
/// fifths to six fifths of it, so that a restart does not bring all machines back at once, time after time.
const RESYNC: Duration = Duration::from_secs(600);

/// No answer makes a key hot.
const LEAST: Duration = Duration::from_secs(1);

/// Which question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    /// The first look, before anything may be created.
    First,
    /// A create was allowed.
    Create,
    /// An instance is recorded.
    Keep,
}

impl Round {
    fn want(self) -> Want {
        match self {
            Self::First | Self::Keep => Want::Look,
            Self::Create => Want::Present,
        }
    }
}

pub(super) fn settle(facts: &Facts, answer: &Answer, round: Round) -> Plan {
    let mut draft = Draft::new(facts);
    if let Some(failure) = &answer.failure {
        match reaction(failure.error.kind, failure.activity) {
            Reaction::GiveUp => return give_up(draft, facts, answer, failure, round),
            Reaction::Retry { first: _, most: _ } => {}
        }
    }
    draft.tell(answer);
    judge_spec(&mut draft, facts, answer);
    // What holds the question up decides when it is asked again; otherwise the sighting does.
    let held = match (&answer.failure, &answer.gate) {
        (Some(failure), _) => Some(memory::delay(failure, facts.memory.failures(round.want()))),
        (None, Some(gate)) => Some(gate.again.max(LEAST)),
        (None, None) => None,
    };
    let plan = match &answer.sighting {
        Sighting::Unknown => unknown(draft, facts, answer, held),
        Sighting::Absent => match round {
            Round::First | Round::Create => not_created(draft, facts, answer, held),
            Round::Keep => missing(draft, facts, answer, held),
        },
        Sighting::Present(instance) => present(draft, facts, answer, instance, held),
    };
    match &answer.gate {
        Some(gate) => plan.gate(gate.reason, gate.message.clone()),
        None => plan,
    }
}

/// What the answer says of the spec. A change of a live instance may be refused: that is told, and the instance goes on.
fn judge_spec(draft: &mut Draft, facts: &Facts, answer: &Answer) {
    let was_refused = || {
        let stored = facts.machine.status.conditions.find(types::SPEC_VALID);
        stored.is_some_and(|c| c.reason == reason::INVALID_PROVIDER_SPEC)
    };
    match &answer.failure {
        Some(Failure { error, .. }) if error.kind == Class::Invalid => {
            draft.condition(invalid::refused(&error.message).condition());
        }
        // The cloud did not come to judge a spec that it refused before.
        Some(Failure { activity: Activity::Observe | Activity::Update, .. }) if was_refused() => {}
        Some(_) | None => draft.spec_is_valid(),
    }
}

/// The spec will never be accepted: a Machine that has nothing fails for good. One whose instance is recorded is only
/// told about it while its spec cannot be read: a slip in an edit, which does not reach the instance anyhow, must not
/// end a machine that works.
fn give_up(mut draft: Draft, facts: &Facts, answer: &Answer, failure: &Failure, round: Round) -> Plan {
    let message = &failure.error.message;
    let complaint = invalid::refused(message);
    let condition = complaint.condition();
    // A look creates nothing: what was refused is the reading of the spec.
    if round == Round::Keep && failure.activity == Activity::Create {
        let stored = facts.machine.status.conditions.find(types::SPEC_VALID);
        if stored.is_none_or(|c| !c.same_state(&condition)) {
            draft.then(events::warning(
                facts.machine,
                "FailedValidate",
                "Validate",
                complaint.message.clone(),
            ));
        }
        draft.condition(condition);
        return draft.plan().gate(complaint.reason, complaint.message);
    }
    draft.tell(answer);
    draft.condition(condition);
    draft.provider_status(answer);
    match &answer.sighting {
        Sighting::Unknown => {}
        Sighting::Absent if facts.machine.is_provisioned() => {}
        Sighting::Absent => draft.condition(nothing_created(Some(message))),
        Sighting::Present(instance) if answer.has_created() => {
            draft.adopt(instance);
            let message = "Failed to check if machine exists: it was not created to the end";
            draft.condition(Condition::unknown(
                types::INSTANCE_EXISTS,
                reason::ERROR_CHECKING_PROVIDER,
                message,
            ));
        }
        Sighting::Present(instance) => {
            draft.adopt(instance);
            draft.addresses(instance);
            draft.condition(Condition::yes(types::INSTANCE_EXISTS));
        }
    }
    draft.fail(Some(reason::INVALID_CONFIGURATION), message);
    draft.plan()
}

fn unknown(mut draft: Draft, facts: &Facts, answer: &Answer, held: Option<Duration>) -> Plan {
    draft.provider_status(answer);
    if let Some(failure) = &answer.failure {
        let message = format!("Failed to check if machine exists: {}", failure.error);
        draft.condition(Condition::unknown(types::INSTANCE_EXISTS, reason::ERROR_CHECKING_PROVIDER, message));
    }
    let changes = draft.changes_status();
    draft.plan().after(held.unwrap_or_else(|| poll(facts, changes)))
}

fn not_created(mut draft: Draft, facts: &Facts, answer: &Answer, held: Option<Duration>) -> Plan {
    draft.provider_status(answer);
    let failed = answer.failure.as_ref().map(|f| f.error.message.as_str());
    let waiting = answer.gate.as_ref().map(|gate| gate.message.as_str());
    draft.condition(nothing_created(failed.or(waiting)));
    let was_tried = facts.machine.status.conditions.find(types::INSTANCE_EXISTS).is_some();
    if facts.machine.phase().is_empty() {
        draft.phase(phase::PROVISIONING);
    }
    let changes = draft.changes_status();
    let plan = draft.plan();
    match held {
        Some(delay) => plan.after(delay),
        // M03: the event of this write brings the round that may create.
        None if facts.machine.phase().is_empty() || !was_tried => plan,
        None => plan.after(poll(facts, changes)),
    }
}

fn nothing_created(why: Option<&str>) -> Condition {
    let message = match why {
        Some(why) => format!("Instance has not been created: {why}"),
        None => "Instance has not been created".into(),
    };
    Condition::no(types::INSTANCE_EXISTS, severity::WARNING, reason::INSTANCE_NOT_CREATED, message)
}

/// A recorded instance is not there: believed only if a second look, some time after the first, says the same.
fn missing(mut draft: Draft, facts: &Facts, answer: &Answer, held: Option<Duration>) -> Plan {
    let stored = facts.machine.status.conditions.find(types::INSTANCE_EXISTS);
    let first_look =
        stored.filter(|c| c.reason == reason::INSTANCE_MISSING).and_then(|c| c.last_transition_time.as_ref());
    draft.provider_status(answer);
    if let Some(delay) = held {
        // The cloud itself says why nothing is to be seen.
        return draft.plan().after(delay);
    }
    let confirm = confirm(facts);
    draft.condition(Condition::no(
        types::INSTANCE_EXISTS,
        severity::WARNING,
        reason::INSTANCE_MISSING,
        "Instance not found on provider",
    ));
    match first_look.map(|time| until(facts.now, later(time.0, confirm))) {
        None => draft.plan().after(confirm),
        Some(Some(left)) => draft.plan().after(left),
        Some(None) => {
            draft.fail(None, "can't find created instance");
            draft.plan()
        }
    }
}

/// An instance that was seen once is confirmed missing soon. One of which only the accepted create is known, or the Node
/// that it became, may still be on its way into sight. Addresses are only ever taken from a look.
fn confirm(facts: &Facts) -> Duration {
    match facts.serving {
        Serving::By { settle } if facts.machine.status.addresses.is_empty() => CONFIRM.max(*settle),
        Serving::By { .. } | Serving::Missing { .. } | Serving::Unknown { .. } => CONFIRM,
    }
}

fn present(
    mut draft: Draft,
    facts: &Facts,
    answer: &Answer,
    instance: &Instance,
    held: Option<Duration>,
) -> Plan {
    draft.adopt(instance);
    let patience = patience(facts, answer, instance).filter(|_| held.is_none());
    if patience.is_none() || answer.has_created() {
        draft.state(instance);
    }
    if let Some(left) = patience {
        return draft.plan().after(instance.look_again.map_or(left, |look| look.max(LEAST).min(left)));
    }
    draft.provider_status(answer);
    draft.addresses(instance);
    draft.condition(Condition::yes(types::INSTANCE_EXISTS));
    if let Some(fatal) = &instance.fatal {
        draft.fail(None, fatal);
        return draft.plan();
    }
    let is_running = facts.machine.node_name().is_some();
    if answer.failure.is_none() && draft.is_provisioned() {
        draft.phase(if is_running { phase::RUNNING } else { phase::PROVISIONED });
    }
    let next = held.unwrap_or_else(|| {
        let look = instance.look_again.map(|look| look.max(LEAST));
        let own = if is_running { resync(facts) } else { poll(facts, draft.changes_status()) };
        look.map_or(own, |look| look.min(RESYNC))
    });
    match detail_wait(facts, &draft).filter(|_| held.is_none()) {
        Some(left) => draft.without_provider_status().plan().after(next.min(left)),
        None => draft.plan().after(next),
    }
}

/// How long a write that would only change the provider status still waits: it changes in bursts while an instance
/// comes up, and the write that tells what came of it takes it along.
fn detail_wait(facts: &Facts, draft: &Draft) -> Option<Duration> {
    let last = facts.machine.status.last_updated.as_ref().filter(|_| draft.changes_only_provider_status())?;
    until(facts.now, later(last.0, PATIENCE))
}

/// How long a status write that would say no more than "it exists" still waits for the addresses, which then come with
/// the same write. Only after a create of this very process: after a restart nothing is known of when it was. What the
/// create itself answers is no sighting yet: the looks of many clouds lag behind their creates, and what the status says
/// was seen is believed to be gone at the first look that does not find it (I2).
fn patience(facts: &Facts, answer: &Answer, instance: &Instance) -> Option<Duration> {
    let is_told = facts.machine.status.conditions.is_true(types::INSTANCE_EXISTS);
    let is_news = !instance.addresses.is_empty() && !answer.has_created();
    if is_told || is_news || instance.fatal.is_some() {
        return None;
    }
    let created = if answer.has_created() { facts.now } else { facts.memory.created? };
    PATIENCE.checked_sub(since(facts.now, created)).filter(|left| !left.is_zero())
}

/// The fallback where a cloud announces nothing: half as long as nothing has changed.
fn poll(facts: &Facts, changes: bool) -> Duration {
    if changes {
        return POLL_FIRST;
    }
    let machine = facts.machine;
    let last = machine.status.last_updated.as_ref().or(machine.metadata.creation_timestamp.as_ref());
    last.map_or(POLL_FIRST, |time| (since(facts.now, time.0) / 2).clamp(POLL_FIRST, POLL_MOST))
}

fn resync(facts: &Facts) -> Duration {
    RESYNC * 4 / 5 + spread(facts.machine.uid(), RESYNC * 2 / 5)
}
