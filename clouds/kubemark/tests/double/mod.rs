//! A double of the simulated cloud for the laws: objects in memory whose cache and reads lag, whose answers get lost, and
//! behind them the real far side's decisions on virtual time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use mapi_api::meta::Time;
use mapi_api::{Key, Node, Object, RawJson, SimulatedInstance, Timestamp, names};
use mapi_cloud::laws::{Bench, Meddling, Trouble};
use mapi_cloud::{Objects, Provider, StoreError};
use mapi_simcloud::decide::{Effect, Facts, NodeSight, advance};
use mapi_simcloud::node::{self, Readiness};
use serde_json::{Value, json};

/// Everything that is true.
pub struct World {
    pub now: Timestamp,
    pub objects: BTreeMap<Key, SimulatedInstance>,
    pub nodes: BTreeMap<String, Node>,
    pub leases: BTreeMap<String, Key>,
    /// Instances ever made, by the UID of the Machine.
    made: BTreeMap<String, usize>,
    writes: usize,
    uids: usize,
    /// What happened to each object, for those who look late.
    history: Vec<(Timestamp, Key, Option<Arc<SimulatedInstance>>)>,
    trouble: Option<Trouble>,
    throttles: bool,
}

/// The world, shared by the double and whoever watches it.
#[derive(Clone)]
pub struct Double {
    world: Arc<Mutex<World>>,
    spec: Value,
}

impl Double {
    /// A quiet world in which machines have this provider spec.
    pub fn new(spec: Value) -> Self {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let world = World {
            now,
            objects: BTreeMap::new(),
            nodes: BTreeMap::new(),
            leases: BTreeMap::new(),
            made: BTreeMap::new(),
            writes: 0,
            uids: 0,
            history: vec![],
            trouble: None,
            throttles: false,
        };
        Self { world: Arc::new(Mutex::new(world)), spec }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// The instance of a Machine.
    pub fn instance(&self, uid: &str) -> Option<SimulatedInstance> {
        self.world().objects.values().find(|object| object.spec.token == uid).cloned()
    }
}

impl World {
    fn keep(&mut self, key: &Key, object: Option<SimulatedInstance>) {
        self.history.push((self.now, key.clone(), object.clone().map(Arc::new)));
        match object {
            Some(object) => _ = self.objects.insert(key.clone(), object),
            None => _ = self.objects.remove(key),
        }
    }

    fn as_of(&self, key: &Key, lag: Duration) -> Option<Arc<SimulatedInstance>> {
        let limit = self.now - lag;
        let mut seen =
            self.history.iter().filter(|(at, other, _)| other == key && (lag.is_zero() || *at < limit));
        seen.next_back().and_then(|(_, _, object)| object.clone())
    }

    fn cached(&self, key: &Key) -> Option<Arc<SimulatedInstance>> {
        if self.trouble == Some(Trouble::CacheStands) {
            return None;
        }
        let lag = if let Some(Trouble::ListsLag(lag)) = self.trouble { lag } else { Duration::ZERO };
        self.as_of(key, lag)
    }

    fn is_out(&self) -> bool {
        self.trouble == Some(Trouble::Out)
    }

    /// Takes one off a trouble that hits so many calls.
    fn hits(&mut self, with: impl Fn(usize) -> Trouble) -> bool {
        let Some(count) = (1..10).find(|count| self.trouble == Some(with(*count))) else { return false };
        self.trouble = (count > 1).then(|| with(count - 1));
        true
    }

    fn create(&mut self, object: &SimulatedInstance) -> Result<SimulatedInstance, StoreError> {
        if self.is_out() || self.hits(Trouble::CreatesFail) {
            return Err(StoreError::NoAnswer("timed out".into()));
        }
        let key = object.key();
        if self.objects.contains_key(&key) {
            return Err(StoreError::AlreadyExists);
        }
        self.uids += 1;
        let mut made = object.clone();
        made.metadata.uid = Some(format!("uid-{}", self.uids));
        made.metadata.creation_timestamp = Some(Time(mapi_api::condition::whole_seconds(self.now)));
        *self.made.entry(made.spec.token.clone()).or_default() += 1;
        self.writes += 1;
        self.keep(&key, Some(made.clone()));
        if self.hits(Trouble::CreateAnswersLost) || self.hits(Trouble::CreatesFailAfterSuccess) {
            return Err(StoreError::NoAnswer("connection reset".into()));
        }
        Ok(made)
    }

    fn delete(&mut self, key: &Key, uid: &str) -> Result<Option<SimulatedInstance>, StoreError> {
        if self.is_out() {
            return Err(StoreError::NoAnswer("timed out".into()));
        }
        let Some(object) = self.objects.get(key) else { return Err(StoreError::NotFound) };
        if object.uid() != uid {
            return Err(StoreError::Conflict("the uid differs".into()));
        }
        self.writes += 1;
        let marked = self.mark(key);
        if self.hits(Trouble::RemoveAnswersLost) {
            return Err(StoreError::NoAnswer("connection reset".into()));
        }
        Ok(marked)
    }

    fn mark(&mut self, key: &Key) -> Option<SimulatedInstance> {
        let mut object = self.objects.get(key)?.clone();
        let now = Time(mapi_api::condition::whole_seconds(self.now));
        object.metadata.deletion_timestamp.get_or_insert(now);
        let is_held = object.has_finalizer(names::finalizer::SIMULATED_INSTANCE);
        self.keep(key, is_held.then(|| object.clone()));
        is_held.then_some(object)
    }

    /// The far side looks once at every instance.
    fn work(&mut self) {
        for key in self.objects.keys().cloned().collect::<Vec<_>>() {
            let object = self.objects[&key].clone();
            let node = self.nodes.get(&object.spec.node.name).cloned();
            let facts =
                Facts { instance: &object, node: NodeSight::of(&object, node.as_ref()), now: self.now };
            for effect in advance(&facts).effects {
                if !self.perform(&key, &object, effect) {
                    break;
                }
            }
        }
    }

    fn perform(&mut self, key: &Key, object: &SimulatedInstance, effect: Effect) -> bool {
        let name = object.spec.node.name.clone();
        match effect {
            Effect::Status(status) => {
                let now = self.objects.get(key).cloned().unwrap_or_default();
                self.keep(key, Some(SimulatedInstance { status: Some(*status), ..now }));
            }
            Effect::Register(readiness) => {
                if self.nodes.contains_key(&name) {
                    return false;
                }
                self.uids += 1;
                let mut body = node::body(object, &readiness, self.now, "v1");
                body["metadata"]["uid"] = format!("uid-{}", self.uids).into();
                body["metadata"]["creationTimestamp"] =
                    mapi_api::condition::whole_seconds(self.now).to_string().into();
                self.nodes.insert(name.clone(), serde_json::from_value(body).unwrap());
                self.leases.insert(name, key.clone());
                // Half of the work: the instance runs, and everything after the Node is left for later.
                return self.trouble != Some(Trouble::HalfSucceeds);
            }
            Effect::Report { readiness, .. } => self.report(&name, &readiness),
            Effect::Unregister => _ = self.nodes.remove(&name),
            Effect::Terminate => _ = self.mark(key),
            Effect::Remove => {
                self.leases.retain(|_, owner| owner != key);
                if self.trouble == Some(Trouble::HalfSucceeds) {
                    return false;
                }
                if matches!(NodeSight::of(object, self.nodes.get(&name)), NodeSight::Ours(_)) {
                    self.nodes.remove(&name);
                }
                self.keep(key, None);
            }
        }
        true
    }

    fn report(&mut self, name: &str, readiness: &Readiness) {
        let node = self.nodes.get_mut(name).unwrap();
        let ready = node.status.conditions.iter_mut().find(|condition| condition.type_ == "Ready").unwrap();
        ready.status = readiness.status().into();
    }
}

#[async_trait]
impl Objects<SimulatedInstance> for Double {
    fn cached(&self, key: &Key) -> Option<Arc<SimulatedInstance>> {
        self.world().cached(key)
    }

    fn cached_in(&self, namespace: &str) -> Vec<Arc<SimulatedInstance>> {
        let world = self.world();
        let mut keys: Vec<&Key> = world.history.iter().map(|(_, key, _)| key).collect();
        keys.sort();
        keys.dedup();
        let within = keys.into_iter().filter(|key| &*key.namespace == namespace);
        within.filter_map(|key| world.cached(key)).collect()
    }

    async fn get(&self, key: &Key) -> Result<Option<SimulatedInstance>, StoreError> {
        let world = self.world();
        if world.is_out() {
            return Err(StoreError::NoAnswer("timed out".into()));
        }
        let lag = if let Some(Trouble::ReadsLag(lag)) = world.trouble { lag } else { Duration::ZERO };
        Ok(world.as_of(key, lag).map(|object| (*object).clone()))
    }

    async fn create(&self, object: &SimulatedInstance) -> Result<SimulatedInstance, StoreError> {
        self.world().create(object)
    }

    async fn patch(&self, key: &Key, patch: &Value) -> Result<SimulatedInstance, StoreError> {
        let mut world = self.world();
        if world.is_out() {
            return Err(StoreError::NoAnswer("timed out".into()));
        }
        let Some(object) = world.objects.get(key) else { return Err(StoreError::NotFound) };
        let mut whole = serde_json::to_value(object).unwrap();
        for (field, value) in patch["spec"].as_object().unwrap() {
            whole["spec"][field] = value.clone();
        }
        let object: SimulatedInstance = serde_json::from_value(whole).unwrap();
        world.writes += 1;
        world.keep(key, Some(object.clone()));
        Ok(object)
    }

    async fn delete(&self, key: &Key, uid: &str) -> Result<Option<SimulatedInstance>, StoreError> {
        self.world().delete(key, uid)
    }

    fn changes(&self) -> BoxStream<'static, Arc<SimulatedInstance>> {
        let changed: Vec<_> =
            self.world().history.iter().filter_map(|(_, _, object)| object.clone()).collect();
        stream::iter(changed).boxed()
    }
}

/// A world for a kind of provider.
pub struct Examination<P> {
    pub double: Double,
    pub provider: fn(Double) -> P,
}

impl<P: Provider> Bench for Examination<P> {
    type Provider = P;

    fn provider(&self) -> P {
        (self.provider)(self.double.clone())
    }

    fn spec(&self) -> RawJson {
        let mut spec = self.double.spec.clone();
        if self.double.world().throttles {
            spec["faults"] = json!([{ "kind": "ApiThrottle", "args": { "rps": 1 } }]);
        }
        spec.into()
    }

    fn now(&self) -> Timestamp {
        self.double.world().now
    }

    fn pass(&self, time: Duration) {
        let mut world = self.double.world();
        let end = world.now + time;
        // Quiet times pass in long steps: what is due by itself is due by absolute times.
        let step = Duration::from_secs(if time > Duration::from_secs(600) { 30 } else { 1 });
        while world.now < end {
            world.now = (world.now + step).min(end);
            world.work();
        }
    }

    fn begin(&self, trouble: Trouble) -> bool {
        let mut world = self.double.world();
        world.throttles = trouble == Trouble::Throttles;
        world.trouble = Some(trouble);
        true
    }

    fn calm(&self) {
        self.double.world().trouble = None;
    }

    fn meddle(&self, uid: &str, meddling: Meddling) {
        let object = self.double.instance(uid).unwrap();
        let mut world = self.double.world();
        match meddling {
            Meddling::Terminate => _ = world.mark(&object.key()),
            Meddling::Stop => {
                let mut stopped = object.clone();
                let fault = json!({ "kind": "InstanceStopped", "since": mapi_api::meta::micro(world.now) });
                stopped.spec.faults.push(serde_json::from_value(fault).unwrap());
                world.keep(&object.key(), Some(stopped));
            }
        }
    }

    fn live(&self, uid: &str) -> usize {
        self.double.world().objects.values().filter(|object| object.spec.token == uid).count()
    }

    fn made(&self, uid: &str) -> usize {
        self.double.world().made.get(uid).copied().unwrap_or_default()
    }

    fn writes(&self) -> usize {
        self.double.world().writes
    }

    fn left(&self, uid: &str) -> Vec<String> {
        let world = self.double.world();
        let instances = world.objects.values().filter(|object| object.spec.token == uid);
        let mut left: Vec<String> = instances.map(|object| format!("instance {}", object.key())).collect();
        let id = mapi_cloud_kubemark::instance_id(uid);
        let is_of = |node: &Node| node.provider_id().is_some_and(|provider_id| provider_id.ends_with(&id));
        let nodes: Vec<&String> =
            world.nodes.iter().filter(|(_, node)| is_of(node)).map(|(name, _)| name).collect();
        left.extend(nodes.into_iter().map(|name| format!("node {name}")));
        left.extend(
            world.leases.iter().filter(|(_, key)| *key.name == *id).map(|(name, _)| format!("lease {name}")),
        );
        left
    }
}
