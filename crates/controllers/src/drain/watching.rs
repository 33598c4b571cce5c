//! What a drain remembers between its rounds, and the watches that wake it. They end with it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mapi_api::{Key, Object, Pod, PodDisruptionBudget, Timestamp};
use mapi_core::drain::{Attempts, DaemonSet, Memory, Outcome};
use mapi_runtime::CancellationToken;
use mapi_runtime::store::{Change, Origin, Store};
use mapi_runtime::watch::{Filter, Scope, run_watch};
use tokio_util::sync::DropGuard;

use super::Shell;

/// A tenth of a second: the pods of a Node end in bursts, and each round reads the Node.
const BURST: Duration = Duration::from_millis(100);

/// A drain under way.
pub(super) struct Drain {
    key: Key,
    /// UID of the Machine.
    pub(super) uid: String,
    state: Mutex<State>,
    /// Ends the watch of the pods.
    stop: CancellationToken,
    _ends_with_this: DropGuard,
}

#[derive(Default)]
struct State {
    memory: Memory,
    attempts: Attempts,
    pods: Option<Store<Pod>>,
    daemon_sets: HashMap<Key, DaemonSet>,
    budgets: BTreeMap<String, Arc<Budgets>>,
}

/// The disruption budgets of a namespace, watched as long as a drain waits for one.
pub(super) struct Budgets {
    _ends_with_this: DropGuard,
}

/// Field selector of the pods of a Node.
pub(super) fn on_node(node: &str) -> String {
    format!("spec.nodeName={node}")
}

impl Drain {
    pub(super) fn new(key: Key, uid: &str, stop: &CancellationToken) -> Self {
        let stop = stop.child_token();
        let _ends_with_this = stop.clone().drop_guard();
        Self { key, uid: uid.into(), state: Mutex::default(), stop, _ends_with_this }
    }

    pub(super) fn memory(&self) -> Memory {
        self.lock().memory.clone()
    }

    pub(super) fn remember(&self, memory: Memory) {
        self.lock().memory = memory;
    }

    pub(super) fn attempts(&self) -> Attempts {
        self.lock().attempts.clone()
    }

    pub(super) fn record(&self, pod: &Key, uid: &str, outcome: Outcome, now: Timestamp) {
        self.lock().attempts.record(pod, uid, outcome, now);
    }

    pub(super) fn pods(&self) -> Option<Store<Pod>> {
        self.lock().pods.clone()
    }

    pub(super) fn daemon_set(&self, key: &Key) -> Option<DaemonSet> {
        self.lock().daemon_sets.get(key).cloned()
    }

    pub(super) fn learn(&self, key: &Key, daemon_set: DaemonSet) {
        self.lock().daemon_sets.insert(key.clone(), daemon_set);
    }

    /// Takes in a change of a pod. Tells whether it may matter.
    fn pod_changed(&self, change: &Change<Pod>, now: Timestamp) -> bool {
        let mut state = self.lock();
        match change {
            // The complete list wakes the key.
            Change::Added(_, Origin::List) => false,
            Change::Added(_, Origin::Watch) => true,
            Change::Updated { old, new } => {
                // Budgets select by labels, and finished pods are not protected.
                let is_other = old.metadata.labels != new.metadata.labels || old.status != new.status;
                let is_due = is_other && state.attempts.pod_changed(&new.key(), now);
                is_due || old.is_deleting() != new.is_deleting()
            }
            Change::Removed(pod) => {
                state.attempts.pod_removed(&pod.key());
                true
            }
        }
    }

    fn budget_changed(&self, change: &Change<PodDisruptionBudget>, now: Timestamp) -> bool {
        let attempts = &mut self.lock().attempts;
        match change {
            // It was so before the refusal: no change.
            Change::Added(_, Origin::List) => false,
            Change::Added(budget, Origin::Watch) | Change::Updated { old: _, new: budget } => {
                attempts.budget_changed(budget, now)
            }
            Change::Removed(budget) => attempts.budget_removed(budget, now),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shell {
    /// Watches the pods of a Node as long as its drain lasts.
    pub(super) fn watch_pods(self: &Arc<Self>, drain: &Arc<Drain>, node: &str) {
        let store = {
            let mut state = drain.lock();
            if state.pods.is_some() {
                return;
            }
            state.pods.insert(Store::new(&[])).clone()
        };
        // The store outlives neither: the watch that holds it ends when the drain is dropped.
        let (shell, weak) = (Arc::downgrade(self), Arc::downgrade(drain));
        store.subscribe(move |change| {
            let (Some(shell), Some(drain)) = (shell.upgrade(), weak.upgrade()) else { return };
            if drain.pod_changed(change, shell.context.clock.now()) {
                shell.queue.add_after(drain.key.clone(), BURST);
            }
        });
        let (queue, key, stop) = (self.queue.clone(), drain.key.clone(), drain.stop.clone());
        let synced = store.clone();
        tokio::spawn(async move {
            if stop.run_until_cancelled(synced.synced()).await.is_some() {
                queue.add(key);
            }
        });
        let filter = Filter { fields: Some(on_node(node)), labels: None };
        run_watch(self.context.writer.client.clone(), Scope::All, filter, store, drain.stop.clone());
    }

    /// Watches the budgets of every namespace in which one refuses an eviction of this drain.
    pub(super) fn watch_budgets(self: &Arc<Self>, drain: &Arc<Drain>) {
        let blocked = drain.lock().attempts.blocked_namespaces();
        for namespace in blocked {
            if drain.lock().budgets.contains_key(&namespace) {
                continue;
            }
            let budgets = self.budgets_of(&namespace);
            drain.lock().budgets.insert(namespace, budgets);
        }
    }

    fn budgets_of(self: &Arc<Self>, namespace: &str) -> Arc<Budgets> {
        let mut all = self.lock_budgets();
        if let Some(watched) = all.get(namespace).and_then(std::sync::Weak::upgrade) {
            return watched;
        }
        let store = Store::<PodDisruptionBudget>::new(&[]);
        let shell = Arc::downgrade(self);
        store.subscribe(move |change| {
            if let Some(shell) = shell.upgrade() {
                shell.budget_changed(change);
            }
        });
        let stop = self.context.stop.child_token();
        let scope = Scope::Namespace(namespace.into());
        run_watch(self.context.writer.client.clone(), scope, Filter::default(), store, stop.clone());
        let watched = Arc::new(Budgets { _ends_with_this: stop.drop_guard() });
        all.insert(namespace.into(), Arc::downgrade(&watched));
        watched
    }

    fn budget_changed(&self, change: &Change<PodDisruptionBudget>) {
        let now = self.context.clock.now();
        let drains: Vec<_> = self.lock().values().cloned().collect();
        for drain in drains {
            if drain.budget_changed(change, now) {
                self.queue.add(drain.key.clone());
            }
        }
    }
}
