//! A Node of somebody else that has the name of a machine's Node.

use e2e::{Machine, MachineSet, Node, Ns, Object};
use mapi_api::{Condition, Conditions, names::label};
use serde_json::json;

use crate::{check_quiet, check_says, world};

/// A Node that a user made, under the name that a Machine's Node will have.
async fn foreign_node(ns: &Ns, short: &str) -> Node {
    let cluster = ns.world().cluster();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": ns.full(short),
        "labels": {"example.com/owner": "somebody"}}, "spec": {"providerID": "metal:///rack-7/unit-12"}});
    cluster.apply(node).await;
    cluster.get::<Node>(&ns.full(short)).await
}

/// Condition NodeRegistered among what the cloud says about a Machine.
fn registered(machine: &Machine) -> Option<Condition> {
    let status = machine.status.provider_status.as_ref()?.value();
    let conditions: Vec<Condition> = serde_json::from_value(status["conditions"].clone()).ok()?;
    conditions.find("NodeRegistered").cloned()
}

fn is_taken(machine: &Machine) -> bool {
    registered(machine).is_some_and(|found| found.status.0 == "False" && found.reason == "NodeNameTaken")
}

#[tokio::test]
async fn a_foreign_node_of_that_name_is_told_and_left_alone() {
    let ns = world().await.namespace("taken").await;
    let node = foreign_node(&ns, "a").await;
    let machine = ns.machine("a").create().await;
    let machine = ns.wait_machine(machine.name(), is_taken).await;
    let message = registered(&machine).unwrap().message;
    check_says("NodeRegistered", &message, &["spec.node.name", &format!("`{}`", ns.full("a"))]);
    // Others of the namespace become Nodes.
    let set = ns.machine_set("b").replicas(2).create().await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(2)).await;
    check_quiet(&ns).await;
    let machine = ns.get::<Machine>(machine.name()).await;
    assert_eq!((machine.phase(), machine.node_name()), ("Provisioned", None));

    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    ns.delete::<MachineSet>(set.name()).await;
    ns.wait_machines(|machines| machines.is_empty()).await;
    let left = ns.wait_node(node.name(), |_| true).await;
    assert_eq!((left.uid(), left.provider_id()), (node.uid(), Some("metal:///rack-7/unit-12")));
    assert_eq!(left.label("example.com/owner"), Some("somebody"));
    assert_eq!((left.label(label::SIMULATED), left.annotation("machine.openshift.io/machine")), (None, None));
    ns.world().cluster().delete::<Node>(node.name()).await;
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn a_machine_becomes_a_node_once_the_foreign_one_is_gone() {
    let ns = world().await.namespace("freed").await;
    let node = foreign_node(&ns, "a").await;
    let machine = ns.machine("a").create().await;
    ns.wait_machine(machine.name(), is_taken).await;
    ns.world().cluster().delete::<Node>(node.name()).await;
    let machine = ns
        .wait_machine(machine.name(), |machine| {
            machine.phase() == "Running" && registered(machine).is_some_and(|found| found.status.0 == "True")
        })
        .await;
    let own = ns.wait_node(node.name(), |node| node.is_ready()).await;
    assert_eq!(own.provider_id(), machine.provider_id());
    assert_ne!(own.uid(), node.uid());
}
