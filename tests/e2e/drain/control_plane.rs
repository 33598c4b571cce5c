//! Nodes of the control plane: one is drained at a time, so that its store keeps its majority.

use std::collections::BTreeSet;

use e2e::{Change, Draft, Machine, Node, Ns, Object, Options, World};
use mapi_api::names::annotation;
use serde_json::json;

use crate::{blocked, hold, release, running, wait_blocked, wait_cordoned, world};

const ROLES: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

fn member(ns: &Ns, short: &str, role: &str) -> Draft<Machine> {
    ns.machine(short).provider(json!({"nodeLabels": {role: ""}}))
}

async fn cordon(ns: &Ns, machine: &Machine) {
    let patch = json!({"spec": {"unschedulable": true}});
    ns.world().cluster().patch::<Node>(machine.node_name().expect("it has a Node"), patch).await;
}

/// Makes a Machine whose drain has begun and waits for a budget called `short`.
async fn waiting(ns: &Ns, short: &str, draft: Draft<Machine>) -> Machine {
    let machine = running(ns, draft).await;
    hold(ns, &machine, short).await;
    ns.delete::<Machine>(machine.name()).await;
    wait_cordoned(ns, &machine).await;
    machine
}

async fn exclude(ns: &Ns, machine: &Machine) {
    let patch = json!({"metadata": {"annotations": {annotation::EXCLUDE_DRAIN: ""}}});
    ns.patch::<Machine>(machine.name(), patch).await;
    ns.wait_gone::<Machine>(machine.name()).await;
}

// D13: nobody else in this world has such Nodes.
#[tokio::test]
async fn no_two_nodes_of_the_control_plane_are_drained_at_once_whichever_label_they_bear() {
    let ns = world().await.namespace("quorum").await;
    let nodes = ns.world().cluster().record::<Node>().await;
    let mut last = String::new();
    for (round, role) in ROLES.into_iter().enumerate() {
        let name = format!("first-{round}");
        let first = waiting(&ns, &name, member(&ns, &name, role)).await;
        let mut others = vec![];
        for (number, role) in ROLES.into_iter().enumerate() {
            let other = running(&ns, member(&ns, &format!("other-{round}-{number}"), role)).await;
            ns.delete::<Machine>(other.name()).await;
            let told = wait_blocked(&ns, &other).await;
            let expected = format!(
                "could not drain machine: drain not permitted: control-plane node `{}` is being drained",
                first.name()
            );
            assert_eq!(blocked(&told), Some(&*expected));
            others.push(other);
        }
        // One is enough to see that it goes on.
        exclude(&ns, &others.remove(0)).await;
        if round == 0 {
            exclude(&ns, &others.remove(0)).await;
        }
        release(&ns, &name).await;
        ns.wait_gone::<Machine>(first.name()).await;
        for other in others {
            ns.wait_gone::<Machine>(other.name()).await;
            last = other.name().to_owned();
        }
    }
    let is_over =
        |all: &[Change<Node>]| all.iter().any(|one| one.object().name() == last && one.now().is_none());
    assert_eq!(most_cordoned(&nodes.until(is_over).await, &ns.full("")), 1, "one after the other");
}

// D11, D12, D14: a world of their own, because all Nodes of the control plane see each other.
#[tokio::test]
async fn workers_and_nodes_that_are_cordoned_already_hold_nobody_up() {
    let world = World::own(Options::default()).await;
    let ns = world.namespace("free").await;
    let by_admin = running(&ns, member(&ns, "by-admin", ROLES[1])).await;
    cordon(&ns, &by_admin).await;
    let worker = waiting(&ns, "worker", ns.machine("worker")).await;
    let first = waiting(&ns, "first", member(&ns, "first", ROLES[0])).await;

    let cordoned_worker = running(&ns, ns.machine("cordoned")).await;
    let resumed = running(&ns, member(&ns, "resumed", ROLES[0])).await;
    for machine in [&cordoned_worker, &resumed] {
        cordon(&ns, machine).await;
        ns.delete::<Machine>(machine.name()).await;
        ns.wait_gone::<Machine>(machine.name()).await;
    }
    let other_worker = running(&ns, ns.machine("other")).await;
    ns.delete::<Machine>(other_worker.name()).await;
    ns.wait_gone::<Machine>(other_worker.name()).await;
    for (machine, name) in [(&worker, "worker"), (&first, "first")] {
        assert!(ns.get::<Machine>(machine.name()).await.is_deleting(), "it still waits for its pod");
        release(&ns, name).await;
        ns.wait_gone::<Machine>(machine.name()).await;
    }
    assert!(!ns.get::<Machine>(by_admin.name()).await.is_deleting());
}

/// The most Nodes of a prefix that were there and cordoned at the same time.
fn most_cordoned(changes: &[Change<Node>], prefix: &str) -> usize {
    let mut cordoned = BTreeSet::new();
    let mut most = 0;
    for change in changes {
        let name = change.object().name();
        if change.now().is_some_and(|node| node.spec.unschedulable) && name.starts_with(prefix) {
            cordoned.insert(name);
        } else {
            cordoned.remove(name);
        }
        most = most.max(cordoned.len());
    }
    most
}
