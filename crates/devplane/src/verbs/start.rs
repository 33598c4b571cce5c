//! What a control plane begins with. Never here: kinds of CRDs.

use serde_json::json;

use crate::environment::{seconds, uid};
use crate::plane::Plane;
use crate::state::State;
use crate::strategy;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// The priorities of what a cluster cannot do without. Source: the API of Kubernetes.
const PRIORITIES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Makes what is there from the beginning.
pub(crate) fn found(plane: &Plane) {
    let mut state = plane.lock();
    for name in NAMESPACES {
        make_namespace(&mut state, name);
    }
    for (name, value) in PRIORITIES {
        make_priority(&mut state, name, value);
    }
}

fn make_namespace(state: &mut State, name: &str) {
    let Some(kind) = state.kinds.resource("", "v1", "namespaces").cloned() else { return };
    let (now, uid) = (state.environment.now(), uid(&*state.environment));
    let mut value = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": name, "uid": uid, "creationTimestamp": seconds(now) },
    });
    strategy::fill(&kind, "", None, &mut value);
    strategy::prepare_create(&kind, state, &mut value);
    state.storage.put(now, &kind, value);
}

fn make_priority(state: &mut State, name: &str, number: i64) {
    let Some(kind) = state.kinds.resource("scheduling.k8s.io", "v1", "priorityclasses").cloned() else {
        return;
    };
    let (now, uid) = (state.environment.now(), uid(&*state.environment));
    let mut value = json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": { "name": name, "uid": uid, "creationTimestamp": seconds(now), "generation": 1 },
        "description": "For pods that the cluster cannot do without.",
        "value": number,
    });
    strategy::fill(&kind, "", None, &mut value);
    state.storage.put(now, &kind, value);
}
