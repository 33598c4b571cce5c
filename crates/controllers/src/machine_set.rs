//! The shell around [`mapi_core::machine_set`]: which changes concern which set, what is known of it, what is remembered
//! between its rounds. Never here: who belongs to a set, how many there are, or what is said about it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use mapi_api::{Key, Machine, MachineSet, Node, Object, Timestamp, names};
use mapi_core::machine_set::{self, Facts, Member, Selectors, Template};
use mapi_core::{Action, Plan};
use mapi_runtime::Error;
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Origin};
use mapi_runtime::worker::{self, Requeue};
use tokio::task::JoinHandle;

use crate::apply::{apply, apply_outcome};
use crate::context::owner_hold;
use crate::{Context, indexes};

/// Begins the controller. It ends when the context's stop is asked for and its rounds have ended.
pub fn start(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let shell = Arc::new(Shell {
        context: Arc::clone(context),
        queue: Queue::new(names::reporter::MACHINE_SET, Backoff::default()),
        selectors: RwLock::default(),
        memory: Mutex::default(),
    });
    shell.subscribe();
    vec![tokio::spawn(async move {
        // A set must not be judged by a cache that does not yet show its Machines or their Nodes.
        let Context { machines, sets, nodes, stop, concurrency, .. } = &*shell.context;
        let synced = async { tokio::join!(sets.synced(), machines.synced(), nodes.synced()) };
        if stop.run_until_cancelled(synced).await.is_none() {
            return;
        }
        let running = Arc::clone(&shell);
        let reconcile = move |key| Arc::clone(&running).reconcile(key);
        worker::run_until(stop, &shell.queue, *concurrency, reconcile).await;
    })]
}

struct Shell {
    context: Arc<Context>,
    queue: Queue<Key>,
    /// Which sets could adopt an orphan.
    selectors: RwLock<Selectors>,
    /// What is remembered between rounds, by set. Losing it costs a repeated write or event at most.
    memory: Mutex<HashMap<Key, Memory>>,
}

/// What is remembered of a set between its rounds.
#[derive(Debug, Default)]
struct Memory {
    /// UID of the set that this is about.
    uid: String,
    /// Names of Machines whose creation got no answer.
    pending: Vec<String>,
    /// Why the last round failed at the set's Machines.
    last_error: Option<String>,
    /// When the set's status was written last.
    last_status_write: Option<Timestamp>,
}

impl Shell {
    fn subscribe(self: &Arc<Self>) {
        let shell = Arc::clone(self);
        self.context.sets.subscribe(move |change| shell.set_changed(change));
        let shell = Arc::clone(self);
        self.context.machines.subscribe(move |change| shell.machine_changed(change));
        let shell = Arc::clone(self);
        self.context.nodes.subscribe(move |change| shell.node_changed(change));
    }

    fn set_changed(&self, change: &Change<MachineSet>) {
        let mut selectors = self.selectors.write().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Added(set, origin) => {
                selectors.put(set);
                self.add(set.key(), *origin);
            }
            Change::Updated { old: _, new } => {
                selectors.put(new);
                self.queue.add(new.key());
            }
            Change::Removed(set) => {
                selectors.remove(&set.key());
                // Its round forgets it.
                self.queue.add(set.key());
            }
        }
    }

    fn machine_changed(&self, change: &Change<Machine>) {
        match change {
            Change::Added(machine, origin) => self.add_sets_of(machine, *origin),
            Change::Updated { old, new } => {
                if machine_set::is_relevant(old, new) {
                    self.add_sets_of(old, Origin::Watch);
                    self.add_sets_of(new, Origin::Watch);
                }
            }
            Change::Removed(machine) => self.add_sets_of(machine, Origin::Watch),
        }
    }

    fn node_changed(&self, change: &Change<Node>) {
        let (node, origin) = match change {
            Change::Updated { old, new } if !machine_set::is_relevant_node(old, new) => return,
            Change::Updated { old: _, new } => (new, Origin::Watch),
            Change::Added(node, origin) => (node, *origin),
            Change::Removed(node) => (node, Origin::Watch),
        };
        for machine in self.context.machines.by(indexes::NODE, node.name()) {
            self.add_sets_of(&machine, origin);
        }
    }

    fn add_sets_of(&self, machine: &Machine, origin: Origin) {
        let selectors = self.selectors.read().unwrap_or_else(PoisonError::into_inner);
        for key in machine_set::sets_of(machine, &selectors) {
            self.add(key, origin);
        }
    }

    fn add(&self, key: Key, origin: Origin) {
        match origin {
            Origin::List => self.queue.add_low(key),
            Origin::Watch => self.queue.add(key),
        }
    }

    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Requeue, Error> {
        let context = &*self.context;
        if !context.sets.is_fresh_or_requeues(&key, &self.queue, &key) {
            return Ok(Requeue::Done);
        }
        let Some(set) = context.sets.get(&key) else {
            self.remembered(&key);
            return Ok(Requeue::Done);
        };
        // I7, I8: nothing is made or removed before the cache shows what was made and removed last.
        if !context.machines.is_fresh_or_requeues(&owner_hold(set.uid()), &self.queue, &key) {
            return Ok(Requeue::Done);
        }
        let mut memory = self.remembered(&key).filter(|memory| memory.uid == set.uid()).unwrap_or_default();
        memory.uid = set.uid().into();
        let outcome = self.round(&set, &mut memory).await;
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).insert(key, memory);
        outcome
    }

    /// Takes what is remembered of a set.
    fn remembered(&self, key: &Key) -> Option<Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(key)
    }

    async fn round(&self, set: &MachineSet, memory: &mut Memory) -> Result<Requeue, Error> {
        let context = &*self.context;
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        memory.pending.retain(|name| context.machines.get(&Key::new(namespace, name)).is_none());
        // A reference across namespaces owns nothing.
        let mut owned = self.members(context.machines.by(indexes::OWNER, set.uid()));
        owned.retain(|member| member.machine.metadata.namespace.as_deref() == Some(namespace));
        let plan = machine_set::decide(&Facts {
            set,
            owned: &owned,
            orphans: &self.members(context.machines.by(indexes::ORPHANS, namespace)),
            template: &Template::judge(&context.clouds, set),
            pending: &memory.pending,
            last_error: memory.last_error.as_deref(),
            last_status_write: memory.last_status_write,
            is_gate_on: context.migration,
            entropy: RandomState::new().build_hasher().finish(),
            now: context.clock.now(),
        });
        let (report, work) = machine_set::split(plan);
        if !report.actions.is_empty() {
            match apply(context, report).await? {
                Requeue::Done => memory.last_status_write = Some(context.clock.now()),
                refused @ (Requeue::After(_) | Requeue::Backoff) => return Ok(refused),
            }
        }
        tell(set, &work);
        let applied = apply_outcome(context, work).await;
        match &applied.outcome {
            Ok(Requeue::Done | Requeue::After(_)) => {
                memory.pending.clear();
                memory.last_error = None;
            }
            Ok(Requeue::Backoff) => {}
            Err(error) => memory.last_error = Some(error.to_string()),
        }
        memory.pending.extend(applied.uncertain.iter().map(|key| key.name.to_string()));
        applied.outcome
    }

    fn members(&self, machines: Vec<Arc<Machine>>) -> Vec<Member> {
        let node = |machine: &Machine| self.context.nodes.get(&Key::cluster(machine.node_name()?));
        machines.into_iter().map(|machine| Member { node: node(&machine), machine }).collect()
    }
}

/// A creation has an event of its own, the machine controller's; who was chosen to go is told here only.
fn tell(set: &MachineSet, work: &Plan) {
    for action in &work.actions {
        let Action::Batch(batch) = action else { continue };
        for action in batch {
            if let Action::Delete(victim) = action {
                tracing::info!(set = %set.key(), machine = %victim.key, "deleting a surplus machine");
            } else if let Action::Patch { target, .. } = action {
                tracing::info!(set = %set.key(), machine = %target.key, "changing the owner of a machine");
            }
        }
    }
}
