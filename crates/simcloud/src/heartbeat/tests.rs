//! Heartbeats before an API server in memory, on paused time.

use std::collections::BTreeMap;

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::client::Body;
use mapi_api::{Timestamp, names};
use serde_json::{Value, json};

use super::*;

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// The Leases, and when each was written.
#[derive(Default)]
struct Server {
    leases: BTreeMap<String, Value>,
    written: Vec<(Instant, String)>,
    versions: u64,
    statuses: usize,
    /// How long it takes to answer.
    latency: Duration,
}

impl Server {
    fn answer(&mut self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if path.starts_with("/api/v1/nodes/") {
            self.statuses += 1;
            return (200, json!({ "metadata": { "name": "n" } }));
        }
        match (method, body) {
            ("GET", _) => {
                self.leases.get(&name).map_or((404, status(404, "NotFound")), |lease| (200, lease.clone()))
            }
            ("POST", Some(lease)) => {
                let name = lease["metadata"]["name"].as_str().unwrap_or_default().to_owned();
                if self.leases.contains_key(&name) {
                    (409, status(409, "AlreadyExists"))
                } else {
                    self.store(name, lease)
                }
            }
            ("PUT", Some(lease)) => match self.leases.get(&name) {
                None => (404, status(404, "NotFound")),
                Some(old) if old["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] => {
                    (409, status(409, "Conflict"))
                }
                Some(_) => self.store(name, lease),
            },
            ("DELETE", _) => {
                self.leases.remove(&name);
                (200, json!({ "kind": "Status", "status": "Success" }))
            }
            (method, _) => panic!("unexpected {method} {path}"),
        }
    }

    fn store(&mut self, name: String, mut lease: Value) -> (u16, Value) {
        self.versions += 1;
        lease["metadata"]["resourceVersion"] = self.versions.to_string().into();
        lease["metadata"]["uid"] = format!("lease-{name}").into();
        self.leases.insert(name.clone(), lease.clone());
        self.written.push((Instant::now(), name));
        (201, lease)
    }
}

fn status(code: u16, reason: &str) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason })
}

struct World {
    server: Arc<Mutex<Server>>,
    beats: Heartbeats,
    stop: CancellationToken,
}

impl World {
    fn new() -> Self {
        let server = Arc::new(Mutex::new(Server::default()));
        let shared = Arc::clone(&server);
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = Arc::clone(&shared);
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let body = if body.is_empty() { None } else { Some(serde_json::from_slice(&body)?) };
                let latency = server.lock().expect("no panic").latency;
                tokio::time::sleep(latency).await;
                let path = head.uri.path().to_owned();
                let (code, answer) =
                    server.lock().expect("no panic").answer(head.method.as_str(), &path, body);
                let body = Full::new(Bytes::from(answer.to_string()));
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(body)?)
            }
        });
        let beats = Heartbeats::new(Writer::new(kube::Client::new(service, "default")), Arc::new(Fixed));
        let stop = CancellationToken::new();
        tokio::spawn(beats.clone().run(stop.clone()));
        Self { server, beats, stop }
    }

    fn speak(&self, name: &str, node_uid: &str, is_new: bool) {
        let pulse = Pulse {
            node: name.into(),
            node_uid: node_uid.into(),
            readiness: Readiness::Ready,
            heartbeat: Heartbeat::default(),
        };
        self.beats.speak(&Key::new("ns", &format!("i-sim-{name}")), pulse, is_new);
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn written(&self, name: &str) -> Vec<Instant> {
        let server = self.server.lock().expect("no panic");
        server.written.iter().filter(|(_, other)| other == name).map(|(at, _)| *at).collect()
    }

    fn lease(&self, name: &str) -> Option<Value> {
        self.server.lock().expect("no panic").leases.get(name).cloned()
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_node_has_a_lease_at_once_and_renews_it_every_period() {
    let world = World::new();
    world.speak("a", "u", true);
    world.pass(61).await;
    let times = world.written("a");
    assert_eq!(times.len(), 7, "one at once and one every ten seconds");
    let lease = world.lease("a").expect("a lease");
    assert_eq!(lease["spec"]["holderIdentity"], "a");
    assert_eq!(lease["metadata"]["ownerReferences"][0]["uid"], "u");
    assert_eq!(lease["metadata"]["labels"][names::label::SIMULATED_INSTANCE], "i-sim-a");
}

// B12.27
#[tokio::test(start_paused = true)]
async fn after_a_restart_every_lease_is_renewed_within_a_period_and_not_all_at_once() {
    let first = World::new();
    let start = Instant::now();
    for n in 0..100 {
        first.speak(&n.to_string(), "u", false);
    }
    first.pass(10).await;
    let mut quarters = [0; 4];
    for n in 0..100 {
        let at = first.written(&n.to_string()).first().map(|at| at.duration_since(start).as_millis());
        let at = usize::try_from(at.expect("a renewal within a period")).expect("small");
        quarters[(at / 2500).min(3)] += 1;
    }
    assert!(quarters.iter().all(|count| *count >= 10), "{quarters:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_renews_nothing_and_its_lease_stays() {
    let world = World::new();
    world.speak("a", "u", true);
    world.pass(15).await;
    let before = world.written("a").len();
    world.beats.silence(&Key::new("ns", "i-sim-a"));
    world.pass(60).await;
    assert_eq!(world.written("a").len(), before);
    assert!(world.lease("a").is_some());
    world.speak("a", "u", false);
    world.pass(10).await;
    assert!(world.written("a").len() > before);
}

#[tokio::test(start_paused = true)]
async fn a_removed_lease_is_not_made_again_by_a_renewal_on_its_way() {
    let world = World::new();
    world.server.lock().expect("no panic").latency = Duration::from_secs(3);
    world.speak("a", "u", true);
    world.pass(1).await;
    world.beats.remove(&Key::new("ns", "i-sim-a"), "a").await.expect("removed");
    world.pass(60).await;
    assert_eq!(world.lease("a"), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_removed_or_changed_is_written_again() {
    let world = World::new();
    world.speak("a", "u", true);
    world.pass(1).await;
    world.server.lock().expect("no panic").leases.clear();
    world.pass(10).await;
    assert!(world.lease("a").is_some());
    world.server.lock().expect("no panic").leases.get_mut("a").expect("a lease")["metadata"]["resourceVersion"] =
        "x".into();
    let before = world.written("a").len();
    world.pass(10).await;
    assert!(world.written("a").len() > before);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_foreign_node_is_neither_renewed_nor_removed() {
    let world = World::new();
    let foreign = json!({ "metadata": { "name": "a", "resourceVersion": "1", "uid": "f" }, "spec": {} });
    world.server.lock().expect("no panic").leases.insert("a".into(), foreign.clone());
    world.speak("a", "u", false);
    world.pass(30).await;
    world.beats.remove(&Key::new("ns", "i-sim-a"), "a").await.expect("nothing to remove");
    assert_eq!(world.lease("a"), Some(foreign));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_registers_again_owns_the_lease_from_then_on() {
    let world = World::new();
    world.speak("a", "u1", true);
    world.pass(1).await;
    world.speak("a", "u2", true);
    world.pass(1).await;
    assert_eq!(world.lease("a").expect("a lease")["metadata"]["ownerReferences"][0]["uid"], "u2");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_is_later_than_half_a_lease_is_counted() {
    let world = World::new();
    let before = world.beats.0.late.get();
    // More nodes than may write at once, each write taking longer than half a lease.
    world.server.lock().expect("no panic").latency = Duration::from_secs(25);
    for n in 0..40 {
        world.speak(&n.to_string(), "u", true);
    }
    world.pass(60).await;
    assert!(world.beats.0.late.get() > before);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_repeated_every_five_minutes() {
    let world = World::new();
    world.speak("a", "u", true);
    world.pass(299).await;
    assert_eq!(world.server.lock().expect("no panic").statuses, 0);
    world.pass(621).await;
    assert_eq!(world.server.lock().expect("no panic").statuses, 3);
}

#[tokio::test(start_paused = true)]
async fn after_a_stop_nothing_is_renewed() {
    let world = World::new();
    world.speak("a", "u", true);
    world.pass(1).await;
    world.stop.cancel();
    world.pass(60).await;
    assert_eq!(world.written("a").len(), 1);
}
