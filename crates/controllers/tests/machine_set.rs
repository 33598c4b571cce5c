//! The MachineSet shell against a server that answers and caches that are behind: nothing is made or removed twice.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use mapi_api::{Machine, MachineSet, Timestamp};
use mapi_cloud::Clouds;
use mapi_controllers::context::{Caches, Context};
use mapi_controllers::{machine_set, metrics::Metrics};
use mapi_runtime::CancellationToken;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::writes::Writer;
use serde_json::{Value, json};
use tokio::time::Instant;

/// How the server answers a creation.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Answers,
    /// Creates, and the answer is lost.
    LosesAnswers,
    /// Creates nothing, and nobody can tell.
    LosesRequests,
    Refuses,
}

/// Everything that the server holds.
struct State {
    version: u64,
    set: Value,
    machines: BTreeMap<String, Value>,
    /// Machines that are gone, but not from the caches.
    removed: Vec<Value>,
    mood: Mood,
    creates: Vec<String>,
    deletes: Vec<Value>,
    events: Vec<String>,
}

impl State {
    fn answer(&mut self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        self.version += 1;
        let name =
            path.split('?').next().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
        let is_about = |plural: &str| path.contains(&format!("/namespaces/ns/{plural}"));
        if is_about("events") || path.contains("/events") {
            self.events.push(body["note"].as_str().unwrap_or_default().into());
            return (201, body);
        }
        if is_about("machinesets") {
            merge(&mut self.set, &body);
            self.set["metadata"]["resourceVersion"] = self.version.to_string().into();
            return (200, self.set.clone());
        }
        match *method {
            Method::POST => self.create(body),
            Method::GET => self.machines.get(&name).map_or_else(not_found, |machine| (200, machine.clone())),
            Method::DELETE => self.delete(&name, &body),
            _ => {
                let machine = self.machines.get_mut(&name).expect("a patched machine exists");
                merge(machine, &body);
                machine["metadata"]["resourceVersion"] = self.version.to_string().into();
                (200, machine.clone())
            }
        }
    }

    fn create(&mut self, mut machine: Value) -> (u16, Value) {
        let name = machine["metadata"]["name"].as_str().expect("a name").to_owned();
        self.creates.push(name.clone());
        if self.mood == Mood::LosesRequests {
            return status(504, "Timeout", "no answer");
        }
        if self.mood == Mood::Refuses {
            return status(403, "Forbidden", &format!("machines \"{name}\" is forbidden: quota exceeded"));
        }
        if self.machines.contains_key(&name) {
            return status(409, "AlreadyExists", "already exists");
        }
        machine["metadata"]["uid"] = format!("uid-{name}").into();
        machine["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.machines.insert(name, machine.clone());
        if self.mood == Mood::LosesAnswers { status(504, "Timeout", "no answer") } else { (201, machine) }
    }

    fn delete(&mut self, name: &str, options: &Value) -> (u16, Value) {
        self.deletes.push(json!([name, options["preconditions"]["uid"]]));
        let Some(machine) = self.machines.get_mut(name) else { return not_found() };
        machine["metadata"]["deletionTimestamp"] = "2025-06-15T00:00:00Z".into();
        machine["metadata"]["resourceVersion"] = self.version.to_string().into();
        (200, machine.clone())
    }
}

fn status(code: u16, reason: &str, message: &str) -> (u16, Value) {
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "metadata": {}}),
    )
}

fn not_found() -> (u16, Value) {
    status(404, "NotFound", "not found")
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

/// The wall clock of the paused runtime.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_750_000_000).expect("in range") + self.0.elapsed()
    }
}

/// A running controller, its server, and the caches that show what a test wants them to.
struct World {
    state: Arc<Mutex<State>>,
    context: Arc<Context>,
}

impl World {
    /// A set `ns/s` of that many replicas, without Machines.
    async fn start(replicas: i64) -> Self {
        let set = json!({
            "metadata": {"name": "s", "namespace": "ns", "uid": "set-uid", "resourceVersion": "1", "generation": 1},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"set": "s"}},
                "template": {"metadata": {"labels": {"set": "s"}}, "spec": {}}},
            "status": {},
        });
        let state = Arc::new(Mutex::new(State {
            version: 10,
            set,
            machines: BTreeMap::new(),
            removed: vec![],
            mood: Mood::Answers,
            creates: vec![],
            deletes: vec![],
            events: vec![],
        }));
        let writer = Writer::new(client(Arc::clone(&state)));
        let clock: Arc<dyn Clock> = Arc::new(Paused(Instant::now()));
        let (recorder, scribe) = Recorder::new(writer.clone(), "test".into(), Arc::clone(&clock));
        tokio::spawn(scribe);
        let Caches { machines, sets, checks, nodes } = Caches::default();
        nodes.handle(Event::Init);
        nodes.handle(Event::InitDone);
        let context = Arc::new(Context {
            machines,
            sets,
            checks,
            nodes,
            writer,
            recorder,
            clock,
            clouds: Clouds::default(),
            migration: false,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            namespace: None,
            concurrency: 4,
        });
        machine_set::start(&context);
        let world = Self { state, context };
        world.relist();
        world.settle().await;
        world
    }

    fn state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().expect("no test panicked"))
    }

    fn set(&self) -> MachineSet {
        self.state(|state| serde_json::from_value(state.set.clone()).expect("a set"))
    }

    fn machines(&self) -> Vec<Machine> {
        self.state(|state| {
            state.machines.values().map(|m| serde_json::from_value(m.clone()).expect("a machine")).collect()
        })
    }

    /// Shows everything through new lists.
    fn relist(&self) {
        self.context.sets.handle(Event::Init);
        self.context.sets.handle(Event::InitApply(self.set().into()));
        self.context.sets.handle(Event::InitDone);
        self.context.machines.handle(Event::Init);
        for machine in self.machines() {
            self.context.machines.handle(Event::InitApply(machine.into()));
        }
        self.context.machines.handle(Event::InitDone);
    }

    /// Shows the set as it is, under a new version, which is a reason to look at it.
    async fn show_set(&self) {
        self.state(|state| {
            state.version += 1;
            state.set["metadata"]["resourceVersion"] = state.version.to_string().into();
        });
        self.context.sets.handle(Event::Apply(self.set().into()));
        self.settle().await;
    }

    /// Shows all Machines as they are.
    async fn show_machines(&self) {
        let mut machines = self.machines();
        machines.sort_by_key(|m| m.metadata.resource_version.as_ref().and_then(|v| v.parse::<u64>().ok()));
        for machine in machines {
            self.context.machines.handle(Event::Apply(machine.into()));
        }
        let removed = self.state(|state| std::mem::take(&mut state.removed));
        for machine in removed {
            let machine: Machine = serde_json::from_value(machine).expect("a machine");
            self.context.machines.handle(Event::Delete(machine.into()));
        }
        self.settle().await;
    }

    async fn scale(&self, replicas: i64) {
        self.state(|state| state.set["spec"]["replicas"] = replicas.into());
        self.show_set().await;
    }

    /// Lets everybody work who has something to do, back-offs of a few rounds included. Time is virtual.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }

    fn count(&self) -> (usize, usize) {
        self.state(|state| (state.creates.len(), state.deletes.len()))
    }
}

fn client(state: Arc<Mutex<State>>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let state = Arc::clone(&state);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect_bytes().await.expect("a body in memory");
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let path = head.uri.path().to_owned();
            let (code, answer) = state.lock().expect("no test panicked").answer(&head.method, &path, body);
            let response = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, Infallible>(response.expect("a valid response"))
        }
    });
    kube::Client::new(service, "default")
}

// S15
#[tokio::test(start_paused = true)]
async fn while_the_cache_does_not_show_new_machines_no_more_are_made() {
    let world = World::start(3).await;
    assert_eq!(world.count(), (3, 0));
    for _ in 0..5 {
        world.show_set().await;
    }
    // Minutes later still nothing more, and no error: the set waits for the cache, not for a time.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.count(), (3, 0));
    world.show_machines().await;
    world.show_set().await;
    assert_eq!(world.count(), (3, 0));
    assert_eq!(world.set().status.replicas, Some(3));
}

// S16
#[tokio::test(start_paused = true)]
async fn while_the_cache_does_not_show_deletions_nobody_else_is_deleted() {
    let world = World::start(3).await;
    world.show_machines().await;
    world.show_set().await;
    world.scale(1).await;
    assert_eq!(world.count(), (3, 2));
    for _ in 0..5 {
        world.show_set().await;
    }
    world.scale(0).await;
    assert_eq!(world.count(), (3, 2), "the third waits until the two are seen to go");
    world.show_machines().await;
    assert_eq!(world.count(), (3, 3));
    let deletes = world.state(|state| state.deletes.clone());
    assert!(deletes.iter().all(|delete| delete[1] == format!("uid-{}", delete[0].as_str().expect("a name"))));
}

// S14
#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_was_lost_is_not_made_twice() {
    let world = World::start(0).await;
    world.state(|state| state.mood = Mood::LosesAnswers);
    world.scale(2).await;
    // The first creation took effect, and no cache shows it.
    assert_eq!(world.state(|state| state.machines.len()), 1);
    world.state(|state| state.mood = Mood::Answers);
    world.show_set().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.count().0, 1, "only a new list can tell what became of it");
    world.relist();
    world.settle().await;
    world.show_machines().await;
    world.show_set().await;
    assert_eq!(world.state(|state| (state.creates.len(), state.machines.len())), (2, 2));
}

// S14
#[tokio::test(start_paused = true)]
async fn a_creation_that_a_new_list_does_not_show_is_repeated_under_its_name() {
    let world = World::start(0).await;
    world.state(|state| state.mood = Mood::LosesRequests);
    world.scale(1).await;
    world.state(|state| state.mood = Mood::Answers);
    world.relist();
    world.settle().await;
    let creates = world.state(|state| state.creates.clone());
    assert_eq!(creates.len(), 2);
    assert_eq!(creates[0], creates[1], "it could still have taken effect");
}

// S14
#[tokio::test(start_paused = true)]
async fn a_refused_creation_is_told_and_tried_again_ever_more_rarely() {
    let world = World::start(0).await;
    world.state(|state| state.mood = Mood::Refuses);
    world.scale(1).await;
    world.show_set().await;
    let told = || {
        let conditions = world.set().status.conditions;
        conditions.into_iter().find(|c| c.type_ == "MachinesCreated").map(|c| (c.status.0, c.message))
    };
    let (status, message) = told().expect("a condition");
    assert_eq!(status, "False");
    assert!(message.ends_with("machines \"s-*\" is forbidden: quota exceeded"), "{message}");
    world.show_set().await;
    let (before, events) = (world.count().0, world.state(|state| state.events.len()));
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let tries = world.count().0 - before;
    assert!((1..20).contains(&tries), "{tries}");
    assert_eq!(world.state(|state| state.events.len()), events, "told once");
    world.state(|state| state.mood = Mood::Answers);
    world.show_set().await;
    world.show_machines().await;
    world.show_set().await;
    assert_eq!(told().map(|(status, _)| status).as_deref(), Some("True"));
}

// S17
#[tokio::test(start_paused = true)]
async fn a_victim_that_is_gone_already_counts_as_deleted() {
    let world = World::start(2).await;
    world.show_machines().await;
    world.state(|state| {
        let (_, gone) = state.machines.pop_first().expect("two machines");
        state.removed.push(gone);
    });
    world.scale(0).await;
    assert_eq!(world.count(), (2, 2));
    world.show_machines().await;
    world.show_set().await;
    assert_eq!(world.count(), (2, 2));
    assert_eq!(world.set().status.conditions.iter().filter(|c| c.type_ == "MachinesCreated").count(), 0);
}

// S41
#[tokio::test(start_paused = true)]
async fn a_thousand_machines_are_made_once_each_over_several_rounds() {
    let world = World::start(1000).await;
    assert_eq!(world.count().0, 512);
    for _ in 0..3 {
        world.show_machines().await;
        world.show_set().await;
    }
    assert_eq!(world.state(|state| (state.creates.len(), state.machines.len())), (1000, 1000));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_controller() {
    let world = World::start(1).await;
    let tasks = machine_set::start(&world.context);
    world.context.stop.cancel();
    for task in tasks {
        task.await.expect("it ends by itself");
    }
}
