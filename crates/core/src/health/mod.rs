//! MachineHealthCheck: which Machines are sick, whether they may be repaired, and how.
//!
//! For: every rule, text, time and order of a health check. Never here: clients, clocks, caches.
//!
//! A pass has two questions at most. [`open`] reads the check itself; [`decide`] looks at its targets, and asks for the
//! remediation template if that matters; [`settle`] goes on with the template. Invariants kept here: I10 (only
//! [`verdict::Cause`] deletes), I11 and I12 (too many unhealthy ones stop all repairs before the first).

mod assess;
mod external;
mod internal;
pub mod settings;
mod status;
#[cfg(test)]
mod tests;
pub mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mapi_api::event::{Event, EventType, Regarding};
use mapi_api::{Key, Machine, MachineHealthCheck, Node, Object, Timestamp, names};
use serde_json::Value;

pub use assess::Assessment;
pub use settings::{Settings, TemplateRef};
pub use verdict::Cause;

use crate::plan;
use crate::{Action, Kind, Measure, Plan, Requeue};

/// What is known when a pass decides.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The check.
    pub check: &'a MachineHealthCheck,
    /// What [`open`] read in it.
    pub settings: &'a Settings,
    /// Every Machine that [`Settings::covers`], in any order.
    pub targets: &'a [Target<'a>],
    /// The remediation requests of the check's namespace, by name.
    pub requests: Requests<'a>,
    /// What the last pass left behind.
    pub memory: &'a Memory,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub is_migration_on: bool,
    /// The time.
    pub now: Timestamp,
}

/// One Machine that is checked.
#[derive(Clone, Debug)]
pub struct Target<'a> {
    /// The Machine.
    pub machine: &'a Machine,
    /// Its Node.
    pub node: NodeState<'a>,
    /// Whether the cache shows every write of ours to the Machine. If not, it is counted but not repaired: it may be
    /// deleted already.
    pub is_fresh: bool,
}

/// The Node of a Machine.
#[derive(Clone, Copy, Debug)]
pub enum NodeState<'a> {
    /// The Machine names none and none has its provider id: it has not joined.
    Absent,
    /// The Machine names none, but one with its provider id exists. The machine joined; that nobody linked the two is
    /// no reason to delete it.
    Unlinked,
    /// The Machine names one that does not exist any more.
    Gone,
    /// This one.
    Found(&'a Node),
}

/// Remediation requests, read once a pass.
#[derive(Clone, Copy, Debug)]
pub enum Requests<'a> {
    /// The check has no template.
    Unused,
    /// Those that exist, by name.
    Known(&'a BTreeMap<String, Request>),
    /// They could not be read, because of this error.
    Unreadable(&'a str),
}

/// One remediation request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// UID.
    pub uid: String,
    /// UIDs of its owners.
    pub owners: Vec<String>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
}

/// What one pass leaves for the next, by Machine UID. It serves to tell transitions: losing it costs an event more or
/// less and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Machines that were healthy.
    pub healthy: BTreeSet<String>,
    /// Machines whose repair was skipped because nobody would replace them.
    pub skipped: BTreeSet<String>,
}

/// What reading a check gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Opening {
    /// Its Machines are to be looked at.
    Examine(Settings),
    /// Nothing more is to be done.
    Done(Plan),
}

/// What looking at the targets gave.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Fetch this template from the check's namespace, then [`settle`].
    FetchTemplate(TemplateRef, Assessment),
    /// Decided.
    Done(Outcome),
}

/// The remediation template, as the server answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// The whole object.
    Found(Value),
    /// There is none of that name, or its kind is not served.
    Missing,
    /// It could not be read, because of this error.
    Failed(String),
}

/// The end of a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What to do.
    pub plan: Plan,
    /// What to hand to the next pass.
    pub memory: Memory,
    /// The Machines that the plan repairs, and why each (I10).
    pub repairs: Vec<(Key, Cause)>,
    /// Sick Machines that are not repaired because the cache does not show our last write to them. Once it does, the
    /// next pass is due.
    pub waiting: Vec<Key>,
}

/// Reads a check. A paused one is left alone; one with values that cannot be used gets a condition and is not acted
/// upon until it is edited.
pub fn open(check: &MachineHealthCheck, now: Timestamp) -> Opening {
    if check.annotation(names::annotation::PAUSED).is_some() {
        let message = format!("annotation `{}` is present", names::annotation::PAUSED);
        return Opening::Done(Plan::nothing().gate("Paused", message));
    }
    match Settings::parse(check) {
        Ok(settings) => Opening::Examine(settings),
        Err(complaint) => Opening::Done(status::refuse(check, &complaint, now)),
    }
}

/// What to do about a check that is gone.
pub fn forget(key: &Key) -> Plan {
    Plan::actions(vec![Action::Measure(Measure::ForgetHealthCheck { key: key.clone() })])
}

/// Looks at the targets.
pub fn decide(facts: &Facts<'_>) -> Decision {
    let assessment = assess::assess(facts);
    match external::wanted_template(facts, &assessment) {
        Some(reference) => Decision::FetchTemplate(reference.clone(), assessment),
        None => Decision::Done(conclude(facts, &assessment, None)),
    }
}

/// Goes on with the template that [`decide`] asked for.
pub fn settle(facts: &Facts<'_>, assessment: &Assessment, template: &Template) -> Outcome {
    conclude(facts, assessment, Some(template))
}

/// No time by itself ends a restriction, only a change of a Machine, a Node or the check, and those are watched. This is
/// a second look for the case that one was missed: often enough for people, too rare to cost anything.
const RESTRICTED_RECHECK: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(60));

/// An hour: a timeout may be days, and a clock may jump.
const LONGEST_RECHECK: Duration = Duration::from_secs(3600);

fn conclude(facts: &Facts<'_>, assessment: &Assessment, template: Option<&Template>) -> Outcome {
    let key = facts.check.key();
    let mut actions = vec![Action::Measure(Measure::NodesCovered { key, count: facts.targets.len() })];
    actions.extend(detections(facts, assessment));
    let memory = remember(facts, assessment);
    if assessment.is_restricted() {
        let plan = restrict(facts, assessment, actions);
        return Outcome { plan, memory, repairs: vec![], waiting: vec![] };
    }
    actions.extend(internal::skips(facts, assessment));
    actions.push(short_circuit(facts, false));
    let repairs = assessment.repairs(facts).filter(|(target, _)| !internal::is_skipped(facts, target));
    let repairs = repairs.map(|(target, cause)| (target.machine.key(), cause.clone())).collect();
    let mut plan = match &facts.settings.template {
        Some(reference) => external::plan(facts, assessment, reference, template, actions),
        None => {
            let wanted = status::allowed(facts, assessment);
            actions.extend(status::write(facts.check, &facts.check.status, &wanted));
            actions.extend(internal::repairs(facts, assessment));
            Plan::actions(actions)
        }
    };
    if plan.requeue == Requeue::Never
        && let Some(next) = assessment.next
    {
        plan = plan.after(next.min(LONGEST_RECHECK));
    }
    let waiting = assessment.waiting(facts).map(|target| target.machine.key()).collect();
    Outcome { plan, memory, repairs, waiting }
}

/// Too many are unhealthy: the trouble is likely elsewhere, and nothing is repaired.
fn restrict(facts: &Facts<'_>, assessment: &Assessment, mut actions: Vec<Action>) -> Plan {
    let counts = assessment.counts(facts);
    let wanted = status::restricted(facts, assessment);
    actions.extend(status::write(facts.check, &facts.check.status, &wanted));
    if !status::was_restricted(facts.check) {
        let note = format!("Remediation restricted due to exceeded number of unhealthy machines ({counts})");
        actions.push(about_check(facts.check, EventType::Warning, "RemediationRestricted", note));
    }
    actions.push(short_circuit(facts, true));
    actions.extend(external::clean_up(facts, assessment));
    let (shortest, longest) = RESTRICTED_RECHECK;
    let recheck = assessment.next.map_or(longest, |next| next.clamp(shortest, longest));
    let gate = names::reason::TOO_MANY_UNHEALTHY;
    Plan::actions(actions)
        .after(recheck)
        .gate(gate, format!("more machines are unhealthy than allowed: {counts}"))
}

fn short_circuit(facts: &Facts<'_>, is_stopped: bool) -> Action {
    Action::Measure(Measure::ShortCircuit { key: facts.check.key(), is_stopped })
}

/// One event for each Machine that was healthy on the last pass and is on its way to be repaired.
fn detections(facts: &Facts<'_>, assessment: &Assessment) -> Vec<Action> {
    let news = assessment.pending(facts).filter(|target| facts.memory.healthy.contains(target.machine.uid()));
    let emit = |target: &Target<'_>| {
        let node = target.machine.node_name().unwrap_or_default();
        let note = format!("Machine {} has unhealthy node {node}", full_name(facts.check, target));
        about_machine(target, EventType::Normal, "DetectedUnhealthy", "HealthCheck", note)
    };
    news.map(emit).collect()
}

fn remember(facts: &Facts<'_>, assessment: &Assessment) -> Memory {
    let uid = |target: &Target<'_>| target.machine.uid().to_owned();
    let told = |target: &Target<'_>| facts.memory.skipped.contains(target.machine.uid());
    let still = assessment.sick(facts).map(|(target, _)| target).filter(|target| told(target)).map(uid);
    let news = internal::skipped(facts, assessment).map(uid);
    Memory { healthy: assessment.healthy(facts).map(uid).collect(), skipped: still.chain(news).collect() }
}

/// How events name a target: the check, the Machine, and its Node if it has one.
fn full_name(check: &MachineHealthCheck, target: &Target<'_>) -> String {
    format!("{}/{}/{}", check.key(), target.machine.name(), target.machine.node_name().unwrap_or_default())
}

fn about_machine(
    target: &Target<'_>,
    type_: EventType,
    reason: &'static str,
    action: &'static str,
    note: String,
) -> Action {
    let regarding = regarding(names::KIND_MACHINE, target.machine);
    Action::Emit {
        reporter: names::reporter::HEALTH,
        event: Event { type_, reason, action, note, regarding },
    }
}

fn about_check(check: &MachineHealthCheck, type_: EventType, reason: &'static str, note: String) -> Action {
    let regarding = regarding(names::KIND_MACHINE_HEALTH_CHECK, check);
    let event = Event { type_, reason, action: "Remediate", note, regarding };
    Action::Emit { reporter: names::reporter::HEALTH, event }
}

fn regarding(kind: &'static str, object: &impl Object) -> Regarding {
    Regarding { api_version: names::API_VERSION, kind, key: object.key(), uid: object.uid().into() }
}

fn machine_target(target: &Target<'_>) -> plan::Target {
    plan::Target::of(Kind::Machine, target.machine)
}
