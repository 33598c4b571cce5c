//! Shell of the drain controller: looks at a Machine that is being deleted, at its live Node and the Node's pods.
//! One round never waits: while pods end or budgets refuse, they are watched, and each change wakes the key.
//! Never here: which pods go, when, and what is said about it, which are in `core::drain`.

mod scene;
mod watching;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mapi_api::names::condition as types;
use mapi_api::{Conditions, Key, Machine, Object, names};
use mapi_core::drain::{self, Decision, Facts, Look, Outcome, Scene};
use mapi_core::{Action, Kind, Plan};
use mapi_runtime::Error;
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Origin};
use mapi_runtime::worker::{self, Requeue};
use mapi_runtime::writes::{ApiError, Eviction};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;

use crate::Context;
use crate::apply::{Applied, apply, apply_outcome};
use scene::{NodeRead, Pods};
use watching::{Budgets, Drain};

/// Five seconds as in the original, for evictions wait for the same servers; a minute at most, since a drain that can go
/// on should not sit still for longer (item 28).
const BACKOFF: Backoff = Backoff { base: Duration::from_secs(5), max: Duration::from_secs(60) };

/// Steps of one round: a cordon, then evictions until all pods were asked for. A Node holds a few hundred pods at most.
const STEPS: usize = 64;

/// A second after a round that did not come to an end, so that no Node keeps a worker.
const PAUSE: Duration = Duration::from_secs(1);

/// Begins the controller. It ends when the context's stop is asked for and its rounds have ended.
pub fn start(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let shell = Arc::new(Shell {
        context: Arc::clone(context),
        queue: Queue::new(names::reporter::DRAIN, BACKOFF),
        drains: Mutex::default(),
        budgets: Mutex::default(),
        control_plane: Arc::default(),
    });
    shell.subscribe();
    vec![tokio::spawn(shell.work())]
}

struct Shell {
    context: Arc<Context>,
    queue: Queue<Key>,
    /// Drains under way, by Machine.
    drains: Mutex<HashMap<Key, Arc<Drain>>>,
    /// Disruption budgets of namespaces in which an eviction was refused, shared by the drains that wait for them.
    budgets: Mutex<BTreeMap<String, Weak<Budgets>>>,
    /// Held from the look at other control-plane Nodes to the end of the cordon, so that no two pass at once.
    control_plane: Arc<tokio::sync::Mutex<()>>,
}

impl Shell {
    fn subscribe(self: &Arc<Self>) {
        let queue = self.queue.clone();
        self.context.machines.subscribe(move |change| match change {
            Change::Added(machine, Origin::List) if machine.is_deleting() => queue.add_low(machine.key()),
            Change::Added(machine, Origin::Watch) | Change::Updated { new: machine, .. }
                if machine.is_deleting() =>
            {
                queue.add(machine.key());
            }
            Change::Added(..) | Change::Updated { .. } => {}
            // Its round forgets it.
            Change::Removed(machine) => queue.add(machine.key()),
        });
    }

    async fn work(self: Arc<Self>) {
        let Context { machines, stop, concurrency, .. } = &*self.context;
        if stop.run_until_cancelled(machines.synced()).await.is_none() {
            return;
        }
        let shell = Arc::clone(&self);
        let reconcile = move |key| Arc::clone(&shell).reconcile(key);
        worker::run_until(stop, &self.queue, *concurrency, reconcile).await;
    }

    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Requeue, Error> {
        let machines = &self.context.machines;
        if !machines.is_fresh_or_requeues(&key, &self.queue, &key) {
            return Ok(Requeue::Done);
        }
        let machine =
            machines.get(&key).filter(|m| m.is_deleting() && !m.status.conditions.is_true(types::DRAINED));
        let Some(machine) = machine else {
            self.forget(&key);
            return Ok(Requeue::Done);
        };
        let drain = self.drain_of(&machine);
        let facts = Facts {
            machine: &machine,
            is_gate_on: self.context.migration,
            memory: &drain.memory(),
            scene: None,
            now: self.context.clock.now(),
        };
        let decision = drain::decide(&facts);
        drain.remember(drain::remember(&facts, &decision));
        match decision {
            Decision::Done(plan) | Decision::Cordon(plan) | Decision::Evict(plan) => {
                apply(&self.context, plan).await
            }
            Decision::Look(node) => self.drain(&machine, &drain, node).await,
        }
    }

    /// One round on the spot: decisions and their plans until nothing is left to do now.
    async fn drain(
        self: &Arc<Self>,
        machine: &Machine,
        drain: &Arc<Drain>,
        node: &str,
    ) -> Result<Requeue, Error> {
        let context = &*self.context;
        let mut live = scene::read_node(context, node).await;
        let mut turn = self.turn(&live).await;
        let peers = if turn.is_some() { scene::peers(context).await } else { Ok(vec![]) };
        for _ in 0..STEPS {
            let pods = if live.is_cordoned() { self.pods(drain, node).await } else { Ok(None) };
            let attempts = drain.attempts();
            let scene = Scene {
                node: live.look(),
                peers: peers.clone(),
                pods: pods.as_ref().map(|pods| pods.as_ref().map(Pods::facts)).map_err(Clone::clone),
                attempts: &attempts,
            };
            let memory = drain.memory();
            let now = context.clock.now();
            let facts =
                Facts { machine, is_gate_on: context.migration, memory: &memory, scene: Some(&scene), now };
            let decision = drain::decide(&facts);
            drain.remember(drain::remember(&facts, &decision));
            match decision {
                Decision::Done(plan) => return apply(context, plan).await,
                Decision::Look(_) => return Ok(Requeue::Done),
                Decision::Cordon(plan) => {
                    let Applied { outcome, failures, .. } = apply_outcome(context, plan).await;
                    match outcome {
                        Ok(Requeue::Backoff) => return Ok(Requeue::Backoff),
                        Ok(Requeue::Done | Requeue::After(_)) => live.set_cordoned(),
                        Err(_) => {
                            let words: Vec<String> = failures.into_iter().map(scene::words).collect();
                            return apply(context, drain::cordon_failed(&facts, node, &words.join("; ")))
                                .await;
                        }
                    }
                }
                Decision::Evict(plan) => {
                    if matches!(scene.pods, Ok(Some(_))) {
                        self.watch_pods(drain, node);
                    }
                    if let Some(outcome) = self.evict(drain, plan).await {
                        return outcome;
                    }
                }
            }
            turn = None;
        }
        drop(turn);
        Ok(Requeue::After(PAUSE))
    }

    /// Runs a plan of evictions. `None`: the answers are to be looked at right away. After a write to the Machine they
    /// are looked at when the cache shows it, which wakes the key.
    async fn evict(self: &Arc<Self>, drain: &Arc<Drain>, plan: Plan) -> Option<Result<Requeue, Error>> {
        let uids = uids_of(&plan);
        let writes_machine = plan
            .actions
            .iter()
            .any(|action| matches!(action, Action::Patch { target, .. } if target.kind == Kind::Machine));
        let Applied { outcome, evictions, .. } = apply_outcome(&self.context, plan).await;
        let is_done = evictions.is_empty() || writes_machine || outcome.is_err();
        let now = self.context.clock.now();
        for (pod, answer) in evictions {
            let uid = uids.get(&pod).map(String::as_str).unwrap_or_default();
            drain.record(&pod, uid, outcome_of(answer), now);
        }
        self.watch_budgets(drain);
        is_done.then_some(outcome)
    }

    /// The right to look at other control-plane Nodes and to cordon this one, if it is one that is not cordoned.
    async fn turn(&self, node: &NodeRead) -> Option<OwnedMutexGuard<()>> {
        match node.look() {
            Look::Found(node) if crate::indexes::is_control_plane(node) && !node.spec.unschedulable => {
                Some(Arc::clone(&self.control_plane).lock_owned().await)
            }
            Look::Found(_) | Look::Gone | Look::Failed(_) => None,
        }
    }

    /// The pods of a Node: from the watch if there is one, else from the server.
    async fn pods(&self, drain: &Drain, node: &str) -> Result<Option<Pods>, String> {
        let pods = match drain.pods() {
            Some(watched) if watched.is_synced() => watched.list(),
            Some(_) => return Ok(None),
            None => scene::list_pods(&self.context, node).await?,
        };
        Ok(Some(scene::with_daemon_sets(&self.context, drain, pods).await))
    }

    fn drain_of(&self, machine: &Machine) -> Arc<Drain> {
        let mut drains = self.lock();
        let key = machine.key();
        match drains.get(&key).filter(|drain| drain.uid == machine.uid()) {
            Some(drain) => Arc::clone(drain),
            None => {
                let drain = Arc::new(Drain::new(key.clone(), machine.uid(), &self.context.stop));
                drains.insert(key, Arc::clone(&drain));
                drain
            }
        }
    }

    /// Ends the watches of a drain.
    fn forget(&self, key: &Key) {
        let mut drains = self.lock();
        let ended = drains.remove(key);
        if drains.is_empty() {
            drains.shrink_to_fit();
        }
        drop(drains);
        drop(ended);
        self.lock_budgets().retain(|_, budgets| budgets.strong_count() > 0);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Drain>>> {
        self.drains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_budgets(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Budgets>>> {
        self.budgets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// UIDs of the pods that a plan evicts: answers come by name.
fn uids_of(plan: &Plan) -> HashMap<Key, String> {
    let mut uids = HashMap::new();
    for action in &plan.actions {
        let Action::Batch(batch) = action else { continue };
        for action in batch {
            if let Action::Evict { pod, uid, .. } = action {
                uids.insert(pod.clone(), uid.clone());
            }
        }
    }
    uids
}

fn outcome_of(answer: Result<Eviction, ApiError>) -> Outcome {
    match answer {
        Ok(Eviction::Accepted) => Outcome::Accepted,
        Ok(Eviction::Gone) => Outcome::Gone,
        Ok(Eviction::Blocked { message, retry_after }) => Outcome::Blocked { message, retry_after },
        Ok(Eviction::NamespaceTerminating) => Outcome::NamespaceTerminating,
        Err(error) => Outcome::Failed(scene::words(error)),
    }
}
