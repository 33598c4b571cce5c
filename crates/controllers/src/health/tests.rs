//! The shell against an API server that remembers what it is told and shows it in the caches at once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::client::Body;
use kube::runtime::watcher::Event;
use mapi_api::{Machine, MachineHealthCheck, Node, Timestamp};
use mapi_cloud::Clouds;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::writes::Writer;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::start;
use crate::Context;
use crate::context::Caches;
use crate::metrics::Metrics;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        "2026-01-01T12:00:00Z".parse().expect("timestamp")
    }
}

/// The check that the server has, Nodes that only the server knows, and the lines of all requests but events.
struct Server {
    check: Value,
    nodes: Vec<Value>,
    lines: Vec<String>,
}

struct World {
    server: Arc<Mutex<Server>>,
    context: Arc<Context>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// A controller at work on one check and these Machines and Nodes.
fn world(machines: &[Value], cached_nodes: &[Value], server_nodes: Vec<Value>) -> World {
    let check = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
        "metadata": {"name": "mhc", "namespace": "ns", "uid": "uid-mhc", "resourceVersion": "100"},
        "spec": {"unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "300s"}]}});
    let server = Arc::new(Mutex::new(Server { check: check.clone(), nodes: server_nodes, lines: vec![] }));
    let caches = Caches::default();
    let checks = caches.checks.clone();
    let service = tower::service_fn({
        let server = server.clone();
        move |request: Request<Body>| {
            let (server, checks) = (server.clone(), checks.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let line = format!("{} {}", head.method, head.uri.path());
                let (status, answer) = server.lock().expect("lock").answer(&line, &body);
                if line.starts_with("PATCH") {
                    let check: MachineHealthCheck = serde_json::from_value(answer.clone())?;
                    checks.handle(Event::Apply(check.into()));
                }
                Ok::<_, BoxError>(
                    Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()))?,
                )
            }
        }
    });
    let writer = Writer::new(kube::Client::new(service, "default"));
    let clock: Arc<dyn Clock> = Arc::new(Noon);
    let (recorder, scribe) = Recorder::new(writer.clone(), "host".into(), clock.clone());
    tokio::spawn(scribe);
    let context = Arc::new(Context {
        machines: caches.machines,
        sets: caches.sets,
        checks: caches.checks,
        nodes: caches.nodes,
        writer,
        recorder,
        clock,
        clouds: Clouds::new(vec![]),
        migration: false,
        metrics: Metrics::default(),
        stop: CancellationToken::new(),
        namespace: None,
        concurrency: 2,
    });
    context
        .checks
        .handle(Event::InitApply(serde_json::from_value::<MachineHealthCheck>(check).expect("check").into()));
    context.checks.handle(Event::InitDone);
    for machine in machines {
        let machine: Machine = serde_json::from_value(machine.clone()).expect("machine");
        context.machines.handle(Event::InitApply(machine.into()));
    }
    context.machines.handle(Event::InitDone);
    for node in cached_nodes {
        context.nodes.handle(Event::InitApply(node_of(node).into()));
    }
    context.nodes.handle(Event::InitDone);
    let tasks = start(&context);
    World { server, context, tasks }
}

impl Server {
    fn answer(&mut self, line: &str, body: &Value) -> (u16, Value) {
        if line.contains("/events") {
            return (201, body.clone());
        }
        self.lines.push(line.into());
        if line.starts_with("PATCH") {
            let version: u64 =
                self.check["metadata"]["resourceVersion"].as_str().expect("text").parse().expect("number");
            for (field, value) in body["status"].as_object().expect("a status patch") {
                self.check["status"][field] = value.clone();
            }
            self.check["metadata"]["resourceVersion"] = (version + 1).to_string().into();
            return (200, self.check.clone());
        }
        let name = line.rsplit('/').next().expect("a path");
        match self.nodes.iter().find(|node| node["metadata"]["name"] == name) {
            Some(node) => (200, node.clone()),
            None => (404, json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})),
        }
    }
}

impl World {
    fn lines(&self, start: &str) -> usize {
        self.server.lock().expect("lock").lines.iter().filter(|line| line.starts_with(start)).count()
    }

    fn healthy(&self) -> Value {
        self.server.lock().expect("lock").check["status"]["currentHealthy"].clone()
    }

    async fn end(self) {
        self.context.stop.cancel();
        for task in self.tasks {
            task.await.expect("no panic");
        }
    }
}

fn machine(i: usize) -> Value {
    json!({"metadata": {"name": format!("m{i}"), "namespace": "ns", "uid": format!("uid-{i}"), "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T11:00:00Z",
            "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "set",
                "uid": "uid-set", "controller": true}]},
        "status": {"phase": "Running", "nodeRef": {"kind": "Node", "name": format!("n{i}")}}})
}

fn node(i: usize, ready: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": format!("n{i}"), "uid": format!("uid-n{i}"), "resourceVersion": version.to_string()},
        "status": {"conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T11:59:00Z"}]}})
}

fn node_of(value: &Value) -> Node {
    serde_json::from_value(value.clone()).expect("node")
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_nodes_costs_two_status_writes_a_second_and_the_last_count_is_written() {
    let machines: Vec<Value> = (0..60).map(machine).collect();
    let silent: Vec<Value> = (0..60).map(|i| node(i, "Unknown", 1)).collect();
    let world = world(&machines, &silent, vec![]);
    for i in 0..60 {
        world.context.nodes.handle(Event::Apply(node_of(&node(i, "True", 2 + i as u64)).into()));
        tokio::time::advance(Duration::from_millis(50)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::timeout(Duration::from_secs(5), async {
        while world.healthy() != 60 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the last count is written");
    let writes =
        world.lines("PATCH /apis/machine.openshift.io/v1beta1/namespaces/ns/machinehealthchecks/mhc/status");
    assert!((2..=8).contains(&writes), "{writes} writes in three to four seconds");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_only_the_cache_misses_is_no_reason_to_delete_its_machine() {
    let world = world(&[machine(0)], &[], vec![node(0, "True", 1)]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((world.healthy(), world.lines("DELETE")), (json!(1), 0));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_the_server_misses_too_gets_its_machine_deleted_once() {
    let world = world(&[machine(0)], &[], vec![]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((world.lines("GET /api/v1/nodes/n0"), world.lines("DELETE")), (1, 1));
    world.end().await;
}
