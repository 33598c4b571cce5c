//! What a Machine says while its drain does not get through: which pod and which budget, and since when.
//!
//! The time of the condition moves only when the cause changes. So the text is sorted, holds no counts and no times,
//! and names one pod a budget, the same as long as that pod is refused.

use std::collections::BTreeMap;
use std::time::Duration;

use mapi_api::condition::whole_seconds;
use mapi_api::names::{condition as types, reason};
use mapi_api::{Condition, Conditions, Key, Object, Time, Timestamp};

use super::attempts::Cause;
use super::pods::{Selected, is_late};
use super::{Facts, Scene, events, not_drained, set_condition};
use crate::Plan;

/// Five seconds: a budget that is spent for a moment while pods move on is no news. With the next look, five seconds
/// after the first refusal, the cause is told within the ten that the user may count on.
pub(super) const TELL: Duration = Duration::from_secs(5);

/// Causes that are told at most; what follows is told when these are gone.
const CAUSES: usize = 10;

/// A cause, and whom it concerns: sorted, so that the text is stable.
type Causes = BTreeMap<(String, Cause), Vec<Key>>;

/// An error that stops the whole drain.
pub(super) fn failed(facts: &Facts, error: &str) -> Plan {
    tell(facts, error, facts.now).gate(reason::DRAIN_ERROR, error)
}

/// What evictions and ending pods have come to.
pub(super) fn progress(facts: &Facts, scene: &Scene, selected: &[Selected]) -> Plan {
    let stored = facts.machine.status.conditions.find(types::DRAINED).map_or("", |c| c.message.as_str());
    let mut causes = Causes::new();
    let mut since = facts.now;
    for Selected { pod, .. } in selected.iter().filter(|s| !s.is_terminating) {
        let Some(attempt) = scene.attempts.of(pod) else { continue };
        if let Some(cause) = attempt.cause.clone().filter(|_| is_old(attempt.since, facts.now)) {
            since = since.min(attempt.since);
            causes.entry((pod.key().namespace.to_string(), cause)).or_default().push(pod.key());
        }
    }
    let mut texts: Vec<String> =
        causes.iter().map(|((_, cause), pods)| refused(cause, named(pods, stored))).collect();
    texts.extend(late(facts, selected, stored, texts.is_empty() && !stored.is_empty()));
    texts.truncate(CAUSES);
    if texts.is_empty() {
        return Plan::nothing().gate("WaitingForPods", "the pods of the node are being evicted");
    }
    let text = texts.join("; ");
    tell(facts, &text, since).gate(reason::DRAIN_ERROR, text)
}

fn is_old(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) >= jiff::SignedDuration::try_from(TELL).expect("five seconds fit")
}

fn refused(cause: &Cause, pod: &Key) -> String {
    match cause {
        Cause::Budget(Some(budget)) => {
            format!(
                "disruption budget `{}/{budget}` does not allow the eviction of pod `{pod}`",
                pod.namespace
            )
        }
        Cause::Budget(None) => format!("a disruption budget does not allow the eviction of pod `{pod}`"),
        Cause::Namespace => {
            format!("pod `{pod}` is in a namespace that is being deleted and is not deleted yet")
        }
        Cause::Other(message) => format!("cannot evict pod `{pod}`: {message}"),
    }
}

/// Pods that should have ended. While the condition still tells an older cause, the first pod that ends takes its place:
/// a text that is no longer true must not stay.
fn late(facts: &Facts, selected: &[Selected], stored: &str, is_stale: bool) -> Option<String> {
    let ending = selected.iter().filter(|s| s.is_terminating);
    let late: Vec<Key> =
        ending.clone().filter(|s| is_stale || is_late(s.pod, facts.now)).map(|s| s.pod.key()).collect();
    (!late.is_empty()).then(|| format!("pod `{}` has not ended yet", named(&late, stored)))
}

/// The pod that is named for all: the one that the stored text names, else the first.
fn named<'a>(pods: &'a [Key], stored: &str) -> &'a Key {
    let is_stored = |pod: &&Key| stored.contains(&format!("pod `{pod}`"));
    pods.iter().find(is_stored).or(pods.first()).expect("a cause has a pod")
}

/// The condition, and an event when it changes. The first one says since when, not when it was written.
fn tell(facts: &Facts, text: &str, since: Timestamp) -> Plan {
    let time = Some(Time(whole_seconds(since)));
    let condition = Condition { last_transition_time: time, ..not_drained(text) };
    let Some(patch) = set_condition(facts, condition) else { return Plan::nothing() };
    let event = events::normal(facts.machine, "DrainRequeued", format!("Node drain requeued: {text}"));
    Plan::actions(vec![patch, event])
}
