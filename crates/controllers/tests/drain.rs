//! The drain shell against a server that evicts, refuses and watches.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use kube::runtime::watcher::Event;
use mapi_api::{Conditions, Machine, Timestamp};
use mapi_cloud::Clouds;
use mapi_controllers::context::{Caches, Context};
use mapi_controllers::{drain, metrics::Metrics};
use mapi_runtime::CancellationToken;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::store::Store;
use mapi_runtime::writes::Writer;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The wall clock of the paused runtime.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_750_000_000).expect("in range") + self.0.elapsed()
    }
}

type Stream = mpsc::UnboundedSender<Bytes>;

/// Everything that the server holds.
struct State {
    version: u64,
    machines: BTreeMap<String, Value>,
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    /// Whether the budget `web` allows an eviction.
    is_allowed: bool,
    /// Open watches, by path.
    watches: Vec<(String, Stream)>,
    /// Names of pods whose eviction was asked for.
    evictions: Vec<String>,
    lists: usize,
}

impl State {
    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Value) -> (u16, Value) {
        self.version += 1;
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if path.contains("/events") {
            return (201, body);
        }
        if path.ends_with("/eviction") {
            let pod = path.rsplit('/').nth(1).unwrap_or_default().to_owned();
            return self.evict(pod);
        }
        if let Some(machine) = path.strip_suffix("/status").and_then(|p| p.rsplit('/').next()) {
            return patched(self.version, self.machines.get_mut(machine), &body);
        }
        if path.contains("/poddisruptionbudgets") {
            return (200, self.list("PodDisruptionBudgetList", vec![self.budget()]));
        }
        if path.ends_with("/pods") {
            self.lists += 1;
            let node =
                query.split("nodeName%3D").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or_default();
            let pods = self.pods.values().filter(|pod| pod["spec"]["nodeName"] == node).cloned().collect();
            return (200, self.list("PodList", pods));
        }
        if path.ends_with("/nodes") {
            let role = query.split("labelSelector=").nth(1).unwrap_or_default().replace("%2F", "/");
            let has_role = |node: &&Value| node["metadata"]["labels"].get(&role).is_some();
            let nodes = self.nodes.values().filter(has_role).cloned().collect();
            return (200, self.list("NodeList", nodes));
        }
        if path.contains("/nodes/") {
            if *method == Method::PATCH {
                return patched(self.version, self.nodes.get_mut(&name), &body);
            }
            return self.nodes.get(&name).map_or_else(not_found, |node| (200, node.clone()));
        }
        not_found()
    }

    fn list(&self, kind: &str, items: Vec<Value>) -> Value {
        json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": self.version.to_string()},
            "items": items})
    }

    fn budget(&self) -> Value {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": "app", "name": "web", "uid": "b", "resourceVersion": self.version.to_string()},
            "spec": {}, "status": {"disruptionsAllowed": i64::from(self.is_allowed)}})
    }

    fn evict(&mut self, pod: String) -> (u16, Value) {
        self.evictions.push(pod.clone());
        if !self.is_allowed {
            let mut refusal = status(429, "TooManyRequests", "Cannot evict pod.");
            let message = "The disruption budget web needs 1 healthy pods and has 1 currently";
            refusal["details"] = json!({"causes": [{"reason": "DisruptionBudget", "message": message}]});
            return (429, refusal);
        }
        match self.pods.remove(&pod) {
            Some(gone) => {
                self.tell("/pods", "DELETED", gone);
                (201, json!({"kind": "Status", "status": "Success"}))
            }
            None => not_found(),
        }
    }

    /// Tells the watches of a kind.
    fn tell(&mut self, path: &str, type_: &str, mut object: Value) {
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        // As servers write it: the type first.
        let line = format!("{{\"type\":\"{type_}\",\"object\":{object}}}\n");
        for (_, watch) in self.watches.iter().filter(|(watched, _)| watched.ends_with(path)) {
            // A watch that ended is counted by `open`.
            let _ = watch.send(line.clone().into());
        }
    }
}

fn machine(name: &str, deleted: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-machine"), "resourceVersion": "1",
            "deletionTimestamp": deleted},
        "status": {"phase": "Deleting", "nodeRef": {"name": name, "uid": format!("{name}-node")}},
    })
}

fn node(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("{name}-node"), "resourceVersion": "1", "labels": labels}})
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": name},
        "metadata": {"namespace": "app", "name": format!("pod-{name}"), "uid": format!("{name}-pod"),
            "resourceVersion": "1"}})
}

fn patched(version: u64, object: Option<&mut Value>, patch: &Value) -> (u16, Value) {
    let Some(object) = object else { return not_found() };
    merge(object, patch);
    object["metadata"]["resourceVersion"] = version.to_string().into();
    (200, object.clone())
}

fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "metadata": {}})
}

fn not_found() -> (u16, Value) {
    (404, status(404, "NotFound", "not found"))
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

struct World {
    state: Arc<Mutex<State>>,
    machines: Store<Machine>,
}

impl World {
    /// Machines that are being deleted, each with its Node of the same name and one pod on it.
    async fn start(names: &[&str], labels: Value, is_allowed: bool) -> Self {
        let clock = Paused(Instant::now());
        let deleted = clock.now().to_string();
        let machine = |name: &&str| machine(name, &deleted);
        let node = |name: &&str| node(name, &labels);
        let by_name = |make: &dyn Fn(&&str) -> Value| -> BTreeMap<String, Value> {
            names.iter().map(|name| ((*name).to_owned(), make(name))).collect()
        };
        let state = Arc::new(Mutex::new(State {
            version: 10,
            machines: by_name(&machine),
            nodes: by_name(&node),
            pods: names.iter().map(|name| (format!("pod-{name}"), pod(name))).collect(),
            is_allowed,
            watches: vec![],
            evictions: vec![],
            lists: 0,
        }));
        let Caches { machines, sets, checks, nodes } = Caches::default();
        let writer = Writer::new(client(Arc::clone(&state), machines.clone()));
        let shared: Arc<dyn Clock> = Arc::new(clock);
        let (recorder, scribe) = Recorder::new(writer.clone(), "test".into(), Arc::clone(&shared));
        tokio::spawn(scribe);
        let context = Arc::new(Context {
            machines: machines.clone(),
            sets,
            checks,
            nodes,
            writer,
            recorder,
            clock: shared,
            clouds: Clouds::default(),
            migration: false,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            namespace: None,
            concurrency: 4,
        });
        drain::start(&context);
        let world = Self { state, machines };
        world.machines.handle(Event::Init);
        for name in names {
            world.machines.handle(Event::InitApply(world.machine(name).into()));
        }
        world.machines.handle(Event::InitDone);
        world.pass(1).await;
        world
    }

    /// Lets time pass, and everybody work who has something to do.
    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().expect("no test panicked"))
    }

    fn machine(&self, name: &str) -> Machine {
        self.state(|state| serde_json::from_value(state.machines[name].clone()).expect("a machine"))
    }

    fn drained(&self, name: &str) -> String {
        let machine = self.machine(name);
        let condition = machine.status.conditions.find("Drained");
        condition.map_or_else(|| "none".into(), |c| format!("{} {}", c.status.0, c.message))
    }

    fn evictions(&self) -> usize {
        self.state(|state| state.evictions.len())
    }

    /// Watches that somebody still reads.
    fn open(&self) -> usize {
        self.state(|state| state.watches.iter().filter(|(_, watch)| !watch.is_closed()).count())
    }

    fn cordoned(&self) -> Vec<String> {
        self.state(|state| {
            let cordoned = state.nodes.iter().filter(|(_, node)| node["spec"]["unschedulable"] == true);
            cordoned.map(|(name, _)| name.clone()).collect()
        })
    }
}

fn client(state: Arc<Mutex<State>>, machines: Store<Machine>) -> kube::Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (state, machines) = (Arc::clone(&state), machines.clone());
        async move {
            let (head, body) = request.into_parts();
            let (path, query) = (head.uri.path().to_owned(), head.uri.query().unwrap_or_default().to_owned());
            if query.contains("watch=true") {
                let (sender, receiver) = mpsc::unbounded_channel::<Bytes>();
                state.lock().expect("no test panicked").watches.push((path, sender));
                let frames = futures::stream::unfold(receiver, |mut receiver| async move {
                    let line = receiver.recv().await?;
                    Some((Ok::<_, Infallible>(Frame::data(line)), receiver))
                });
                let response = Response::builder().body(StreamBody::new(frames).boxed_unsync());
                return Ok::<Response<UnsyncBoxBody<Bytes, Infallible>>, Infallible>(
                    response.expect("a valid response"),
                );
            }
            let bytes = body.collect_bytes().await.expect("a body in memory");
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let (code, answer) =
                state.lock().expect("no test panicked").answer(&head.method, &path, &query, body);
            if path.ends_with("/status") {
                let machine: Machine = serde_json::from_value(answer.clone()).expect("a machine");
                machines.handle(Event::Apply(machine.into()));
            }
            let response =
                Response::builder().status(code).body(Full::from(answer.to_string()).boxed_unsync());
            Ok(response.expect("a valid response"))
        }
    });
    kube::Client::new(service, "default")
}

// D10
#[tokio::test(start_paused = true)]
async fn a_node_is_cordoned_emptied_and_said_to_be_drained_and_its_watch_ends() {
    let world = World::start(&["a"], json!({}), true).await;
    assert_eq!(world.cordoned(), ["a"]);
    assert_eq!(world.evictions(), 1);
    assert_eq!(world.drained("a"), "True Drain finished successfully");
    assert_eq!(world.open(), 0);
}

// D10
#[tokio::test(start_paused = true)]
async fn many_nodes_are_drained_at_once() {
    let names: Vec<String> = (0..20).map(|i| format!("n{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::start(&names, json!({}), true).await;
    assert!(names.iter().all(|name| world.drained(name) == "True Drain finished successfully"), "item 28");
    assert_eq!((world.evictions(), world.open()), (20, 0));
}

// D15
#[tokio::test(start_paused = true)]
async fn a_blocked_drain_is_told_within_ten_seconds_and_goes_on_when_the_budget_changes() {
    let world = World::start(&["a"], json!({}), false).await;
    assert_eq!((world.evictions(), world.drained("a").as_str()), (1, "none"));
    world.pass(9).await;
    assert_eq!(
        world.drained("a"),
        "False could not drain machine: disruption budget `app/web` does not allow the eviction of pod `app/pod-a`"
    );
    world.pass(600).await;
    let tries = world.evictions();
    assert!((10..20).contains(&tries), "item 2: {tries} evictions in ten minutes");
    assert_eq!(world.open(), 2, "its pods and the budgets");

    world.state(|state| {
        state.is_allowed = true;
        state.version += 1;
        let budget = state.budget();
        state.tell("/poddisruptionbudgets", "MODIFIED", budget);
    });
    world.pass(1).await;
    assert_eq!(world.drained("a"), "True Drain finished successfully", "item 28");
    assert_eq!(world.evictions(), tries + 1);
    assert_eq!(world.open(), 0);
}

// D13
#[tokio::test(start_paused = true)]
async fn two_control_plane_nodes_are_never_drained_together_even_if_both_begin_at_once() {
    let labels = json!({"node-role.kubernetes.io/master": ""});
    let world = World::start(&["a", "b"], labels, false).await;
    assert_eq!(world.cordoned().len(), 1);
    world.pass(120).await;
    assert_eq!(world.cordoned().len(), 1, "the other waits");

    let first = world.cordoned().remove(0);
    world.state(|state| state.is_allowed = true);
    world.pass(61).await;
    assert_eq!(world.drained(&first), "True Drain finished successfully");
    assert_eq!(world.cordoned(), std::slice::from_ref(&first), "its node is still there");
    let gone = world.machine(&first);
    world.state(|state| state.nodes.remove(&first));
    world.machines.handle(Event::Delete(gone.into()));
    world.pass(21).await;
    assert_eq!(world.cordoned().len(), 1);
    assert_ne!(world.cordoned(), [first]);
}

// D09
#[tokio::test(start_paused = true)]
async fn a_machine_that_goes_meanwhile_takes_its_watches_along() {
    let world = World::start(&["a"], json!({}), false).await;
    world.pass(10).await;
    assert_eq!(world.open(), 2);
    world.machines.handle(Event::Delete(world.machine("a").into()));
    world.pass(1).await;
    let tries = world.evictions();
    assert_eq!(world.open(), 0);
    world.pass(600).await;
    assert_eq!(world.evictions(), tries);
}

#[tokio::test(start_paused = true)]
async fn an_empty_node_needs_one_list_and_no_watch() {
    let world = World::start(&["a"], json!({}), true).await;
    world.state(|state| {
        state.lists = 0;
        state.watches.clear();
        state.version += 100;
        let machine = state.machines.get_mut("a").expect("it is there");
        machine["status"]["conditions"] = json!([]);
        machine["metadata"]["resourceVersion"] = state.version.to_string().into();
    });
    world.machines.handle(Event::Apply(world.machine("a").into()));
    world.pass(1).await;
    assert_eq!(world.drained("a"), "True Drain finished successfully");
    assert_eq!(world.state(|state| (state.lists, state.watches.len())), (1, 0));
}
