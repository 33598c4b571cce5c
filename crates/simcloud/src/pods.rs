//! Plays the kubelet for pods: those that are bound to a simulated Node run, those that are deleted go. So drains end.
//!
//! One watch of bound pods for the whole cluster, which keeps only those on Nodes of its own: a watch for each Node would
//! cost the API server a thousand watches at a thousand Nodes. The watch begins when the first instance that plays pods
//! is there, so that a simulation without pods costs nothing.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};
use kube::runtime::{WatchStreamExt as _, watcher};
use mapi_api::condition::whole_seconds;
use mapi_api::fault::FaultKind;
use mapi_api::simulated_instance::{InstanceState, PodMode};
use mapi_api::{Key, Object, Pod, SimulatedInstance, Timestamp};
use mapi_runtime::clock::Clock;
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Store};
use mapi_runtime::worker::{self, Requeue};
use mapi_runtime::writes::{Sub, Writer};
use mapi_runtime::{CancellationToken, Error};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::life::faults;

/// Eight pods at the same time: heartbeats come first, and a drain of a hundred pods still ends within a few seconds.
const WORKERS: usize = 8;

/// Plays pods until it is told to stop.
pub async fn run(
    client: kube::Client,
    instances: Store<SimulatedInstance>,
    clock: Arc<dyn Clock>,
    stop: CancellationToken,
) {
    let is_needed = Arc::new(Notify::new());
    let queue = Queue::new(
        "simulated-pods",
        Backoff { base: Duration::from_millis(100), max: Duration::from_secs(30) },
    );
    let agent = Arc::new(Pods {
        pods: Mutex::default(),
        instances,
        queue,
        writer: Writer::new(client.clone()),
        clock,
    });
    let (first, watching) = (Arc::clone(&is_needed), Arc::clone(&agent));
    agent.instances.subscribe(move |change| {
        let (Change::Added(instance, _) | Change::Updated { new: instance, .. } | Change::Removed(instance)) =
            change;
        if instance.spec.pods == PodMode::Fast {
            first.notify_one();
            watching.wake(instance);
        }
    });
    tokio::select! { () = stop.cancelled() => return, () = is_needed.notified() => {} }
    let working = Arc::clone(&agent);
    let work = worker::run(agent.queue.clone(), WORKERS, move |key| Arc::clone(&working).reconcile(key));
    let watch = async {
        tokio::select! { () = stop.cancelled() => {}, () = agent.watch(client) => {} }
        agent.queue.close();
    };
    tokio::join!(work, watch);
}

/// A pod and the Node that it is bound to.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Bound {
    node: Arc<str>,
    pod: Key,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pod.fmt(f)
    }
}

impl Bound {
    fn of(pod: &Pod) -> Self {
        Self { node: pod.spec.node_name.as_str().into(), pod: pod.key() }
    }
}

/// Pods by Node.
type ByNode = HashMap<Arc<str>, HashMap<Key, Arc<Pod>>>;

struct Pods {
    pods: Mutex<ByNode>,
    instances: Store<SimulatedInstance>,
    queue: Queue<Bound>,
    writer: Writer,
    clock: Arc<dyn Clock>,
}

impl Pods {
    async fn watch(&self, client: kube::Client) {
        let api: Api<Pod> = Api::all(client);
        let config = watcher::Config::default().fields("spec.nodeName!=").page_size(500);
        let mut events = pin!(watcher(api, config).default_backoff());
        let mut listed: HashSet<Bound> = HashSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(pod)) => {
                    if self.host(&pod).is_some() {
                        listed.insert(Bound::of(&pod));
                        self.keep(pod);
                    }
                }
                Ok(watcher::Event::InitDone) => {
                    let listed = std::mem::take(&mut listed);
                    self.state().retain(|node, pods| {
                        pods.retain(|pod, _| {
                            listed.contains(&Bound { node: Arc::clone(node), pod: pod.clone() })
                        });
                        !pods.is_empty()
                    });
                }
                Ok(watcher::Event::Apply(pod)) => {
                    if self.host(&pod).is_some() {
                        self.keep(pod);
                    }
                }
                Ok(watcher::Event::Delete(pod)) => self.drop(&pod),
                Err(error) => {
                    let error = worker::chain(&error);
                    tracing::warn!(error, "watch of pods interrupted, trying again");
                }
            }
        }
    }

    fn keep(&self, pod: Pod) {
        let bound = Bound::of(&pod);
        let mut state = self.state();
        state.entry(Arc::clone(&bound.node)).or_default().insert(bound.pod.clone(), Arc::new(pod));
        drop(state);
        self.queue.add(bound);
    }

    fn drop(&self, pod: &Pod) {
        let bound = Bound::of(pod);
        let mut state = self.state();
        if let Some(pods) = state.get_mut(&bound.node) {
            pods.remove(&bound.pod);
            if pods.is_empty() {
                state.remove(&bound.node);
            }
        }
    }

    /// The instance that hosts a pod, if pods are played there. A Node is created after its instance was seen, and a pod
    /// is bound after that, so no pod is missed.
    fn host(&self, pod: &Pod) -> Option<Arc<SimulatedInstance>> {
        let instances = self.instances.by(crate::agent::BY_NODE, &pod.spec.node_name);
        instances.into_iter().find(|instance| instance.spec.pods == PodMode::Fast)
    }

    /// Looks at the pods of an instance again: it may have begun or ceased to speak.
    fn wake(&self, instance: &SimulatedInstance) {
        let state = self.state();
        for pod in state.get(instance.spec.node.name.as_str()).into_iter().flatten().map(|(_, pod)| pod) {
            self.queue.add(Bound::of(pod));
        }
    }

    async fn reconcile(self: Arc<Self>, bound: Bound) -> Result<Requeue, Error> {
        let found = self.state().get(&bound.node).and_then(|pods| pods.get(&bound.pod)).cloned();
        let Some(pod) = found else { return Ok(Requeue::Done) };
        let now = self.clock.now();
        let Some(instance) = self.host(&pod) else { return Ok(Requeue::Done) };
        let (task, wake) = next(&pod, &instance, now);
        match task {
            Task::Run => {
                let patch = running(&pod, &instance, now);
                match self.writer.strategic_patch::<Pod>(&bound.pod, Sub::Status, &patch).await {
                    Ok(_) => {}
                    Err(e) if e.is_not_found() => {}
                    Err(e) => return Err(e.into()),
                }
            }
            Task::Remove => self.remove(&pod).await?,
            Task::Nothing => {}
        }
        let wait = wake.map(|at| at.duration_since(now).unsigned_abs());
        Ok(wait.map_or(Requeue::Done, Requeue::After))
    }

    /// What a kubelet does when the last container has ended: finalizers of others still hold the pod.
    async fn remove(&self, pod: &Pod) -> Result<(), Error> {
        let key = pod.key();
        let api: Api<Pod> = Api::namespaced(self.writer.client.clone(), &key.namespace);
        let preconditions = Preconditions { uid: Some(pod.uid().into()), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(preconditions);
        match api.delete(&key.name, &params).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn state(&self) -> MutexGuard<'_, ByNode> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a kubelet does next about a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Nothing,
    Run,
    Remove,
}

/// The next task for a pod, and when to look again. A silent kubelet does nothing, so the pods of an unreachable Node
/// stay, as they do in a real cluster.
fn next(pod: &Pod, instance: &SimulatedInstance, now: Timestamp) -> (Task, Option<Timestamp>) {
    let mut wake = crate::life::Wake::after(now);
    if is_silent(instance, now, &mut wake) {
        return (Task::Nothing, wake.earliest());
    }
    if let Some(mark) = &pod.metadata.deletion_timestamp {
        // The mark lies in the future by the grace period; the stop began when it was set.
        let grace_s = pod.metadata.deletion_grace_period_seconds.unwrap_or(0).max(0);
        let began = mark.0.checked_sub(jiff::SignedDuration::from_secs(grace_s)).unwrap_or(mark.0);
        let due = instance.spec.timing.pod_stop.after(began).min(mark.0);
        let is_held = grace_s == 0 && pod.metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty());
        return match due <= now {
            true if is_held => (Task::Nothing, None),
            true => (Task::Remove, None),
            false => (Task::Nothing, Some(due)),
        };
    }
    let task = if matches!(pod.status.phase.as_str(), "" | "Pending") { Task::Run } else { Task::Nothing };
    (task, None)
}

fn is_silent(instance: &SimulatedInstance, now: Timestamp, wake: &mut crate::life::Wake) -> bool {
    let Some(status) = &instance.status else { return true };
    let Some(running) = status.running_since.as_ref().filter(|_| instance.state() == InstanceState::Running)
    else {
        return true;
    };
    let timing = &instance.spec.timing;
    let ready_at = timing.ready.after(timing.join.after(running.0));
    [FaultKind::NodeUnknown, FaultKind::ZoneOutage].into_iter().any(|kind| {
        faults(instance, kind).any(|fault| {
            wake.around(fault, ready_at);
            fault.is_on(ready_at, now)
                && (kind != FaultKind::ZoneOutage || fault.is_for_zone(&instance.spec.zone))
        })
    })
}

/// The status of a pod that runs, as a strategic merge patch: conditions of others stay.
fn running(pod: &Pod, instance: &SimulatedInstance, now: Timestamp) -> Value {
    let at = whole_seconds(now).to_string();
    let conditions = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]
        .map(|type_| json!({ "type": type_, "status": "True", "lastTransitionTime": at }));
    let containers = pod.spec.containers.iter().map(|container| {
        json!({
            "name": container.name,
            "image": container.image,
            "imageID": "",
            "containerID": format!("simulated://{}/{}", pod.uid(), container.name),
            "ready": true,
            "started": true,
            "restartCount": 0,
            "state": { "running": { "startedAt": at } },
        })
    });
    let address = instance.spec.addresses.iter().find(|address| address.type_ == "InternalIP");
    let ip = pod_ip(pod.uid());
    json!({ "status": {
        "phase": "Running",
        "startTime": at,
        "conditions": conditions,
        "containerStatuses": containers.collect::<Vec<_>>(),
        "hostIP": address.map(|address| &address.address),
        "hostIPs": address.map(|address| json!([{ "ip": address.address }])),
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
    } })
}

/// An address in 10.240.0.0/12 by the hash of the pod's UID. Two pods may share one; nothing of ours looks pods up by
/// address.
fn pod_ip(uid: &str) -> String {
    let mut state = 0x811c_9dc5_u32;
    for byte in uid.bytes() {
        state = (state ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    std::net::Ipv4Addr::from(0x0af0_0000 | (state & 0x000f_ffff)).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_700_000_000;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(NOW + second).expect("in range")
    }

    fn pod(phase: &str, metadata: Value) -> Pod {
        let text = json!({ "metadata": metadata, "spec": { "nodeName": "m" }, "status": { "phase": phase } });
        serde_json::from_value(text).expect("a pod")
    }

    /// Runs since now, and takes three seconds to stop a pod.
    fn host(state: &str, faults: Value) -> SimulatedInstance {
        let text = json!({
            "spec": {
                "machineRef": { "namespace": "ns", "name": "m", "uid": "u" }, "token": "u", "zone": "a",
                "timing": { "podStop": "3s" }, "faults": faults,
                "node": { "name": "m", "providerID": "kubemark:///a/i" },
            },
            "status": { "state": state, "runningSince": at(0).to_string() },
        });
        serde_json::from_value(text).expect("an instance")
    }

    fn deleted(second: i64, grace_s: i64, finalizers: Value) -> Value {
        let mark = at(second + grace_s).to_string();
        json!({ "deletionTimestamp": mark, "deletionGracePeriodSeconds": grace_s, "finalizers": finalizers })
    }

    #[test]
    fn a_bound_pod_runs_and_a_deleted_one_goes_after_its_time() {
        let healthy = host("Running", json!([]));
        for (phase, metadata, second, task, wake) in [
            ("Pending", json!({}), 0, Task::Run, None),
            ("", json!({}), 0, Task::Run, None),
            ("Running", json!({}), 0, Task::Nothing, None),
            ("Succeeded", json!({}), 0, Task::Nothing, None),
            ("Running", deleted(0, 30, json!([])), 0, Task::Nothing, Some(3)),
            ("Running", deleted(0, 30, json!([])), 3, Task::Remove, None),
            ("Running", deleted(0, 1, json!([])), 1, Task::Remove, None),
            ("Running", deleted(0, 30, json!(["a/b"])), 3, Task::Remove, None),
            ("Running", deleted(0, 0, json!(["a/b"])), 3, Task::Nothing, None),
        ] {
            let seen = next(&pod(phase, metadata.clone()), &healthy, at(second));
            assert_eq!(seen, (task, wake.map(at)), "{phase} {metadata} at {second}");
        }
    }

    #[test]
    fn a_silent_kubelet_leaves_its_pods_as_they_are() {
        for (state, faults, task, wake) in [
            ("Stopped", json!([]), Task::Nothing, None),
            ("Running", json!([{ "kind": "NodeUnknown", "duration": "60s" }]), Task::Nothing, Some(at(60))),
            ("Running", json!([{ "kind": "ZoneOutage" }]), Task::Nothing, None),
            ("Running", json!([{ "kind": "ZoneOutage", "args": { "zone": "b" } }]), Task::Remove, None),
            ("Running", json!([{ "kind": "NodeNotReady" }]), Task::Remove, None),
        ] {
            let doomed = pod("Running", deleted(0, 0, json!([])));
            assert_eq!(next(&doomed, &host(state, faults.clone()), at(5)), (task, wake), "{state} {faults}");
        }
    }

    #[test]
    fn a_running_pod_is_ready_in_every_container() {
        let mut pod = pod("Pending", json!({ "uid": "p" }));
        pod.spec.containers = vec![mapi_api::pod::Container { name: "c".into(), image: "i".into() }];
        let patch = running(&pod, &host("Running", json!([])), at(0));
        assert_eq!(patch["status"]["containerStatuses"][0]["ready"], true);
        let ip: std::net::Ipv4Addr =
            patch["status"]["podIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an IP");
        assert_eq!((ip.octets()[0], ip.octets()[1] & 0xf0), (10, 240), "{ip}");
    }
}
