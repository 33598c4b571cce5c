//! The Node of a Machine that goes. Simulated Nodes go with their instance, so these are of the test's own making.

use e2e::{Machine, Node, Ns, Object, SimulatedInstance};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::{REFUSE, is_held, let_others_work, life, provisioned, refuse, version, world};

/// Registers a Node as a kubelet does that nobody simulates.
async fn register(ns: &Ns, name: &str, spec: Value) -> Node {
    let metadata = json!({"name": name, "labels": {"e2e.test/namespace": ns.name()}});
    let object = json!({ "metadata": metadata, "spec": spec });
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    let nodes = ns.world().cluster().api::<Node>();
    nodes.create(&PostParams::default(), &object).await.expect("the name is free");
    ns.wait_node(name, |_| true).await
}

/// A Machine and the Node that it is linked to.
async fn linked(ns: &Ns, short: &str) -> (Machine, Node) {
    let machine = provisioned(ns, ns.machine(short)).await;
    let node = register(ns, machine.name(), json!({"providerID": machine.provider_id()})).await;
    let machine = ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
    let linked = machine.status.node_ref.as_ref().and_then(|node| node.uid.as_deref());
    assert_eq!(linked, Some(node.uid()));
    (machine, node)
}

// M27
#[tokio::test]
async fn the_node_goes_after_the_instance_and_before_the_finalizer() {
    let ns = world().await.namespace("with-node").await;
    let (machines, nodes) = (ns.record::<Machine>().await, ns.world().cluster().record::<Node>().await);
    let ledger = ns.record::<SimulatedInstance>().await;
    let (machine, node) = linked(&ns, "m").await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
    let is_end = |change: &e2e::Change<Node>| change.now().is_none() && change.object().uid() == node.uid();
    let changes = nodes.until(|changes| changes.iter().any(is_end)).await;
    let node_end = version(changes.iter().find(|change| is_end(change)).unwrap().object());
    let (_, end) = life(&machines, &machine).await;
    let spans = crate::instances_of(&ledger, &machine).await;
    assert!(spans[0].1 < node_end && node_end < end, "{spans:?}, {node_end}, {end}");
}

// M28
#[tokio::test]
async fn a_node_that_is_gone_already_holds_nothing_up() {
    let ns = world().await.namespace("no-node").await;
    let (machine, node) = linked(&ns, "m").await;
    ns.world().cluster().delete::<Node>(node.name()).await;
    ns.world().cluster().wait_gone::<Node>(node.name()).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
}

// M29
#[tokio::test]
async fn a_node_that_cannot_be_deleted_keeps_the_finalizer() {
    let ns = world().await.namespace("kept-node").await;
    let (machine, node) = linked(&ns, "m").await;
    ns.world().cluster().patch::<Node>(node.name(), refuse(Some("forbidden"))).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_all::<SimulatedInstance>(|all| all.is_empty()).await;
    let_others_work(&ns, "other").await;
    assert!(is_held(&ns.get::<Machine>(machine.name()).await));
    assert_eq!(ns.wait_node(node.name(), |_| true).await.annotation(REFUSE), Some("forbidden"));
    ns.world().cluster().patch::<Node>(node.name(), refuse(None)).await;
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn a_node_that_took_the_name_of_a_machines_node_is_left_alone() {
    let ns = world().await.namespace("namesake").await;
    let (machine, node) = linked(&ns, "m").await;
    ns.world().cluster().delete::<Node>(node.name()).await;
    ns.world().cluster().wait_gone::<Node>(node.name()).await;
    let namesake = register(&ns, node.name(), json!({})).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    let left = ns.wait_node(node.name(), |_| true).await;
    assert_eq!((left.uid(), left.is_deleting()), (namesake.uid(), false));
    ns.world().cluster().delete::<Node>(node.name()).await;
}
