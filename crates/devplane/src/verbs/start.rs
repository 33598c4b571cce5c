//! What a control plane begins with. Never here: kinds of CRDs.

use serde_json::json;

use crate::environment::{seconds, uid};
use crate::plane::Plane;
use crate::state::State;
use crate::strategy;

/// The namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes what is there from the beginning.
pub(crate) fn found(plane: &Plane) {
    let mut state = plane.lock();
    for name in NAMESPACES {
        make_namespace(&mut state, name);
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
    strategy::prepare_create(&kind, state, &mut value);
    state.storage.put(now, &kind, value);
}
