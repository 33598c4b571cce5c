//! What a simulated kubelet writes: the Node, its conditions and its Lease. Pure.

use mapi_api::fault::Fault;
use mapi_api::meta::micro;
use mapi_api::{SimulatedInstance, Timestamp, names};
use serde_json::{Value, json};

/// What a Node says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It can take pods.
    Ready,
    /// It cannot.
    NotReady {
        /// Reason of the condition.
        reason: String,
        /// Message of the condition.
        message: String,
    },
    /// It says nothing: neither status nor Lease is written.
    Silent,
}

impl Readiness {
    /// Status of condition Ready. A Node that falls silent was Ready when it spoke last.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Ready | Self::Silent => "True",
            Self::NotReady { .. } => "False",
        }
    }

    /// What is said, if anything.
    pub fn speaks(self) -> Option<Self> {
        match self {
            Self::Ready | Self::NotReady { .. } => Some(self),
            Self::Silent => None,
        }
    }

    /// The worse of two.
    pub fn worse(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Silent, _) | (_, Self::Ready) | (Self::NotReady { .. }, Self::NotReady { .. }) => self,
            (Self::Ready | Self::NotReady { .. }, _) => other,
        }
    }
}

/// Of a Node that has just registered.
pub fn starting() -> Readiness {
    Readiness::NotReady {
        reason: "KubeletNotReady".into(),
        message: "the simulated kubelet is starting".into(),
    }
}

/// Of a Node with a fault.
pub fn not_ready(fault: &Fault) -> Readiness {
    let message = || format!("trouble was asked for: {}", fault.kind);
    Readiness::NotReady {
        reason: fault.args.reason.clone().unwrap_or_else(|| "KubeletNotReady".into()),
        message: fault.args.message.clone().unwrap_or_else(message),
    }
}

/// The Node as it registers, its status included, so that one write is enough.
pub fn body(
    instance: &SimulatedInstance,
    readiness: &Readiness,
    now: Timestamp,
    server_version: &str,
) -> Value {
    let wish = &instance.spec.node;
    let id = instance.metadata.name.as_deref().unwrap_or_default();
    let mut labels = wish.labels.clone();
    labels.insert(names::label::SIMULATED.into(), "true".into());
    let version = if wish.kubelet_version.is_empty() { server_version } else { &wish.kubelet_version };
    // A kubelet tells IPs and its host name; names in the cloud's DNS are a cloud controller's.
    let addresses: Vec<Value> = instance
        .spec
        .addresses
        .iter()
        .filter(|address| matches!(address.type_.as_str(), "InternalIP" | "ExternalIP" | "Hostname"))
        .map(|address| json!({ "type": address.type_, "address": address.address }))
        .collect();
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": wish.name, "labels": labels, "annotations": wish.annotations },
        "spec": { "providerID": wish.provider_id, "taints": wish.taints },
        "status": {
            "capacity": instance.spec.capacity,
            "allocatable": wish.allocatable,
            "addresses": addresses,
            "conditions": conditions(readiness, now),
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "nodeInfo": {
                "machineID": id,
                "systemUUID": id,
                "bootID": id,
                "kernelVersion": "simulated",
                "osImage": "simulated",
                "containerRuntimeVersion": "simulated://1",
                "kubeletVersion": version,
                "kubeProxyVersion": "",
                "operatingSystem": wish.operating_system,
                "architecture": wish.architecture,
            },
        },
    })
}

/// The strategic merge patch of `nodes/status` after a change of readiness: the other conditions stay, unless somebody
/// judged all of them Unknown while the Node was silent.
pub fn report(readiness: &Readiness, was_silent: bool, now: Timestamp) -> Value {
    let conditions = if was_silent { conditions(readiness, now) } else { vec![ready(readiness, now)] };
    json!({ "status": { "conditions": conditions } })
}

/// The patch that says that nothing changed.
pub fn beat(readiness: &Readiness, now: Timestamp) -> Value {
    let mut all = conditions(readiness, now);
    for condition in &mut all {
        if let Some(fields) = condition.as_object_mut() {
            fields.remove("lastTransitionTime");
        }
    }
    json!({ "status": { "conditions": all } })
}

fn conditions(readiness: &Readiness, now: Timestamp) -> Vec<Value> {
    let at = seconds(now);
    let fine = |type_, reason, message| {
        json!({
            "type": type_, "status": "False", "reason": reason, "message": message,
            "lastHeartbeatTime": at, "lastTransitionTime": at,
        })
    };
    vec![
        fine("NetworkUnavailable", "RouteCreated", "the simulated network has a route"),
        fine("MemoryPressure", "KubeletHasSufficientMemory", "there is memory left"),
        fine("DiskPressure", "KubeletHasNoDiskPressure", "there is disk left"),
        fine("PIDPressure", "KubeletHasSufficientPID", "there are process ids left"),
        ready(readiness, now),
    ]
}

fn ready(readiness: &Readiness, now: Timestamp) -> Value {
    let (reason, message) = match readiness {
        Readiness::Ready | Readiness::Silent => ("KubeletReady", "the simulated kubelet is ready"),
        Readiness::NotReady { reason, message } => (reason.as_str(), message.as_str()),
    };
    let at = seconds(now);
    json!({
        "type": "Ready", "status": readiness.status(), "reason": reason, "message": message,
        "lastHeartbeatTime": at, "lastTransitionTime": at,
    })
}

/// The form of times in a Node's status.
fn seconds(now: Timestamp) -> String {
    mapi_api::condition::whole_seconds(now).to_string()
}

/// What a Lease says; whoever writes it adds the version it saw last.
pub fn lease(instance: &str, node: (&str, &str), duration_s: i32, now: Timestamp) -> Value {
    let (name, uid) = node;
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": name,
            "namespace": LEASE_NAMESPACE,
            "labels": { (names::label::SIMULATED): "true", (names::label::SIMULATED_INSTANCE): instance },
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid }],
        },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": duration_s, "renewTime": micro(now) },
    })
}

/// Where the heartbeats of Nodes live.
pub const LEASE_NAMESPACE: &str = "kube-node-lease";
