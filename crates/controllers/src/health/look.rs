//! Gathers the targets of a check with their Nodes. Never here: what their state means.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use mapi_api::machine::phase;
use mapi_api::{Key, Machine, Node, Object};
use mapi_core::health::{NodeState, Settings, Target};
use mapi_runtime::Error;
use mapi_runtime::store::Store;

use crate::{Context, indexes};

/// Questions in flight about Nodes that are missing from the cache: few, because they are rare.
const QUESTIONS_IN_FLIGHT: usize = 8;

/// UID of a Machine and the name of its Node, which is gone.
pub(super) type Gone = (String, String);

/// A target with what it borrows from.
pub(super) struct Found {
    machine: Arc<Machine>,
    node: FoundNode,
    is_fresh: bool,
}

/// The Node of a target.
enum FoundNode {
    Absent,
    Unlinked,
    Gone,
    Here(Arc<Node>),
}

/// The targets of a check with their Nodes. The server was asked about those in `known_gone` before.
pub(super) async fn look(
    context: &Context,
    namespace: &str,
    settings: &Settings,
    known_gone: &BTreeSet<Gone>,
) -> Result<Vec<Found>, Error> {
    let machines = context.machines.in_namespace(namespace);
    let covered = machines.into_iter().filter(|machine| settings.covers(machine));
    let mut found: Vec<Found> = covered
        .map(|machine| Found {
            node: cached_node(&context.nodes, &machine),
            is_fresh: context.machines.is_fresh(&machine.key()),
            machine,
        })
        .collect();
    confirm(context, &mut found, known_gone).await?;
    Ok(found)
}

/// A Node that is missing from the cache may only not be there yet: its Machine is known from another watch. As its
/// Machine is repaired without grace, the server is asked once (I13).
async fn confirm(context: &Context, found: &mut [Found], known_gone: &BTreeSet<Gone>) -> Result<(), Error> {
    let doubtful: Vec<(usize, Key)> = found
        .iter()
        .enumerate()
        .filter(|(_, found)| found.machine.phase() != phase::FAILED && !found.machine.is_deleting())
        .filter_map(|(i, found)| found.gone().map(|gone| (i, gone)))
        .filter(|(_, gone)| !known_gone.contains(gone))
        .map(|(i, (_, node))| (i, Key::cluster(&node)))
        .collect();
    let answers = futures::stream::iter(doubtful)
        .map(|(i, node)| async move { context.writer.get::<Node>(&node).await.map(|answer| (i, answer)) });
    let answers: Vec<_> = answers.buffer_unordered(QUESTIONS_IN_FLIGHT).try_collect().await?;
    for (i, node) in answers {
        if let Some(node) = node {
            found[i].node = FoundNode::Here(Arc::new(node));
        }
    }
    Ok(())
}

impl Found {
    /// What the decision sees.
    pub(super) fn target(&self) -> Target<'_> {
        Target {
            machine: &self.machine,
            node: match &self.node {
                FoundNode::Absent => NodeState::Absent,
                FoundNode::Unlinked => NodeState::Unlinked,
                FoundNode::Gone => NodeState::Gone,
                FoundNode::Here(node) => NodeState::Found(node),
            },
            is_fresh: self.is_fresh,
        }
    }

    /// Its Node, if that is gone.
    pub(super) fn gone(&self) -> Option<Gone> {
        match &self.node {
            FoundNode::Gone => Some((self.machine.uid().into(), self.machine.node_name()?.into())),
            FoundNode::Absent | FoundNode::Unlinked | FoundNode::Here(_) => None,
        }
    }
}

fn cached_node(nodes: &Store<Node>, machine: &Machine) -> FoundNode {
    match machine.node_name() {
        Some(name) => nodes.get(&Key::cluster(name)).map_or(FoundNode::Gone, FoundNode::Here),
        None => match machine.provider_id() {
            Some(id) if !nodes.by(indexes::PROVIDER_ID, id).is_empty() => FoundNode::Unlinked,
            Some(_) | None => FoundNode::Absent,
        },
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::{Value, json};

    use super::*;

    fn machine(value: Value) -> Machine {
        serde_json::from_value(value).expect("machine")
    }

    #[test]
    fn a_machine_without_reference_whose_node_is_there_is_not_taken_for_one_that_never_joined() {
        let node = json!([{"metadata": {"name": "n"}, "spec": {"providerID": "c:///1"}}]);
        let nodes: Store<Node> = Store::new(indexes::NODES);
        for node in serde_json::from_value::<Vec<Node>>(node).expect("nodes") {
            nodes.handle(Event::Apply(node.into()));
        }
        let linked = |node: &str| json!({"metadata": {"name": "m"}, "status": {"nodeRef": {"name": node}}});
        let of = |id: &str| machine(json!({"metadata": {"name": "m"}, "spec": {"providerID": id}}));
        assert!(matches!(cached_node(&nodes, &of("c:///1")), FoundNode::Unlinked));
        assert!(matches!(cached_node(&nodes, &of("c:///2")), FoundNode::Absent));
        assert!(matches!(cached_node(&nodes, &of("")), FoundNode::Absent));
        assert!(matches!(cached_node(&nodes, &machine(linked("n"))), FoundNode::Here(_)));
        assert!(matches!(cached_node(&nodes, &machine(linked("gone"))), FoundNode::Gone));
    }
}
