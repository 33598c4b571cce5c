//! The main path: machines come and go, with everything that belongs to them.

use std::collections::BTreeSet;

use e2e::{Change, Machine, MachineSet, Node, Object, Options, World};
use serde_json::json;

async fn world() -> World {
    World::shared(Options::default()).await
}

#[tokio::test]
async fn a_machine_passes_through_its_phases_in_order_and_gets_a_node_of_its_own() {
    let ns = world().await.namespace("phases").await;
    let recording = ns.record::<Machine>().await;
    // The Node comes late enough for the machine to be without one for a moment.
    let machine = ns.machine("only").provider(json!({"timing": {"join": "1s"}})).create().await;
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;

    let changes = recording.until(|changes| phases(changes).last() == Some(&"Running")).await;
    assert_eq!(phases(&changes), ["", "Provisioning", "Provisioned", "Running"]);

    let machine = ns.get::<Machine>(machine.name()).await;
    let node = ns.wait_node(machine.node_name().unwrap(), Node::is_ready).await;
    assert_eq!(node.provider_id(), machine.provider_id());
    assert_eq!(
        node.annotation("machine.openshift.io/machine"),
        Some(format!("{}/{}", ns.name(), machine.name()).as_str())
    );
    assert_eq!(machine.status.node_ref.as_ref().unwrap().uid.as_deref(), Some(node.uid()));
}

#[tokio::test]
async fn a_machine_whose_life_takes_no_time_never_falls_back_to_an_earlier_phase() {
    let ns = world().await.namespace("instant").await;
    let recording = ns.record::<Machine>().await;
    ns.machine_set("workers").replicas(5).create().await;
    for machine in ns.wait_running(5).await {
        let changes =
            recording.until(|changes| phases(of(changes, &machine)).last() == Some(&"Running")).await;
        let seen = phases(of(&changes, &machine));
        let order = ["", "Provisioning", "Provisioned", "Running"];
        let places: Vec<_> = seen.iter().map(|phase| order.iter().position(|known| known == phase)).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{}: {seen:?}", machine.name());
        assert_eq!(seen[..2], ["", "Provisioning"]);
    }
}

#[tokio::test]
async fn a_set_of_three_becomes_three_running_machines_and_scaling_to_none_leaves_nothing() {
    let ns = world().await.namespace("three").await;
    let set = ns.machine_set("workers").replicas(3).create().await;
    let machines = ns.wait_running(3).await;

    let nodes: BTreeSet<&str> = machines.iter().filter_map(Machine::node_name).collect();
    assert_eq!(nodes.len(), 3);
    assert!(machines.iter().all(|machine| machine.set_owner().is_some_and(|owner| owner.uid == set.uid())));
    ns.wait_set(set.name(), |set| {
        let status = &set.status;
        [status.replicas, status.ready_replicas, status.available_replicas, status.fully_labeled_replicas]
            == [Some(3); 4]
    })
    .await;

    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": 0}})).await;
    ns.wait_nothing_left().await;
    ns.wait_set(set.name(), |set| set.status.replicas == Some(0)).await;
}

#[tokio::test]
async fn deleting_a_set_deletes_its_machines_and_all_that_belongs_to_them() {
    let ns = world().await.namespace("deleted").await;
    let set = ns.machine_set("workers").replicas(2).create().await;
    ns.wait_running(2).await;
    ns.delete::<MachineSet>(set.name()).await;
    ns.wait_gone::<MachineSet>(set.name()).await;
    ns.wait_nothing_left().await;
}

/// The phases in the order in which the watch showed them, each once.
fn phases<'a>(changes: impl IntoIterator<Item = &'a Change<Machine>>) -> Vec<&'a str> {
    let mut phases: Vec<&str> = changes.into_iter().map(|change| change.object().phase()).collect();
    phases.dedup();
    phases
}

/// The changes of one machine.
fn of<'a>(changes: &'a [Change<Machine>], machine: &Machine) -> impl Iterator<Item = &'a Change<Machine>> {
    changes.iter().filter(|change| change.object().uid() == machine.uid())
}
