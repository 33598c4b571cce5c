//! The shell around [`advance`]: watches instances and their Nodes, and carries out what is decided.

use std::sync::Arc;
use std::time::Duration;

use mapi_api::{Key, Node, Object, SimulatedInstance, Timestamp, names};
use mapi_runtime::clock::Clock;
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Origin, Store};
use mapi_runtime::watch::{Filter, Scope, run_watch};
use mapi_runtime::worker::{self, Requeue};
use mapi_runtime::writes::{Deleted, Preconditions, Sub, Writer};
use mapi_runtime::{CancellationToken, Error};
use serde_json::json;

use crate::decide::{Effect, Facts, NodeSight, Plan, advance};
use crate::heartbeat::{Heartbeats, Pulse};
use crate::node::{self, Readiness};
use crate::pods;

/// How to play the cloud.
pub struct Options {
    /// Client under the simulated cloud's own user agent. It should be limited in requests in flight only, and to no fewer
    /// than `concurrency` and 32 for heartbeats, which must not wait for anything else.
    pub client: kube::Client,
    /// Namespace of the instances; all if `None`.
    pub namespace: Option<String>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ends it.
    pub stop: CancellationToken,
    /// Whether Leases are kept and statuses repeated. Without, Nodes are written when they change only.
    pub heartbeats: bool,
    /// Instances that are worked on at the same time.
    pub concurrency: usize,
}

pub(crate) const BY_NODE: &str = "node";

/// Plays the cloud until it is told to stop. Writes that are on their way end first.
pub async fn run(options: Options) -> Result<(), Error> {
    let Options { client, namespace, clock, stop, heartbeats, concurrency } = options;
    let writer = Writer::new(client.clone());
    let version = server_version(&client, &stop).await;
    let instances =
        Store::new(&[(BY_NODE, |instance: &SimulatedInstance| vec![instance.spec.node.name.clone()])]);
    let nodes = Store::new(&[]);
    let queue = Queue::new(
        "simulated-cloud",
        Backoff { base: Duration::from_millis(50), max: Duration::from_secs(30) },
    );
    let beats = heartbeats.then(|| Heartbeats::new(writer.clone(), Arc::clone(&clock)));
    let agent = Arc::new(Agent { instances, nodes, writer, queue, beats, clock, version });
    agent.subscribe();

    // One watch each for all instances and all marked Nodes. A Node that loses its marker leaves the watch as if it
    // were gone, and its name is then found taken.
    let scope = namespace.map_or(Scope::All, Scope::Namespace);
    let marked = Filter { labels: Some(format!("{}=true", names::label::SIMULATED)), fields: None };
    let mut tasks = vec![
        run_watch(client.clone(), scope, Filter::default(), agent.instances.clone(), stop.clone()),
        run_watch(client.clone(), Scope::All, marked, agent.nodes.clone(), stop.clone()),
    ];
    tokio::select! {
        () = stop.cancelled() => {}
        () = async { tokio::join!(agent.instances.synced(), agent.nodes.synced()); } => {}
    }
    if let Some(beats) = agent.beats.clone() {
        tasks.push(tokio::spawn(beats.run(stop.clone())));
    }
    tasks.push(tokio::spawn(pods::run(
        client,
        agent.instances.clone(),
        Arc::clone(&agent.clock),
        stop.clone(),
    )));
    let working = Arc::clone(&agent);
    let reconcile = move |key| Arc::clone(&working).reconcile(key);
    worker::run_until(&stop, &agent.queue, concurrency, reconcile).await;
    for task in tasks {
        // An error means that the task panicked, which the runtime has logged.
        let _ = task.await;
    }
    Ok(())
}

/// Version of the API server, for kubelets that say nothing else.
async fn server_version(client: &kube::Client, stop: &CancellationToken) -> String {
    let asked = async {
        match client.apiserver_version().await {
            Ok(info) => info.git_version,
            Err(error) => {
                tracing::warn!(%error, "cannot ask the API server for its version, simulated kubelets have none");
                String::new()
            }
        }
    };
    tokio::select! { version = asked => version, () = stop.cancelled() => String::new() }
}

struct Agent {
    instances: Store<SimulatedInstance>,
    nodes: Store<Node>,
    writer: Writer,
    queue: Queue<Key>,
    beats: Option<Heartbeats>,
    clock: Arc<dyn Clock>,
    version: String,
}

/// Whether the rest of a plan makes sense.
enum After {
    /// Go on.
    GoOn,
    /// Something else comes first, which announces itself or is looked at again after this time.
    Stop(Option<Duration>),
}

impl Agent {
    fn subscribe(self: &Arc<Self>) {
        let queue = self.queue.clone();
        self.instances.subscribe(move |change| match change {
            Change::Added(instance, Origin::List) => queue.add_low(instance.key()),
            Change::Added(instance, Origin::Watch) | Change::Removed(instance) => queue.add(instance.key()),
            Change::Updated { new, .. } => queue.add(new.key()),
        });
        let (queue, instances) = (self.queue.clone(), self.instances.clone());
        self.nodes.subscribe(move |change| {
            let node = match change {
                Change::Added(node, _) | Change::Removed(node) => node,
                Change::Updated { old, new } if is_same(old, new) => return,
                Change::Updated { new, .. } => new,
            };
            for instance in instances.by(BY_NODE, node.name()) {
                queue.add(instance.key());
            }
        });
    }

    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Requeue, Error> {
        let Some(instance) = self.instances.get(&key) else {
            if let Some(beats) = &self.beats {
                beats.forget(&key);
            }
            return Ok(Requeue::Done);
        };
        let node_key = Key::cluster(&instance.spec.node.name);
        if !self.instances.is_fresh_or_requeues(&key, &self.queue, &key)
            || !self.nodes.is_fresh_or_requeues(&node_key, &self.queue, &key)
        {
            return Ok(Requeue::Done);
        }
        let node = self.nodes.get(&node_key);
        let facts = Facts {
            instance: &instance,
            node: NodeSight::of(&instance, node.as_deref()),
            now: self.clock.now(),
        };
        let plan = advance(&facts);
        self.carry_out(&instance, node.as_deref(), plan, facts.now).await
    }

    async fn carry_out(
        &self,
        instance: &SimulatedInstance,
        node: Option<&Node>,
        plan: Plan,
        now: Timestamp,
    ) -> Result<Requeue, Error> {
        let key = instance.key();
        if let (Some(beats), None) = (&self.beats, &plan.pulse) {
            beats.silence(&key);
        }
        if let (Some(node), Some(readiness)) = (node, &plan.pulse) {
            self.speak(instance, node, readiness, false);
        }
        for effect in plan.effects {
            match self.perform(instance, node, effect, now).await? {
                After::GoOn => {}
                After::Stop(again) => return Ok(again.map_or(Requeue::Done, Requeue::After)),
            }
        }
        let wait = |at: Timestamp| at.duration_since(now).unsigned_abs();
        Ok(plan.wake.map_or(Requeue::Done, |at| Requeue::After(wait(at))))
    }

    async fn perform(
        &self,
        instance: &SimulatedInstance,
        node: Option<&Node>,
        effect: Effect,
        now: Timestamp,
    ) -> Result<After, Error> {
        let key = instance.key();
        match effect {
            Effect::Status(status) => {
                let mut patch = json!({ "status": status });
                // A merge patch removes only what it names.
                let fields = patch["status"].as_object_mut().expect("a status is an object");
                fields.entry("nextTransitionAt").or_insert(serde_json::Value::Null);
                self.patch_instance(&key, Sub::Status, &patch).await?;
            }
            Effect::Register(readiness) => return self.register(instance, &readiness, now).await,
            Effect::Report { readiness, was_silent } => {
                let name = Key::cluster(&instance.spec.node.name);
                let write = self.nodes.begin_write(&name);
                let patch = node::report(&readiness, was_silent, now);
                let answer = self.writer.strategic_patch::<Node>(&name, Sub::Status, &patch).await;
                write.finish(answer.as_ref());
                answer?;
            }
            Effect::Unregister => {
                if let Some(node) = node {
                    self.delete_node(node).await?;
                }
            }
            Effect::Terminate => {
                let write = self.instances.begin_write(&key);
                let answer =
                    self.writer.delete::<SimulatedInstance>(&key, Preconditions::uid(instance.uid())).await;
                write.finish_delete(&key, instance.uid(), answer.as_ref());
                answer?;
            }
            Effect::Remove => return self.remove(instance, node).await,
        }
        Ok(After::GoOn)
    }

    async fn patch_instance(&self, key: &Key, sub: Sub, patch: &serde_json::Value) -> Result<(), Error> {
        let write = self.instances.begin_write(key);
        let answer = self.writer.merge_patch::<SimulatedInstance>(key, sub, patch).await;
        write.finish(answer.as_ref());
        match answer {
            Ok(_) => Ok(()),
            // Somebody took the finalizer away by hand; the watch tells.
            Err(e) if e.is_not_found() => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    async fn register(
        &self,
        instance: &SimulatedInstance,
        readiness: &Readiness,
        now: Timestamp,
    ) -> Result<After, Error> {
        let name = Key::cluster(&instance.spec.node.name);
        let body = node::body(instance, readiness, now, &self.version);
        let write = self.nodes.begin_write(&name);
        let answer = self.writer.create::<Node>("", &body).await;
        write.finish(answer.as_ref());
        match answer {
            Ok(node) => {
                if readiness.clone().speaks().is_some() {
                    self.speak(instance, &node, readiness, true);
                }
                Ok(After::GoOn)
            }
            Err(e) if e.is_already_exists() => self.meet(instance, &name, now).await,
            Err(e) => Err(e.into()),
        }
    }

    /// Something has the name of the Node that is not in the cache.
    async fn meet(&self, instance: &SimulatedInstance, name: &Key, now: Timestamp) -> Result<After, Error> {
        let node = self.writer.get::<Node>(name).await?;
        let sight = NodeSight::of(instance, node.as_ref());
        if !matches!(sight, NodeSight::Foreign) {
            // It is on its way into the cache, or has just gone.
            return Ok(After::Stop(Some(Duration::from_secs(1))));
        }
        let plan = advance(&Facts { instance, node: sight, now });
        for effect in plan.effects {
            if let Effect::Status(status) = effect {
                self.patch_instance(&instance.key(), Sub::Status, &json!({ "status": status })).await?;
            }
        }
        Ok(After::Stop(plan.wake.map(|at| at.duration_since(now).unsigned_abs())))
    }

    fn speak(&self, instance: &SimulatedInstance, node: &Node, readiness: &Readiness, is_new: bool) {
        let Some(beats) = &self.beats else { return };
        let pulse = Pulse {
            node: node.name().into(),
            node_uid: node.uid().into(),
            readiness: readiness.clone(),
            heartbeat: instance.spec.heartbeat.clone(),
        };
        beats.speak(&instance.key(), pulse, is_new);
    }

    /// Lease, Node, finalizer: nothing is left when the last one goes.
    async fn remove(&self, instance: &SimulatedInstance, node: Option<&Node>) -> Result<After, Error> {
        let key = instance.key();
        let name = &instance.spec.node.name;
        if let Some(beats) = &self.beats {
            beats.remove(&key, name).await?;
        }
        // The cache may lack a Node that another process registered just before it was killed.
        let found = match node {
            Some(_) => None,
            None => self.writer.get::<Node>(&Key::cluster(name)).await?,
        };
        if let NodeSight::Ours(node) = NodeSight::of(instance, node.or(found.as_ref()))
            && let Deleted::Marked(_) = self.delete_node(node).await?
        {
            tracing::info!(instance = %key, node = name, "node is held by a finalizer, waiting for it");
            return Ok(After::Stop(Some(Duration::from_secs(10))));
        }
        let kept: Vec<&String> = instance.metadata.finalizers.iter().flatten().collect();
        let others: Vec<&String> =
            kept.iter().copied().filter(|name| *name != names::finalizer::SIMULATED_INSTANCE).collect();
        if others.len() == kept.len() {
            return Ok(After::GoOn);
        }
        let patch = json!({ "metadata": { "finalizers": others, "resourceVersion": instance.version() } });
        let write = self.instances.begin_write(&key);
        let answer = self.writer.merge_patch::<SimulatedInstance>(&key, Sub::Main, &patch).await;
        match answer {
            // The last finalizer takes the object with it, and the cache must not show it to another round.
            Ok(_) if others.is_empty() => write.gone(&key, instance.uid()),
            Err(e) if e.is_not_found() => write.gone(&key, instance.uid()),
            other => {
                write.finish(other.as_ref());
                other?;
            }
        }
        Ok(After::GoOn)
    }

    async fn delete_node(&self, node: &Node) -> Result<Deleted<Node>, Error> {
        let key = node.key();
        let write = self.nodes.begin_write(&key);
        let answer = self.writer.delete::<Node>(&key, Preconditions::uid(node.uid())).await;
        write.finish_delete(&key, node.uid(), answer.as_ref());
        Ok(answer?)
    }
}

/// Whether nothing changed that an instance's next step depends on.
fn is_same(old: &Node, new: &Node) -> bool {
    old.uid() == new.uid()
        && old.status.conditions == new.status.conditions
        && old.provider_id() == new.provider_id()
        && old.label(names::label::SIMULATED) == new.label(names::label::SIMULATED)
}
