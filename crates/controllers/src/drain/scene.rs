//! What a drain reads from the server: the Node, other control-plane Nodes, pods and their DaemonSets.

use std::sync::Arc;

use mapi_api::names::label;
use mapi_api::{Key, Node, Object, ObjectMeta, Pod};
use mapi_core::drain::{DaemonSet, Look, Peer, PodFact, daemon_set_of};
use mapi_runtime::writes::ApiError;
use serde::Deserialize;

use super::watching::Drain;
use crate::{Context, indexes};

/// A DaemonSet, of which only its existence matters.
#[derive(Clone, Debug, Default, Deserialize)]
struct DaemonSetView {
    #[serde(default)]
    metadata: ObjectMeta,
}

mapi_api::resource!(DaemonSetView, NamespaceResourceScope, "apps", "v1", "DaemonSet", "daemonsets");

/// What the server said. The decisions say themselves what could not be done, and a text must not say it twice.
pub(super) fn words(error: ApiError) -> String {
    error.words().to_owned()
}

/// A Node as the server has it.
pub(super) struct NodeRead(Look<Box<Node>>);

impl NodeRead {
    pub(super) fn look(&self) -> Look<&Node> {
        match &self.0 {
            Look::Found(node) => Look::Found(node),
            Look::Gone => Look::Gone,
            Look::Failed(error) => Look::Failed(error.clone()),
        }
    }

    pub(super) fn is_cordoned(&self) -> bool {
        matches!(&self.0, Look::Found(node) if node.spec.unschedulable)
    }

    /// After a cordon that went through.
    pub(super) fn set_cordoned(&mut self) {
        if let Look::Found(node) = &mut self.0 {
            node.spec.unschedulable = true;
        }
    }
}

pub(super) async fn read_node(context: &Context, name: &str) -> NodeRead {
    NodeRead(match context.writer.get::<Node>(&Key::cluster(name)).await {
        Ok(Some(node)) => Look::Found(Box::new(node)),
        Ok(None) => Look::Gone,
        Err(error) => Look::Failed(words(error)),
    })
}

/// The control-plane Nodes, by either role label.
pub(super) async fn peers(context: &Context) -> Result<Vec<Peer>, String> {
    let mut peers: Vec<Peer> = vec![];
    for role in [label::NODE_CONTROL_PLANE, label::NODE_MASTER] {
        let nodes = context.writer.list::<Node>(None, None, Some(role)).await.map_err(words)?;
        for node in nodes {
            if peers.iter().any(|peer| peer.name == node.name()) {
                continue;
            }
            let machines = context.machines.by(indexes::NODE, node.name());
            peers.push(Peer {
                name: node.name().into(),
                is_cordoned: node.spec.unschedulable,
                is_leaving: machines.iter().any(|machine| machine.is_deleting()),
            });
        }
    }
    peers.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(peers)
}

/// Pods and their DaemonSets.
pub(super) struct Pods(Vec<(Arc<Pod>, DaemonSet)>);

impl Pods {
    pub(super) fn facts(&self) -> Vec<PodFact<'_>> {
        self.0.iter().map(|(pod, daemon_set)| PodFact { pod, daemon_set: daemon_set.clone() }).collect()
    }
}

pub(super) async fn list_pods(context: &Context, node: &str) -> Result<Vec<Arc<Pod>>, String> {
    let selector = super::watching::on_node(node);
    let pods = context.writer.list::<Pod>(None, Some(&selector), None).await.map_err(words)?;
    Ok(pods.into_iter().map(Arc::new).collect())
}

/// Looks up each DaemonSet once a drain. One that goes meanwhile takes its pods along.
pub(super) async fn with_daemon_sets(context: &Context, drain: &Drain, pods: Vec<Arc<Pod>>) -> Pods {
    let mut all = Vec::with_capacity(pods.len());
    for pod in pods {
        let daemon_set = match daemon_set_of(&pod) {
            Some(key) => daemon_set(context, drain, &key).await,
            None => Look::Gone,
        };
        all.push((pod, daemon_set));
    }
    Pods(all)
}

async fn daemon_set(context: &Context, drain: &Drain, key: &Key) -> DaemonSet {
    if let Some(known) = drain.daemon_set(key) {
        return known;
    }
    let look = match context.writer.get::<DaemonSetView>(key).await {
        Ok(Some(_)) => Look::Found(()),
        Ok(None) => Look::Gone,
        Err(error) => return Look::Failed(words(error)),
    };
    drain.learn(key, look.clone());
    look
}
