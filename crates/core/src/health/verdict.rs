//! The health of one Machine. Never here: how many others there are, or what is done about it.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use mapi_api::machine::phase;
use mapi_api::names::{annotation, condition};
use mapi_api::{Conditions, Machine, Node, Object, Timestamp};

use super::{NodeState, Settings, Target};

/// What a look at one Machine gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works.
    Healthy,
    /// It may become sick after this time.
    Pending(Duration),
    /// It is to be repaired.
    Sick(Cause),
    /// It neither works nor will it be sick by the passing of time.
    Undecided,
}

/// Why a Machine is to be repaired. There is no other reason for a health check to touch one (I10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its phase is Failed.
    Failed,
    /// It did not become a Node in time.
    NeverJoined,
    /// Its Node does not exist any more.
    NodeGone,
    /// Its Node has been in an unhealthy state for too long.
    Condition {
        /// Type of the Node condition.
        type_: String,
        /// Its status.
        status: String,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed => f.write_str("the machine failed"),
            Self::NeverJoined => f.write_str("the machine did not become a node in time"),
            Self::NodeGone => f.write_str("the node of the machine does not exist any more"),
            Self::Condition { type_, status } => {
                write!(f, "condition `{type_}` of the node has been `{status}` for too long")
            }
        }
    }
}

/// Looks at one Machine.
pub(super) fn examine(settings: &Settings, target: &Target<'_>, now: Timestamp) -> Verdict {
    let machine = target.machine;
    if machine.phase() == phase::FAILED {
        return Verdict::Sick(Cause::Failed);
    }
    match target.node {
        NodeState::Absent => startup(settings, machine, now),
        NodeState::Unlinked => Verdict::Undecided,
        NodeState::Gone => Verdict::Sick(Cause::NodeGone),
        NodeState::Found(node) => match conditions(settings, node, now) {
            Some(verdict) => verdict,
            None if machine.is_deleting() => Verdict::Undecided,
            None if machine.annotation(annotation::EXTERNAL_REMEDIATION).is_some() => Verdict::Undecided,
            None => Verdict::Healthy,
        },
    }
}

fn startup(settings: &Settings, machine: &Machine, now: Timestamp) -> Verdict {
    let Some(timeout) = settings.startup else { return Verdict::Undecided };
    match left(startup_began(machine, timeout, now), timeout, now) {
        None => Verdict::Sick(Cause::NeverJoined),
        Some(left) => Verdict::Pending(left),
    }
}

/// When the start-up clock of a Machine without a Node began: when its instance came to exist, or when the Machine was
/// created while there is none. Other changes of the status do not restart it, and an `InstanceExists` that comes and
/// goes does so at most once: the clock never begins later than one timeout after the creation. So a Machine has one
/// timeout to get an instance and one more to become a Node.
fn startup_began(machine: &Machine, timeout: Duration, now: Timestamp) -> Timestamp {
    let created = machine.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
    let exists = machine.status.conditions.find(condition::INSTANCE_EXISTS).filter(|c| c.is_true());
    let since = exists.and_then(|c| c.last_transition_time.as_ref()).map_or(created, |time| time.0);
    let latest = created.checked_add(signed(timeout)).unwrap_or(Timestamp::MAX);
    since.max(created).min(latest)
}

/// The first state that lasted too long, else the one that will first. `None`: none is unhealthy.
fn conditions(settings: &Settings, node: &Node, now: Timestamp) -> Option<Verdict> {
    let mut next: Option<Duration> = None;
    for rule in &settings.rules {
        let Some(found) = node.condition(&rule.type_).filter(|c| c.status == rule.status) else { continue };
        // Only a foreign writer leaves the time out. The Node cannot have been unhealthy for longer than it exists.
        let since = found.last_transition_time.as_ref().or(node.metadata.creation_timestamp.as_ref());
        match left(since.map_or(now, |time| time.0), rule.timeout, now) {
            None => {
                let (type_, status) = (rule.type_.clone(), rule.status.clone());
                return Some(Verdict::Sick(Cause::Condition { type_, status }));
            }
            Some(left) => next = Some(next.map_or(left, |before| before.min(left))),
        }
    }
    next.map(Verdict::Pending)
}

/// Time until a timeout has passed for certain, one second more than is left. `None`: it has.
fn left(since: Timestamp, timeout: Duration, now: Timestamp) -> Option<Duration> {
    let left = signed(timeout).saturating_sub(now.duration_since(since));
    (!left.is_negative()).then(|| left.saturating_add(SignedDuration::from_secs(1)).unsigned_abs())
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
