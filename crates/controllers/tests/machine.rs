//! The machine shell with a scripted cloud, a server that merges patches, and a cache that shows them or does not.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use http::{Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use mapi_api::machine::Address;
use mapi_api::{Conditions, Key, Machine, RawJson, Timestamp};
use mapi_cloud::{
    Activity, Answer, Capacity, Cloud, CloudError, Clouds, Failure, Findings, Identity, Instance, Kind,
    ProviderKind, Sighting, Want,
};
use mapi_controllers::context::{Caches, Context};
use mapi_controllers::{machine, metrics::Metrics};
use mapi_runtime::CancellationToken;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::store::Store;
use mapi_runtime::writes::Writer;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// What the cloud does when it is asked for the n-th time.
type Script = Box<dyn Fn(usize, Want) -> Turn + Send + Sync>;

enum Turn {
    Says(Answer),
    /// Waits for the test first.
    Waits(Answer),
    Hangs,
}

struct Scripted {
    script: Script,
    asked: Mutex<Vec<Want>>,
    go_on: Notify,
    changes: Mutex<Option<mpsc::UnboundedReceiver<Key>>>,
}

#[async_trait]
impl Cloud for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn kinds(&self) -> &'static [ProviderKind] {
        &[ProviderKind { group: "g", kind: "K" }]
    }

    fn settle(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn check(&self, _: &RawJson) -> Findings {
        Findings::default()
    }

    async fn ask(&self, _: &Identity, _: Option<&RawJson>, want: Want) -> Answer {
        let count = {
            let mut asked = self.asked.lock().expect("no test panicked");
            asked.push(want);
            asked.len()
        };
        match (self.script)(count, want) {
            Turn::Says(answer) => answer,
            Turn::Waits(answer) => {
                self.go_on.notified().await;
                answer
            }
            Turn::Hangs => std::future::pending().await,
        }
    }

    async fn capacity(&self, _: &RawJson) -> Result<Option<Capacity>, CloudError> {
        Ok(None)
    }

    fn changes(&self) -> BoxStream<'static, Key> {
        let receiver = self.changes.lock().expect("no test panicked").take().expect("asked for once");
        Box::pin(futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|key| (key, receiver))
        }))
    }
}

/// The wall clock of the paused runtime.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_750_000_000).expect("in range") + self.0.elapsed()
    }
}

struct World {
    cloud: Arc<Scripted>,
    announce: mpsc::UnboundedSender<Key>,
    machines: Store<Machine>,
    server: Arc<Server>,
}

struct Server {
    machine: Mutex<Value>,
    writes: Mutex<usize>,
    machines: Store<Machine>,
    /// Whether the cache shows every write at once.
    is_shown: AtomicBool,
}

impl Server {
    fn answer(&self, path: &str, body: &Value) -> Value {
        if path.contains("/events") {
            return body.clone();
        }
        let mut writes = self.writes.lock().expect("no test panicked");
        *writes += 1;
        let mut machine = self.machine.lock().expect("no test panicked");
        merge(&mut machine, body);
        let metadata = &mut machine["metadata"];
        // As servers do: what goes with its last finalizer is answered as it was before.
        if metadata.get("deletionTimestamp").is_none() || metadata["finalizers"] != json!([]) {
            metadata["resourceVersion"] = (*writes + 1).to_string().into();
        }
        machine.clone()
    }
}

fn merge(into: &mut Value, patch: &Value) {
    match patch {
        Value::Object(fields) => {
            for (field, value) in fields {
                merge(&mut into[field], value);
            }
        }
        value => *into = value.clone(),
    }
}

impl World {
    async fn start(script: Script) -> Self {
        let (announce, changes) = mpsc::unbounded_channel();
        let cloud = Arc::new(Scripted {
            script,
            asked: Mutex::default(),
            go_on: Notify::new(),
            changes: Mutex::new(Some(changes)),
        });
        let Caches { machines, sets, checks, nodes } = Caches::default();
        let machine = json!({
            "metadata": {"name": "m", "namespace": "ns", "uid": "u", "resourceVersion": "1",
                "finalizers": ["machine.machine.openshift.io"],
                "labels": {"machine.openshift.io/cluster-api-cluster": "c"}},
            "spec": {"providerSpec": {"value": {"apiVersion": "g/v1", "kind": "K"}}},
            "status": {},
        });
        let server = Arc::new(Server {
            machine: Mutex::new(machine),
            writes: Mutex::default(),
            machines: machines.clone(),
            is_shown: AtomicBool::new(true),
        });
        let writer = Writer::new(client(Arc::clone(&server)));
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let (recorder, scribe) = Recorder::new(writer.clone(), "test".into(), Arc::clone(&clock));
        tokio::spawn(scribe);
        nodes.handle(Event::Init);
        nodes.handle(Event::InitDone);
        let context = Arc::new(Context {
            machines: machines.clone(),
            sets,
            checks,
            nodes,
            writer,
            recorder,
            clock,
            clouds: Clouds::new(vec![Arc::clone(&cloud) as Arc<dyn Cloud>]),
            migration: false,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            namespace: None,
            concurrency: 1,
        });
        machine::start(&context);
        machines.handle(Event::Init);
        machines.handle(Event::InitApply(server.parsed().into()));
        machines.handle(Event::InitDone);
        let world = Self { cloud, announce, machines, server };
        world.pass(0).await;
        world
    }

    /// Lets time pass, and everybody work who has something to do.
    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_millis(seconds * 1000 + 100)).await;
    }

    fn machine(&self) -> Machine {
        self.server.parsed()
    }

    fn asked(&self) -> Vec<Want> {
        self.cloud.asked.lock().expect("no test panicked").clone()
    }

    fn condition(&self, type_: &str) -> String {
        let machine = self.machine();
        let condition = machine.status.conditions.find(type_);
        condition.map_or_else(|| "none".into(), |c| format!("{} {} {}", c.status.0, c.reason, c.message))
    }
}

impl Server {
    fn parsed(&self) -> Machine {
        serde_json::from_value(self.machine.lock().expect("no test panicked").clone()).expect("a machine")
    }
}

fn client(server: Arc<Server>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.expect("a body in memory");
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let answer = server.answer(head.uri.path(), &body);
            if server.is_shown.load(Ordering::SeqCst) && !head.uri.path().contains("/events") {
                server.machines.handle(Event::Apply(server.parsed().into()));
            }
            let response = Response::builder().body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, Infallible>(response.expect("a valid response"))
        }
    });
    kube::Client::new(service, "default")
}

fn answer(sighting: Sighting) -> Answer {
    Answer { sighting, taken: vec![], failure: None, gate: None, provider_status: None }
}

fn up() -> Sighting {
    Sighting::Present(Box::new(Instance {
        provider_id: Some("p".into()),
        addresses: vec![Address::new("InternalIP", "10.0.0.1")],
        state: "Running".into(),
        ..Instance::default()
    }))
}

/// Nothing at first; then it is made, and seen in the looks before the n-th question.
fn made_and_seen_until(count: usize, want: Want, n: usize) -> Answer {
    match want {
        Want::Present => Answer { taken: vec![Activity::Create], ..answer(up()) },
        Want::Look if (2..n).contains(&count) => answer(up()),
        Want::Look | Want::Absent => answer(Sighting::Absent),
    }
}

fn denied() -> Answer {
    let error = CloudError::new(Kind::Denied, "launch instance", "no permission");
    Answer { failure: Some(Failure { activity: Activity::Create, error }), ..answer(Sighting::Absent) }
}

#[tokio::test(start_paused = true)]
async fn each_write_brings_the_next_round_until_the_instance_is_up() {
    let world =
        World::start(Box::new(|count, want| Turn::Says(made_and_seen_until(count, want, usize::MAX)))).await;
    assert_eq!(world.asked()[..3], [Want::Look, Want::Present, Want::Look]);
    assert_eq!(world.machine().phase(), "Provisioned");
    assert_eq!(world.machine().provider_id(), Some("p"));
}

// M01
#[tokio::test(start_paused = true)]
async fn a_machine_that_is_not_in_the_cache_is_nobodys() {
    let world = World::start(Box::new(|_, _| Turn::Says(answer(up())))).await;
    world.machines.handle(Event::Delete(world.machine().into()));
    world.pass(1).await;
    let (asked, writes) = (world.asked().len(), *world.server.writes.lock().expect("no test panicked"));
    for key in [Key::new("ns", "m"), Key::new("ns", "never")] {
        world.announce.send(key).expect("the controller listens");
    }
    world.pass(3600).await;
    assert_eq!(world.asked().len(), asked);
    assert_eq!(*world.server.writes.lock().expect("no test panicked"), writes);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_does_not_show_our_write_is_not_acted_upon() {
    let world = World::start(Box::new(|count, _| {
        if count == 1 { Turn::Waits(answer(Sighting::Absent)) } else { Turn::Says(denied()) }
    }))
    .await;
    world.server.is_shown.store(false, Ordering::SeqCst);
    world.cloud.go_on.notify_one();
    world.pass(1).await;
    for _ in 0..5 {
        world.announce.send(Key::new("ns", "m")).expect("the controller listens");
        world.pass(60).await;
    }
    assert_eq!(world.asked(), [Want::Look], "minutes later still nothing");
    world.machines.handle(Event::Apply(world.machine().into()));
    world.pass(1).await;
    assert_eq!(world.asked()[1], Want::Present);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_let_go_is_not_asked_about_again_while_the_cache_still_shows_it() {
    let world = World::start(Box::new(|_, want| {
        Turn::Says(match want {
            Want::Absent => Answer { taken: vec![Activity::Delete], ..answer(Sighting::Absent) },
            Want::Look | Want::Present => answer(up()),
        })
    }))
    .await;
    let asked = world.asked().len();
    let change = json!({
        "metadata": {"deletionTimestamp": "2025-06-15T15:06:40Z", "resourceVersion": "100"},
        "status": {"conditions": [{"type": "Drained", "status": "True"}]},
    });
    merge(&mut world.server.machine.lock().expect("no test panicked"), &change);
    world.server.is_shown.store(false, Ordering::SeqCst);
    world.machines.handle(Event::Apply(world.machine().into()));
    world.pass(1).await;
    assert_eq!(world.machine().metadata.finalizers, Some(vec![]));
    for _ in 0..3 {
        world.announce.send(Key::new("ns", "m")).expect("the controller listens");
        world.pass(1).await;
    }
    assert_eq!(world.asked()[asked..], [Want::Absent]);
}

#[tokio::test(start_paused = true)]
async fn a_failing_cloud_is_left_alone_and_a_change_that_it_announces_ends_that() {
    let world = World::start(Box::new(|count, want| match want {
        Want::Look => Turn::Says(answer(Sighting::Absent)),
        Want::Present | Want::Absent if count == 3 => Turn::Waits(denied()),
        Want::Present | Want::Absent => Turn::Says(denied()),
    }))
    .await;
    // The write of the condition wakes the key, and the cloud is not asked for it.
    assert_eq!(world.asked(), [Want::Look, Want::Present]);
    assert!(world.condition("InstanceExists").ends_with("Instance has not been created: no permission"));
    world.pass(58).await;
    assert_eq!(world.asked().len(), 2);

    world.announce.send(Key::new("ns", "m")).expect("the controller listens");
    world.pass(1).await;
    assert_eq!(world.asked().len(), 3);
    // One more, while the third question is under way.
    world.announce.send(Key::new("ns", "m")).expect("the controller listens");
    world.pass(1).await;
    world.cloud.go_on.notify_one();
    world.pass(1).await;
    assert_eq!(world.asked().len(), 4, "it was not lost");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_hangs_gives_its_worker_back() {
    let world =
        World::start(Box::new(
            |count, _| {
                if count == 1 { Turn::Hangs } else { Turn::Says(answer(Sighting::Absent)) }
            },
        ))
        .await;
    world.pass(299).await;
    assert_eq!(world.condition("InstanceExists"), "none");
    world.pass(1).await;
    assert_eq!(
        world.condition("InstanceExists"),
        "Unknown ErrorCheckingProvider Failed to check if machine exists: cannot finish in time: no answer within five \
         minutes"
    );
    world.pass(5).await;
    assert_eq!(world.machine().phase(), "Provisioning");
}

// M56
#[tokio::test(start_paused = true)]
async fn an_instance_that_vanishes_unannounced_is_noticed() {
    let world = World::start(Box::new(|count, want| Turn::Says(made_and_seen_until(count, want, 5)))).await;
    assert_eq!(world.machine().phase(), "Provisioned");
    world.pass(660).await;
    assert_eq!(world.machine().phase(), "Failed");
    assert_eq!(world.machine().status.error_message.as_deref(), Some("can't find created instance"));
}
