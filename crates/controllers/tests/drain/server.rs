//! A server that holds Machines, Nodes and pods, evicts or refuses, and is watched. Never here: what a test expects.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use kube::runtime::watcher::Event;
use mapi_api::Machine;
use mapi_runtime::store::Store;
use serde_json::{Value, json};
use tokio::sync::mpsc;

type Stream = mpsc::UnboundedSender<Bytes>;

/// Everything that the server holds.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) version: u64,
    pub(crate) machines: BTreeMap<String, Value>,
    pub(crate) nodes: BTreeMap<String, Value>,
    pub(crate) pods: BTreeMap<String, Value>,
    /// Whether the budget `web` allows an eviction.
    pub(crate) is_allowed: bool,
    /// What nobody may do: a method and the end of a path.
    pub(crate) forbidden: Option<(Method, &'static str)>,
    /// Open watches, by path.
    pub(crate) watches: Vec<(String, Stream)>,
    /// Names of pods whose eviction was asked for.
    pub(crate) evictions: Vec<String>,
    pub(crate) lists: usize,
}

impl State {
    /// Machines that are being deleted, each with its Node of the same name and one pod on it.
    pub(crate) fn of(names: &[&str], deleted: &str) -> Self {
        let by_name = |make: &dyn Fn(&str) -> Value| -> BTreeMap<String, Value> {
            names.iter().map(|name| ((*name).to_owned(), make(name))).collect()
        };
        Self {
            version: 10,
            machines: by_name(&|name| machine(name, deleted)),
            nodes: by_name(&node),
            pods: names.iter().map(|name| (format!("pod-{name}"), pod(name))).collect(),
            is_allowed: true,
            ..Self::default()
        }
    }

    fn answer(&mut self, method: &Method, path: &str, query: &str, body: Value) -> (u16, Value) {
        self.version += 1;
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if path.contains("/events") {
            return (201, body);
        }
        if self.forbidden.as_ref().is_some_and(|(verb, end)| verb == method && path.ends_with(end)) {
            return (403, status(403, "Forbidden", "you may not"));
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

    pub(crate) fn budget(&self) -> Value {
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
    pub(crate) fn tell(&mut self, path: &str, type_: &str, mut object: Value) {
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

fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": format!("{name}-node"), "resourceVersion": "1", "labels": {}}})
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

pub(crate) fn client(state: Arc<Mutex<State>>, machines: Store<Machine>) -> kube::Client {
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
