//! Which taints a node is given for how it is. Never here: when that is decided, what happens to pods.

use serde_json::{Value, json};

use super::views::{NodeView, Taint};

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Conditions and what they taint: condition, status, key. Source: the well-known taints of Kubernetes.
const CONDITIONS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// What a node's taints lack, and which are too many. Taints of others are left alone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    add: Vec<(&'static str, &'static str)>,
    remove: Vec<(&'static str, &'static str)>,
}

impl Difference {
    /// Compares. `no_execute` is the key for which pods are to be evicted; `None` leaves those taints away.
    pub(super) fn of(node: &NodeView<'_>, no_execute: Option<&str>) -> Difference {
        let is_so = |condition: &str, status: &str| {
            node.status.condition(condition).is_some_and(|condition| condition.status == status)
        };
        let by_condition = CONDITIONS.iter().map(|(condition, status, key)| (*key, is_so(condition, status)));
        let unschedulable = (UNSCHEDULABLE, node.spec.unschedulable == Some(true));
        let no_schedule =
            by_condition.chain([unschedulable]).map(|(key, wanted)| (key, "NoSchedule", wanted));
        let evicting = [NOT_READY, UNREACHABLE].into_iter();
        let evicting = evicting.map(|key| (key, "NoExecute", no_execute == Some(key)));
        let mut difference = Difference::default();
        for (key, effect, wanted) in no_schedule.chain(evicting) {
            let is_there =
                node.spec.taints.iter().flatten().any(|taint| taint.key == key && taint.effect == effect);
            match (wanted, is_there) {
                (true, false) => difference.add.push((key, effect)),
                (false, true) => difference.remove.push((key, effect)),
                (true, true) | (false, false) => {}
            }
        }
        difference
    }

    pub(super) fn is_empty(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }

    /// Writes the difference into a node.
    pub(super) fn apply(&self, node: &mut Value, time: &str) {
        let mut taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.retain(|taint| {
            !self.remove.iter().any(|(key, effect)| taint["key"] == *key && taint["effect"] == *effect)
        });
        taints.extend(
            self.add.iter().map(|(key, effect)| json!({"key": key, "effect": effect, "timeAdded": time})),
        );
        if !node["spec"].is_object() {
            node["spec"] = json!({});
        }
        let spec = node["spec"].as_object_mut().expect("it was made an object");
        if taints.is_empty() {
            spec.remove("taints");
        } else {
            spec.insert("taints".into(), taints.into());
        }
    }
}

/// The taints of a node that evict pods.
pub(super) fn evicting(node: &NodeView<'_>) -> Vec<Taint> {
    node.spec.taints.iter().flatten().filter(|taint| taint.effect == "NoExecute").cloned().collect()
}
