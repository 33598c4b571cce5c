//! Pods whose node is no place to be: those that do not stand its taints are evicted, those whose node does not exist
//! are removed. Never here: what runs in a pod, and the end of one that a kubelet brings about.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::environment::seconds;
use crate::kinds::Kind;
use crate::state::DeleteOptions;
use crate::storage::{Change, Key};

use super::World;
use super::catalogue::Class;
use super::taints::evicting;
use super::views::{NodeView, PodView, Taint, Toleration, view};
use super::writes::{CONTROLLERS, delete, get, set_disruption, write_status};

/// The pods of each node.
#[derive(Default)]
pub(super) struct Pods {
    by_node: BTreeMap<String, BTreeSet<Key>>,
    node_of: BTreeMap<Key, String>,
    /// Nodes with taints that evict.
    taints: BTreeMap<String, Vec<Taint>>,
    /// Nodes that have been seen and not gone.
    nodes: BTreeSet<String>,
    /// Nodes that do not exist but have pods, and when those go.
    missing: BTreeMap<String, Option<Timestamp>>,
    /// Pods to be evicted: since when that is known, and when.
    evictions: BTreeMap<Key, (Timestamp, Timestamp)>,
    due: BTreeSet<(Timestamp, Key)>,
    /// Pods whose eviction is to be thought over.
    dirty: BTreeSet<Key>,
    /// Nodes whose existence is to be thought over.
    doubtful: BTreeSet<String>,
}

impl Pods {
    pub(super) fn see_node(&mut self, change: &Change) {
        let name = &change.now.key.name;
        let taints = if change.is_deletion {
            self.nodes.remove(name);
            self.doubtful.insert(name.clone());
            Vec::new()
        } else {
            self.nodes.insert(name.clone());
            self.missing.remove(name);
            evicting(&view::<NodeView<'_>>(&change.now))
        };
        let before = if taints.is_empty() {
            self.taints.remove(name).unwrap_or_default()
        } else {
            self.taints.insert(name.clone(), taints.clone()).unwrap_or_default()
        };
        if before != taints {
            self.dirty.extend(self.by_node.get(name).into_iter().flatten().cloned());
        }
    }

    pub(super) fn see_pod(&mut self, change: &Change) {
        let key = &change.now.key;
        if change.is_deletion {
            if let Some(node) = self.node_of.remove(key) {
                self.forget(&node, key);
            }
            self.cancel(key);
            return;
        }
        if !self.node_of.contains_key(key) {
            let pod: PodView<'_> = view(&change.now);
            if pod.spec.node_name.is_empty() {
                return;
            }
            let node = pod.spec.node_name.into_owned();
            self.by_node.entry(node.clone()).or_default().insert(key.clone());
            self.node_of.insert(key.clone(), node.clone());
            self.doubtful.insert(node);
        }
        let node = &self.node_of[key];
        if self.taints.contains_key(node) {
            self.dirty.insert(key.clone());
        }
    }

    fn forget(&mut self, node: &str, key: &Key) {
        let Some(pods) = self.by_node.get_mut(node) else { return };
        pods.remove(key);
        if pods.is_empty() {
            self.by_node.remove(node);
            self.missing.remove(node);
        }
    }

    fn cancel(&mut self, key: &Key) {
        if let Some((_, due)) = self.evictions.remove(key) {
            self.due.remove(&(due, key.clone()));
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        let evictions = self.due.first().map(|(due, _)| *due);
        self.missing.values().flatten().copied().chain(evictions).min()
    }

    pub(super) fn step(&mut self, world: &mut World<'_>) {
        let Some(kind) = world.catalogue.of(Class::Pod).cloned() else { return };
        while let Some(node) = self.doubtful.pop_first() {
            if !self.nodes.contains(&node) && self.by_node.contains_key(&node) {
                let due = Some(world.now + world.options.orphan_grace);
                let entry = self.missing.entry(node).or_insert(due);
                *entry = entry.or(due);
            }
        }
        while let Some(key) = self.dirty.pop_first() {
            self.judge(world, &kind, &key);
        }
        while let Some((due, key)) = self.due.first().cloned()
            && due <= world.now
        {
            self.cancel(&key);
            evict(world, &kind, &key);
        }
        let is_due = |due: &Option<Timestamp>| due.is_some_and(|due| due <= world.now);
        let gone: Vec<String> =
            self.missing.iter().filter(|(_, due)| is_due(due)).map(|(node, _)| node.clone()).collect();
        for node in gone {
            for key in self.by_node.get(&node).into_iter().flatten() {
                remove(world, &kind, key);
            }
            // What is left waits for finalizers; only a new pod is worth another look.
            self.missing.insert(node, None);
        }
    }

    /// Decides whether and when a pod is evicted.
    fn judge(&mut self, world: &World<'_>, kind: &Kind, key: &Key) {
        let taints = self.node_of.get(key).and_then(|node| self.taints.get(node));
        let pod = world.state.storage.get(&kind.bucket, key).filter(|pod| !pod.is_deleting);
        let (Some(taints), Some(pod)) = (taints, pod) else { return self.cancel(key) };
        let view: PodView<'_> = view(pod);
        let delay = stands(taints, view.spec.tolerations.as_deref().unwrap_or_default());
        let since = self.evictions.get(key).map_or(world.now, |(since, _)| *since);
        self.cancel(key);
        if let Some(delay) = delay {
            let due = since + delay;
            self.evictions.insert(key.clone(), (since, due));
            self.due.insert((due, key.clone()));
        }
    }

    /// Says of the pods of a node that they are not ready.
    pub(super) fn lose_readiness(&self, world: &mut World<'_>, node: &str) {
        let Some(kind) = world.catalogue.of(Class::Pod).cloned() else { return };
        for key in self.by_node.get(node).into_iter().flatten() {
            let Some(pod) = world.state.storage.get(&kind.bucket, key).cloned() else { continue };
            let mut value = pod.value();
            let time = seconds(world.now);
            let conditions = value["status"]["conditions"].as_array_mut().into_iter().flatten();
            let mut changed = false;
            for condition in conditions.filter(|one| one["type"] == "Ready" && one["status"] != "False") {
                condition["status"] = "False".into();
                condition["lastTransitionTime"] = time.clone().into();
                changed = true;
            }
            if changed {
                write_status(world.state, &kind, &pod, value, CONTROLLERS);
            }
        }
    }
}

/// How long a pod stands the taints of its node; `None`: for good.
fn stands(taints: &[Taint], tolerations: &[Toleration]) -> Option<SignedDuration> {
    let used = taints.iter().map(|taint| tolerations.iter().find(|toleration| toleration.tolerates(taint)));
    let seconds = used.filter_map(|toleration| match toleration {
        Some(toleration) => toleration.toleration_seconds.map(|seconds| seconds.max(0)),
        None => Some(0),
    });
    seconds.min().map(SignedDuration::from_secs)
}

/// Evicts a pod that does not stand the taints of its node.
fn evict(world: &mut World<'_>, kind: &Kind, key: &Key) {
    let message = "Taint manager: deleting due to NoExecute taint";
    target(world, kind, key, "DeletionByTaintManager", message, false);
    if let Some(pod) = get(world.state, kind, &key.namespace, &key.name).filter(|pod| !pod.is_deleting) {
        delete(world.state, kind, &pod, DeleteOptions::default());
    }
}

/// Removes a pod whose node does not exist: nobody would say that it has ended.
fn remove(world: &mut World<'_>, kind: &Kind, key: &Key) {
    target(world, kind, key, "DeletionByPodGC", "PodGC: node no longer exists", true);
    if let Some(pod) = get(world.state, kind, &key.namespace, &key.name) {
        delete(world.state, kind, &pod, DeleteOptions { grace_s: Some(0), ..DeleteOptions::default() });
    }
}

/// Writes into a pod why it goes, and that it has failed if `fail` and it has not ended.
fn target(world: &mut World<'_>, kind: &Kind, key: &Key, reason: &str, message: &str, fail: bool) {
    let Some(pod) = get(world.state, kind, &key.namespace, &key.name) else { return };
    let mut value = pod.value();
    set_disruption(&mut value, reason, message, &seconds(world.now), true);
    if fail && !matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed")) {
        value["status"]["phase"] = "Failed".into();
    }
    write_status(world.state, kind, &pod, value, CONTROLLERS);
}
