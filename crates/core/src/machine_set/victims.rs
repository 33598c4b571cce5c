//! Which Machines go first when a set shrinks (I9).

use mapi_api::names::annotation;
use mapi_api::{Machine, Object, Timestamp};

use super::Member;

/// Priorities in per cent: these go whatever else is there.
const MUST: f64 = 100.0;
/// Better these than any Machine that is in use.
const BETTER: f64 = 50.0;
/// Machines without a Node carry no work yet.
const PREFER: f64 = 40.0;
/// Any Machine may go.
const COULD: f64 = 20.0;
/// These go last.
const NEVER: f64 = 0.0;

/// 100 days: the age at which the priority under `Oldest` has covered two thirds of its way to [`BETTER`]. Machines stay
/// ordered by age for ten years and never overtake an annotated one.
const AGE_SCALE_S: f64 = 8_640_000.0;

/// Which Machines go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Random,
    Newest,
    Oldest,
}

impl Policy {
    /// The policy of that name; none is `Random`. An unknown name is given back.
    pub fn parse(name: Option<&str>) -> Result<Self, &str> {
        match name.unwrap_or_default() {
            "" | "Random" => Ok(Self::Random),
            "Newest" => Ok(Self::Newest),
            "Oldest" => Ok(Self::Oldest),
            other => Err(other),
        }
    }
}

/// The `count` members to delete, first to go first. Members come sorted by name.
///
/// Highest priority first. Among equals a marked Machine before a failed one before the rest, then those whose Node is
/// not ready, then by name, so that the same members always give the same victims.
pub(super) fn pick<'a>(
    policy: Policy,
    members: &[&'a Member],
    count: usize,
    now: Timestamp,
) -> Vec<&'a Member> {
    let mut ranked: Vec<_> = members.iter().map(|member| (Rank::of(policy, member, now), *member)).collect();
    ranked.sort_by(|(a, _), (b, _)| a.cmp(b));
    ranked.into_iter().take(count).map(|(_, member)| member).collect()
}

/// Everything that decides between two Machines, computed once each.
struct Rank<'a> {
    priority: f64,
    is_marked: bool,
    has_error: bool,
    is_ready: bool,
    name: &'a str,
}

impl<'a> Rank<'a> {
    fn of(policy: Policy, member: &'a Member, now: Timestamp) -> Self {
        let machine = &*member.machine;
        Self {
            priority: priority(policy, machine, now),
            is_marked: is_marked(machine),
            has_error: machine.has_error(),
            is_ready: member.node.as_ref().is_some_and(|node| node.is_ready()),
            name: machine.name(),
        }
    }

    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let Self { priority, is_marked, has_error, is_ready, name } = self;
        other
            .priority
            .total_cmp(priority)
            .then(other.is_marked.cmp(is_marked))
            .then(other.has_error.cmp(has_error))
            .then(is_ready.cmp(&other.is_ready))
            .then((*name).cmp(other.name))
    }
}

/// How urgently a Machine goes, from 0 to 100.
pub(super) fn priority(policy: Policy, machine: &Machine, now: Timestamp) -> f64 {
    let is_flagged = is_marked(machine) || machine.has_error();
    match policy {
        Policy::Random if machine.is_deleting() => MUST,
        Policy::Random if is_flagged => BETTER,
        Policy::Random if machine.status.node_ref.is_none() => PREFER,
        Policy::Random => COULD,
        Policy::Newest | Policy::Oldest if machine.is_deleting() || is_flagged => MUST,
        Policy::Oldest => by_age(machine, now),
        Policy::Newest => MUST - by_age(machine, now),
    }
}

fn by_age(machine: &Machine, now: Timestamp) -> f64 {
    let Some(created) = machine.metadata.creation_timestamp.as_ref() else { return NEVER };
    let age_s = now.duration_since(created.0).as_secs_f64();
    if age_s <= 0.0 { NEVER } else { BETTER * (1.0 - (-age_s / AGE_SCALE_S).exp()) }
}

/// Whether somebody asked for this Machine to go first. An empty value does not.
fn is_marked(machine: &Machine) -> bool {
    [annotation::DELETE_MACHINE, annotation::DELETE_MACHINE_LEGACY]
        .into_iter()
        .any(|key| machine.annotation(key).is_some_and(|value| !value.is_empty()))
}
