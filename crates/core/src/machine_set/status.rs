//! What is reported on a set: counts, selector, conditions, and when the next report is due.

use std::time::Duration;

use mapi_api::condition::{self, Condition, severity};
use mapi_api::machine_set::MachineSetStatus;
use mapi_api::names::{condition as types, reason};
use mapi_api::{Conditions, MachineSet, Node, Object, Selector, Timestamp};
use serde_json::json;

use super::membership::Membership;
use super::validity::Problem;
use super::{Facts, Member, naming, patch_status, warning};
use crate::{Action, patch};

/// Least time between two writes of one set's status: while the counts of a large set move, two writes a second tell
/// enough. The last value is always written, at most this much later.
pub const STATUS_INTERVAL: Duration = Duration::from_millis(500);

/// A Node becomes available strictly after its time, so the look comes this much later.
const STRICTLY_AFTER: Duration = Duration::from_millis(1);

/// How a pass stands with the Machines of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It does something.
    Works,
    /// It would, but the spec does not allow it.
    Blocked,
    /// Nothing is left to do.
    Done,
}

/// What else goes into a report.
pub(super) struct Report<'a> {
    /// The conditions so far.
    pub conditions: Vec<Condition>,
    /// The selector, if it can be used.
    pub selector: Option<&'a Selector>,
    /// What is wrong with the spec.
    pub problem: Option<&'a Problem>,
    /// How it stands with the Machines.
    pub progress: Progress,
    /// Whether the report must not wait for its turn.
    pub is_due_at_once: bool,
    /// Whether a write is needed even if nothing changed, as a proof that the set is still as it was read.
    pub is_proof: bool,
}

impl Report<'_> {
    /// The writes of the report; if it must wait for its turn, how long.
    pub fn actions(self, facts: &Facts<'_>, membership: &Membership<'_>) -> (Vec<Action>, Option<Duration>) {
        let Self { mut conditions, selector, problem, progress, is_due_at_once, is_proof } = self;
        let set = facts.set;
        let mut notes = vec![];
        let spec_valid = match problem {
            None => Condition::yes(types::SPEC_VALID),
            Some(Problem { reason, message }) => {
                Condition::no(types::SPEC_VALID, severity::ERROR, reason, message.as_str())
            }
        };
        if condition::set(&mut conditions, spec_valid, facts.now)
            && let Some(Problem { message, .. }) = problem
        {
            notes.push(format!("\"{}\" machineset validation failed: {message}", set.name()));
        }
        if let Some(created) = machines_created(facts, &conditions, progress)
            && condition::set(&mut conditions, created, facts.now)
            && let (Progress::Works, Some(error)) = (progress, facts.last_error)
        {
            notes.push(format!("failed to sync machines: {}", naming::without_suffixes(set.name(), error)));
        }
        let status = counted(facts, membership, selector, conditions);
        let patch = match patch::between(&set.status, &status) {
            Some(change) => json!({"status": change}),
            None if is_proof => json!({"status": {"observedGeneration": set.metadata.generation}}),
            None => return (vec![], None),
        };
        match rest(facts) {
            Some(rest) if !is_due_at_once => (vec![], Some(rest)),
            Some(_) | None => {
                // The events come after the write: if it is refused they are told by the round that gets through.
                let events = notes.into_iter().map(|note| warning(set, note));
                ([patch_status(set, patch)].into_iter().chain(events).collect(), None)
            }
        }
    }
}

/// The condition about the last pass, if there is something to say. A pass that went through is worth a word only after
/// one that did not, and only once nothing is left to do.
fn machines_created(facts: &Facts<'_>, conditions: &[Condition], progress: Progress) -> Option<Condition> {
    match (progress, facts.last_error) {
        (Progress::Works, Some(error)) => {
            let text = naming::without_suffixes(facts.set.name(), error);
            Some(Condition::no(types::MACHINES_CREATED, severity::WARNING, reason::SYNC_ERROR, text))
        }
        (Progress::Done, _) if conditions.is_false(types::MACHINES_CREATED) => {
            Some(Condition::yes(types::MACHINES_CREATED))
        }
        (Progress::Works, None) | (Progress::Blocked | Progress::Done, _) => None,
    }
}

fn counted(
    facts: &Facts<'_>,
    membership: &Membership<'_>,
    selector: Option<&Selector>,
    conditions: Vec<Condition>,
) -> MachineSetStatus {
    let set = facts.set;
    let members = &membership.members;
    let count = |test: &dyn Fn(&Member) -> bool| {
        Some(i32::try_from(members.iter().filter(|m| test(m)).count()).unwrap_or(i32::MAX))
    };
    let template_labels = &set.spec.template.metadata.labels;
    MachineSetStatus {
        replicas: count(&|_| true),
        fully_labeled_replicas: count(&|member| {
            template_labels.iter().all(|(key, value)| member.machine.label(key) == Some(value))
        }),
        ready_replicas: count(&|member| ready_node(member).is_some()),
        available_replicas: count(&|member| {
            ready_node(member).is_some_and(|node| match available_from(set, node) {
                Available::Already => true,
                Available::After(time) => time < facts.now,
                Available::Never => false,
            })
        }),
        // An unusable selector is never recorded: what is there is the one that the Machines were made under.
        label_selector: selector.map(Selector::to_string).or_else(|| set.status.label_selector.clone()),
        observed_generation: set.metadata.generation.or(set.status.observed_generation),
        conditions,
        ..set.status.clone()
    }
}

fn ready_node(member: &Member) -> Option<&Node> {
    member.node.as_deref().filter(|node| node.is_ready())
}

/// From when on a ready Node counts as available.
enum Available {
    Already,
    After(Timestamp),
    Never,
}

fn available_from(set: &MachineSet, node: &Node) -> Available {
    let min_ready_s = set.spec.min_ready_seconds.unwrap_or_default();
    if min_ready_s <= 0 {
        return Available::Already;
    }
    let since = node.condition("Ready").and_then(|ready| ready.last_transition_time.as_ref());
    let time = since.and_then(|since| since.0.checked_add(jiff::SignedDuration::from_secs(min_ready_s)).ok());
    time.map_or(Available::Never, Available::After)
}

/// How long until the next ready Node becomes available.
pub(super) fn next_available(facts: &Facts<'_>, membership: &Membership<'_>) -> Option<Duration> {
    let ready = membership.members.iter().filter_map(|member| ready_node(member));
    let times = ready.filter_map(|node| match available_from(facts.set, node) {
        Available::After(time) if time >= facts.now => Some(time),
        Available::After(_) | Available::Already | Available::Never => None,
    });
    let rest = times.min()?.duration_since(facts.now);
    Some(Duration::try_from(rest).unwrap_or_default().saturating_add(STRICTLY_AFTER))
}

/// How long the status must not be written yet. A clock that was set back does not hold it up.
fn rest(facts: &Facts<'_>) -> Option<Duration> {
    let since = Duration::try_from(facts.now.duration_since(facts.last_status_write?)).ok()?;
    STATUS_INTERVAL.checked_sub(since).filter(|rest| !rest.is_zero())
}
