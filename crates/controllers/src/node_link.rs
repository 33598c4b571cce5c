//! Shell of nodelink: looks at a Node when it or a Machine that matches it changes.
//! Never here: matching and what is written, which are in `core::node_link`.

use std::sync::Arc;
use std::time::Duration;

use mapi_api::{Key, Machine, Node, Object, names};
use mapi_core::node_link::{self, Ambiguity, Candidates, Facts};
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Origin, Store};
use mapi_runtime::{Error, worker};
use tokio::task::JoinHandle;

use crate::apply::apply;
use crate::{Context, indexes};

/// A minute at most: an ambiguity ends by the deletion of a Machine or Node, of which nothing tells this key.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(5), max: Duration::from_secs(60) };

/// Begins to link Nodes. The task ends when the context's stop is asked for and what it was doing has ended.
pub fn start(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let queue = Queue::new(names::reporter::NODE_LINK, BACKOFF);
    wake_by_nodes(&context.nodes, &queue);
    wake_by_machines(context, &queue);
    let context = context.clone();
    vec![tokio::spawn(async move {
        let synced = async { tokio::join!(context.machines.synced(), context.nodes.synced()) };
        tokio::select! { () = context.stop.cancelled() => return, _ = synced => {} }
        let reconcile = {
            let (context, queue) = (context.clone(), queue.clone());
            move |key| {
                let (context, queue) = (context.clone(), queue.clone());
                async move { reconcile(&context, &queue, key).await }
            }
        };
        worker::run_until(&context.stop, &queue, context.concurrency, reconcile).await;
    })]
}

fn wake_by_nodes(nodes: &Store<Node>, queue: &Queue<Key>) {
    let queue = queue.clone();
    nodes.subscribe(move |change| match change {
        Change::Added(node, Origin::List) => queue.add_low(node.key()),
        Change::Added(node, Origin::Watch) | Change::Updated { new: node, .. } => queue.add(node.key()),
        // The reference stays, so that a health check sees that the Node went.
        Change::Removed(_) => {}
    });
}

fn wake_by_machines(context: &Arc<Context>, queue: &Queue<Key>) {
    let (nodes, queue) = (context.nodes.clone(), queue.clone());
    context.machines.subscribe(move |change| match change {
        Change::Added(machine, Origin::List) => {
            _ = node_to_wake(&nodes, machine).map(|key| queue.add_low(key))
        }
        Change::Added(machine, Origin::Watch) | Change::Updated { new: machine, .. } => {
            _ = node_to_wake(&nodes, machine).map(|key| queue.add(key));
        }
        Change::Removed(_) => {}
    });
}

/// The Node that a change of a Machine is about.
fn node_to_wake(nodes: &Store<Node>, machine: &Machine) -> Option<Key> {
    if machine.is_deleting() {
        return None;
    }
    match node_of(nodes, machine) {
        Ok(node) => node.map(|node| node.key()),
        Err(error) => {
            // The Nodes in question are in back-off with the same error.
            tracing::debug!(machine = %machine.key(), %error, "no node is woken");
            None
        }
    }
}

async fn reconcile(context: &Arc<Context>, queue: &Queue<Key>, key: Key) -> Result<worker::Requeue, Error> {
    if !context.nodes.is_fresh_or_requeues(&key, queue, &key) {
        return Ok(worker::Requeue::Done);
    }
    let Some(node) = context.nodes.get(&key) else { return Ok(worker::Requeue::Done) };
    let machine = machine_of(&context.machines, &node);
    let counterpart = match &machine {
        Ok(Some(machine)) => {
            // The machine controller may just have written it: our patch would be refused.
            if !context.machines.is_fresh_or_requeues(&machine.key(), queue, &key) {
                return Ok(worker::Requeue::Done);
            }
            node_of(&context.nodes, machine)
        }
        Ok(None) | Err(_) => Ok(None),
    };
    let facts = Facts {
        node: &node,
        machine: machine.as_ref().map(|found| found.as_deref()).map_err(Ambiguity::clone),
        counterpart: counterpart.as_ref().map(|found| found.as_deref()).map_err(Ambiguity::clone),
        is_migration_on: context.migration,
        now: context.clock.now(),
    };
    let plan = node_link::decide(&facts);
    apply(context, plan).await
}

fn machine_of(machines: &Store<Machine>, node: &Node) -> Result<Option<Arc<Machine>>, Ambiguity> {
    let found = found(machines, node.provider_id(), node.internal_ips().next());
    let machine = node_link::machine_of(node, &found.candidates())?;
    Ok(machine.and_then(|machine| found.shared(machine)))
}

fn node_of(nodes: &Store<Node>, machine: &Machine) -> Result<Option<Arc<Node>>, Ambiguity> {
    let found = found(nodes, machine.provider_id(), machine.internal_ips().next());
    let node = node_link::node_of(machine, &found.candidates())?;
    Ok(node.and_then(|node| found.shared(node)))
}

/// What the indexes of one cache hold for an identity.
struct Found<T> {
    by_provider_id: Vec<Arc<T>>,
    by_address: Vec<Arc<T>>,
}

fn found<T: Object + Send + Sync + 'static>(
    store: &Store<T>,
    provider_id: Option<&str>,
    address: Option<&str>,
) -> Found<T> {
    let by = |index, value: Option<&str>| value.map(|value| store.by(index, value)).unwrap_or_default();
    Found { by_provider_id: by(indexes::PROVIDER_ID, provider_id), by_address: by(indexes::ADDRESS, address) }
}

impl<T> Found<T> {
    fn candidates(&self) -> Candidates<'_, T> {
        Candidates {
            by_provider_id: self.by_provider_id.iter().map(|object| &**object).collect(),
            by_address: self.by_address.iter().map(|object| &**object).collect(),
        }
    }

    /// The shared pointer to one of the candidates.
    fn shared(&self, object: &T) -> Option<Arc<T>> {
        self.by_provider_id
            .iter()
            .chain(&self.by_address)
            .find(|other| std::ptr::eq(&***other, object))
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn nodes(all: serde_json::Value) -> Store<Node> {
        let store: Store<Node> = Store::new(indexes::NODES);
        store.handle(Event::Init);
        for node in serde_json::from_value::<Vec<Node>>(all).expect("nodes") {
            store.handle(Event::InitApply(node.into()));
        }
        store.handle(Event::InitDone);
        store
    }

    fn machine(value: serde_json::Value) -> Machine {
        serde_json::from_value(value).expect("machine")
    }

    // N16
    #[test]
    fn a_machine_wakes_its_node_unless_it_is_being_deleted_or_matches_none_or_two() {
        let node = |name: &str, id: &str| json!({"metadata": {"name": name}, "spec": {"providerID": id}});
        let nodes = nodes(json!([node("a", "c:///a"), node("b", "c:///b"), node("b2", "c:///b")]));
        let metadata = json!({"name": "m", "namespace": "ns"});
        let of = |id: &str| machine(json!({"metadata": metadata, "spec": {"providerID": id}}));
        assert_eq!(node_to_wake(&nodes, &of("c:///a")), Some(Key::cluster("a")));
        assert_eq!(node_to_wake(&nodes, &of("c:///b")), None);
        assert_eq!(node_to_wake(&nodes, &of("c:///c")), None);
        let deleting = json!({"name": "m", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let deleting = machine(json!({"metadata": deleting, "spec": {"providerID": "c:///a"}}));
        assert_eq!(node_to_wake(&nodes, &deleting), None);
    }

    // N06
    #[test]
    fn a_machine_wakes_the_node_that_has_its_first_address_anywhere() {
        let ip = |address: &str| json!({"type": "InternalIP", "address": address});
        let nodes = nodes(json!([{"metadata": {"name": "n"}, "status": {"addresses": [ip("a"), ip("b")]}}]));
        let of = |addresses: serde_json::Value| {
            machine(json!({"metadata": {"name": "m"}, "status": {"addresses": addresses}}))
        };
        assert_eq!(node_to_wake(&nodes, &of(json!([ip("b")]))), Some(Key::cluster("n")));
        assert_eq!(node_to_wake(&nodes, &of(json!([ip("c"), ip("b")]))), None);
    }
}
