//! Shell of the machine controller: looks at a Machine when it or its instance changes, and asks its cloud.
//! Never here: what is asked, what an answer means and what is written, which are in `core::machine`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use mapi_api::{Key, Machine, Object, names};
use mapi_cloud::{Activity, Answer, Cloud, CloudError, Failure, Identity, Kind, Service, Sighting, Want};
use mapi_core::machine::{self, Decision, Facts, Memory, Serving};
use mapi_runtime::Error;
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Origin};
use mapi_runtime::worker::{self, Requeue};
use tokio::task::JoinHandle;

use crate::Context;
use crate::apply::apply;

/// Five milliseconds to five minutes, for errors of the API server. Errors of a cloud have their own table, in `core`.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(5), max: Duration::from_secs(300) };

/// Five minutes: a question is a handful of calls, each with a deadline of its own. Whatever hangs longer must not keep
/// a worker.
const QUESTION: Duration = Duration::from_secs(300);

/// Begins the controller. It ends when the context's stop is asked for and its rounds have ended.
pub fn start(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let shell = Arc::new(Shell {
        context: Arc::clone(context),
        queue: Queue::new(names::reporter::MACHINE, BACKOFF),
        memory: Mutex::default(),
    });
    shell.subscribe();
    let mut tasks: Vec<_> = context
        .clouds
        .iter()
        .map(|cloud| tokio::spawn(Arc::clone(&shell).listen(Arc::clone(cloud))))
        .collect();
    tasks.push(tokio::spawn(shell.work()));
    tasks
}

struct Shell {
    context: Arc<Context>,
    queue: Queue<Key>,
    /// What is remembered between rounds, of Machines of which there is anything to remember.
    memory: Mutex<HashMap<Key, Remembered>>,
}

/// What is remembered of one Machine.
#[derive(Default)]
struct Remembered {
    /// UID of the Machine that this is about.
    uid: String,
    memory: Memory,
    /// How often its cloud announced a change: one that comes while a question is under way must not be lost.
    stirs: u64,
}

impl Shell {
    fn subscribe(self: &Arc<Self>) {
        let queue = self.queue.clone();
        self.context.machines.subscribe(move |change| match change {
            Change::Added(machine, Origin::List) => queue.add_low(machine.key()),
            Change::Added(machine, Origin::Watch) | Change::Updated { new: machine, .. } => {
                queue.add(machine.key())
            }
            // Its round forgets it.
            Change::Removed(machine) => queue.add(machine.key()),
        });
    }

    /// Takes in what a cloud announces.
    async fn listen(self: Arc<Self>, cloud: Arc<dyn Cloud>) {
        let stop = self.context.stop.clone();
        let mut changes = cloud.changes();
        while let Some(Some(key)) = stop.run_until_cancelled(changes.next()).await {
            if let Some(remembered) = self.lock().get_mut(&key) {
                remembered.stirs += 1;
                remembered.memory.relent(self.context.clock.now());
            }
            self.queue.add(key);
        }
    }

    async fn work(self: Arc<Self>) {
        let Context { machines, nodes, stop, concurrency, .. } = &*self.context;
        // Whose Node is not known yet would be left without it.
        let synced = async { tokio::join!(machines.synced(), nodes.synced()) };
        if stop.run_until_cancelled(synced).await.is_none() {
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
        match machines.get(&key) {
            Some(machine) => self.round(&machine).await,
            None => {
                self.lock().remove(&key);
                Ok(Requeue::Done)
            }
        }
    }

    async fn round(&self, machine: &Machine) -> Result<Requeue, Error> {
        let context = &*self.context;
        let service = context.clouds.of(machine.spec.provider_spec.value.as_ref());
        let serving = Serving::of(&service, &context.clouds, machine);
        let node = machine.node_name().and_then(|name| context.nodes.get(&Key::cluster(name)));
        let (memory, stirs) = self.recall(machine);
        let facts = Facts {
            machine,
            serving: &serving,
            node: node.as_deref(),
            memory: &memory,
            is_gate_on: context.migration,
            now: context.clock.now(),
        };
        let (want, cloud) = match (machine::decide(&facts), &service) {
            (Decision::Done(plan), _) => return apply(context, plan).await,
            (Decision::Ask(want), Service::By(cloud)) => (want, cloud),
            // A decision asks only where somebody serves.
            (Decision::Ask(_), Service::Missing | Service::Unknown { .. }) => return Ok(Requeue::Done),
        };
        // If this round is cut off, what it asked for must not look settled.
        self.remember(machine, memory.asking(want), stirs);
        let answer = self.ask(machine, &**cloud, want).await;
        let after = Memory::after(&facts, want, &answer, context.clock.now());
        let outcome = apply(context, machine::settle(&facts, &answer)).await;
        let after = match &outcome {
            Ok(Requeue::Done | Requeue::After(_)) => after,
            Ok(Requeue::Backoff) | Err(_) => after.doubted(),
        };
        self.remember(machine, after, stirs);
        self.tidy(&machine.key());
        outcome
    }

    async fn ask(&self, machine: &Machine, cloud: &dyn Cloud, want: Want) -> Answer {
        let who = Identity::of(machine, self.context.clock.now());
        let question = cloud.ask(&who, machine.spec.provider_spec.value.as_ref(), want);
        let answer = match tokio::time::timeout(QUESTION, question).await {
            Ok(answer) => answer,
            Err(_) => unanswered(want),
        };
        let Answer { sighting, taken, failure, .. } = &answer;
        if !taken.is_empty() {
            tracing::info!(machine = %who.key, cloud = cloud.name(), ?want, ?taken, "asked the cloud");
        }
        if let Some(Failure { activity, error }) = failure {
            let (kind, error) = (error.kind, worker::chain(error));
            tracing::warn!(machine = %who.key, cloud = cloud.name(), ?want, ?activity, ?kind, error, "the cloud failed");
        }
        let seen = match sighting {
            Sighting::Unknown => "nothing is known",
            Sighting::Absent => "absent",
            Sighting::Present(_) => "present",
        };
        tracing::debug!(machine = %who.key, cloud = cloud.name(), ?want, seen, "the cloud answered");
        answer
    }

    /// What is remembered of a Machine, and which announcements that takes into account.
    fn recall(&self, machine: &Machine) -> (Memory, u64) {
        let map = self.lock();
        let remembered = map.get(&machine.key()).filter(|r| r.uid == machine.uid());
        remembered.map(|r| (r.memory.clone(), r.stirs)).unwrap_or_default()
    }

    /// Replaces what is remembered. `stirs` are the announcements that the round took into account.
    fn remember(&self, machine: &Machine, mut memory: Memory, stirs: u64) {
        let now = self.context.clock.now();
        let mut map = self.lock();
        let key = machine.key();
        let missed = map.get(&key).filter(|r| r.uid == machine.uid() && r.stirs > stirs).map(|r| r.stirs);
        if missed.is_some() {
            memory.relent(now);
        }
        let uid = machine.uid().into();
        map.insert(key, Remembered { uid, memory, stirs: missed.unwrap_or(stirs) });
    }

    /// Drops what holds nothing, as for every Machine that runs (I28).
    fn tidy(&self, key: &Key) {
        let mut map = self.lock();
        if map.get(key).is_some_and(|r| r.memory.is_empty()) {
            map.remove(key);
        }
        if map.is_empty() {
            map.shrink_to_fit();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Remembered>> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer of a cloud that does not answer. Whatever was being written may have taken effect.
fn unanswered(want: Want) -> Answer {
    let activity = match want {
        Want::Look => Activity::Observe,
        Want::Present => Activity::Create,
        Want::Absent => Activity::Delete,
    };
    let error =
        CloudError::new(Kind::Transient, "finish in time", "no answer within five minutes").uncertain();
    Answer {
        sighting: Sighting::Unknown,
        taken: vec![],
        failure: Some(Failure { activity, error }),
        gate: None,
        provider_status: None,
    }
}
