//! Which pods stand in the way of a drain.

use std::time::Duration;

use mapi_api::names::{annotation, label};
use mapi_api::{Key, Node, Object, Pod, Timestamp};

use super::Look;

/// One second: what pods get on a Node whose kubelet is silent, and how long they are waited for there. It will not
/// confirm that they ended.
const UNREACHABLE_S: i64 = 1;

/// Twenty seconds after its grace period ended a pod is late: its kubelet is stuck, or a finalizer holds it.
const LATE_S: i64 = 20;

/// A pod and what is known of its DaemonSet.
#[derive(Clone, Debug)]
pub struct PodFact<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// Its DaemonSet; only looked up where [`daemon_set_of`] names one.
    pub daemon_set: DaemonSet,
}

/// The DaemonSet that controls a pod.
pub type DaemonSet = Look<()>;

/// A pod that is to go.
#[derive(Clone, Debug)]
pub(super) struct Selected<'a> {
    pub(super) pod: &'a Pod,
    /// Whether it is on its way out already.
    pub(super) is_terminating: bool,
}

/// The DaemonSet that must be looked up before it can be said whether a pod stands in the way. None for a finished pod:
/// that is evicted in any case.
pub fn daemon_set_of(pod: &Pod) -> Option<Key> {
    if pod.is_finished() {
        return None;
    }
    let owner =
        pod.controller_owner().filter(|o| o.kind == "DaemonSet" && o.api_version.starts_with("apps/"))?;
    Some(Key::new(pod.metadata.namespace.as_deref().unwrap_or_default(), &owner.name))
}

/// The pods that stand in the way, sorted by key. A DaemonSet that cannot be looked up stops everything: evicting its
/// pods would only make it start others.
pub(super) fn select<'a>(
    pods: &[PodFact<'a>],
    is_unreachable: bool,
    now: Timestamp,
) -> Result<Vec<Selected<'a>>, String> {
    let mut selected = vec![];
    for PodFact { pod, daemon_set } in pods {
        if is_unreachable && terminating_s(pod, now).is_some_and(|s| s > UNREACHABLE_S) {
            continue;
        }
        if let Some(key) = daemon_set_of(pod) {
            match daemon_set {
                Look::Found(()) => continue,
                Look::Gone => {}
                Look::Failed(error) => return Err(format!("unable to get daemon set `{key}`: {error}")),
            }
        }
        // The kubelet runs it from a file; deleting its mirror stops nothing. All other pods go: those with local data
        // and those without a controller too, since their Node is about to be no more.
        if pod.annotation(annotation::MIRROR_POD).is_some() {
            continue;
        }
        selected.push(Selected { pod, is_terminating: pod.is_deleting() });
    }
    selected.sort_by_key(|s| s.pod.key());
    Ok(selected)
}

/// Whole seconds since a pod's deletion timestamp, which includes its grace period: negative while that lasts.
fn terminating_s(pod: &Pod, now: Timestamp) -> Option<i64> {
    let marked = pod.metadata.deletion_timestamp.as_ref()?;
    Some(now.duration_since(marked.0).as_secs())
}

/// Whether a pod should have ended.
pub(super) fn is_late(pod: &Pod, now: Timestamp) -> bool {
    terminating_s(pod, now).is_some_and(|seconds| seconds > LATE_S)
}

/// When a pod that is ending is no longer waited for, or is said to be late.
pub(super) fn given_up(pod: &Pod, is_unreachable: bool) -> Option<Timestamp> {
    let patience_s = if is_unreachable { UNREACHABLE_S } else { LATE_S };
    let patience = Duration::from_secs(patience_s.unsigned_abs() + 1);
    pod.metadata.deletion_timestamp.as_ref()?.0.checked_add(patience).ok()
}

/// Grace period that evictions carry; the pod's own if none.
pub(super) fn grace_s(is_unreachable: bool) -> Option<i64> {
    is_unreachable.then_some(UNREACHABLE_S)
}

/// By the presence of either role label.
pub(super) fn is_control_plane(node: &Node) -> bool {
    node.label(label::NODE_CONTROL_PLANE).is_some() || node.label(label::NODE_MASTER).is_some()
}
