//! What evictions were answered, when each is tried again, and which change makes one due at once.

use std::collections::BTreeMap;
use std::time::Duration;

use mapi_api::{Key, Object, Pod, PodDisruptionBudget, Timestamp};

use super::pods::{self, Selected};
use super::{Scene, report};
use crate::spread::spread;

/// Five seconds: the least between two evictions of one pod (item 2), unless something changed.
const FIRST: Duration = Duration::from_secs(5);

/// Most between two evictions of one pod without its spread, which adds a fifth: a minute in all (item 28). Changes of
/// pods and budgets are watched, so this is only for those that went unseen.
const MOST: Duration = Duration::from_secs(50);

/// What one eviction was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The pod will go.
    Accepted,
    /// It is gone.
    Gone,
    /// A disruption budget does not allow it now.
    Blocked {
        /// What the server said.
        message: String,
        /// When the server asked to be asked again.
        retry_after: Option<Duration>,
    },
    /// Its namespace is being deleted, which will remove it.
    NamespaceTerminating,
    /// Anything else.
    Failed(String),
}

/// Why an eviction did not go through.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A disruption budget; its name, if the server told.
    Budget(Option<String>),
    /// The namespace is being deleted.
    Namespace,
    /// Anything else, in the server's words.
    Other(String),
}

/// What is known of the evictions of one pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// UID of the pod.
    pub uid: String,
    /// Why the last one did not go through; `None` if it was accepted.
    pub cause: Option<Cause>,
    /// Whether the server has no such pod any more, whatever the watch still shows.
    pub is_gone: bool,
    /// Since when none goes through.
    pub since: Timestamp,
    /// Refusals in a row.
    pub refusals: u32,
    /// When to try again.
    pub due: Timestamp,
}

/// What is known of the evictions of one Node's pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts(BTreeMap<Key, Attempt>);

impl Attempts {
    /// What is known of a pod.
    pub fn of(&self, pod: &Pod) -> Option<&Attempt> {
        self.0.get(&pod.key()).filter(|attempt| attempt.uid == pod.uid())
    }

    /// Takes in what an eviction was answered.
    pub fn record(&mut self, pod: &Key, uid: &str, outcome: Outcome, now: Timestamp) {
        let is_gone = outcome == Outcome::Gone;
        let (cause, asked) = match outcome {
            Outcome::Accepted | Outcome::Gone => (None, None),
            Outcome::Blocked { message, retry_after } => (Some(Cause::Budget(budget(&message))), retry_after),
            Outcome::NamespaceTerminating => (Some(Cause::Namespace), None),
            Outcome::Failed(message) => (Some(Cause::Other(message)), None),
        };
        let earlier = self.0.get(pod).filter(|a| a.uid == uid && a.cause.is_some() && cause.is_some());
        let refusals = earlier.map_or(0, |a| a.refusals);
        let since = earlier.map_or(now, |a| a.since);
        let pause = FIRST.saturating_mul(2u32.saturating_pow(refusals)).min(MOST);
        let pause = pause.max(asked.unwrap_or_default().min(MOST));
        let due = now.checked_add(pause + spread(uid, pause / 5)).unwrap_or(Timestamp::MAX);
        let attempt =
            Attempt { uid: uid.into(), cause, is_gone, since, refusals: refusals.saturating_add(1), due };
        self.0.insert(pod.clone(), attempt);
    }

    /// A pod changed: its eviction is due if one was refused. Tells whether anything became due.
    pub fn pod_changed(&mut self, pod: &Key, now: Timestamp) -> bool {
        self.0.get_mut(pod).filter(|a| a.cause.is_some()).is_some_and(|attempt| attempt.wake(now))
    }

    /// A pod is gone.
    pub fn pod_removed(&mut self, pod: &Key) {
        self.0.remove(pod);
    }

    /// A budget changed: as many evictions that it refused are due as it allows. Those whose refusal named no budget are
    /// taken to be of any in their namespace. Tells whether anything became due.
    pub fn budget_changed(&mut self, budget: &PodDisruptionBudget, now: Timestamp) -> bool {
        let allowed = usize::try_from(budget.status.disruptions_allowed).unwrap_or(0);
        self.wake_refused(budget, allowed, now)
    }

    /// A budget is gone: everything that it refused is due. Tells whether anything became due.
    pub fn budget_removed(&mut self, budget: &PodDisruptionBudget, now: Timestamp) -> bool {
        self.wake_refused(budget, usize::MAX, now)
    }

    fn wake_refused(&mut self, budget: &PodDisruptionBudget, most: usize, now: Timestamp) -> bool {
        let key = budget.key();
        let refused = self.0.iter_mut().filter(|(pod, attempt)| {
            pod.namespace == key.namespace
                && matches!(&attempt.cause, Some(Cause::Budget(name)) if name.as_deref().is_none_or(|n| n == &*key.name))
        });
        refused.take(most).fold(false, |any, (_, attempt)| attempt.wake(now) || any)
    }

    /// Namespaces in which a budget refuses an eviction: their budgets are worth watching.
    pub fn blocked_namespaces(&self) -> Vec<String> {
        let blocked = self.0.iter().filter(|(_, a)| matches!(a.cause, Some(Cause::Budget(_))));
        let mut namespaces: Vec<String> = blocked.map(|(pod, _)| pod.namespace.to_string()).collect();
        namespaces.dedup();
        namespaces
    }
}

impl Attempt {
    fn wake(&mut self, now: Timestamp) -> bool {
        let is_earlier = self.due > now;
        self.due = self.due.min(now);
        is_earlier
    }
}

/// Name of the budget in the server's words: "… disruption budget NAME needs …". The words around it hold counts, which
/// a condition must not.
fn budget(message: &str) -> Option<String> {
    const BEFORE: &str = "disruption budget ";
    message.match_indices(BEFORE).find_map(|(at, _)| {
        let name = message[at + BEFORE.len()..].split_whitespace().next()?;
        let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_name =
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'));
        (is_name && !name.is_empty()).then(|| name.to_owned())
    })
}

/// When to look again although nothing changed: when an eviction is due, a cause is to be told, or a pod is late. Pods
/// that go, and pods and budgets that change, wake the key.
pub(super) fn next_look(
    scene: &Scene,
    selected: &[Selected],
    is_unreachable: bool,
    now: Timestamp,
) -> Duration {
    let later = |time: Timestamp, delay: Duration| time.checked_add(delay).unwrap_or(Timestamp::MAX);
    let mut times = vec![];
    for Selected { pod, is_terminating } in selected {
        match scene.attempts.of(pod) {
            _ if *is_terminating => times.extend(pods::given_up(pod, is_unreachable)),
            None => times.push(later(now, FIRST)),
            Some(attempt) => {
                times.push(attempt.due);
                times.extend(attempt.cause.as_ref().map(|_| later(attempt.since, report::TELL)));
            }
        }
    }
    let next = times.into_iter().filter(|time| *time > now).min();
    next.and_then(|time| Duration::try_from(time.duration_since(now)).ok()).unwrap_or(MOST)
}
