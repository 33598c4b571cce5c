//! What a set says about its Machines.

use std::time::Duration;

use e2e::{Change, Machine, MachineSet, Node, Ns, Object};
use mapi_api::{Conditions, Timestamp, names};
use serde_json::{Value, json};

use crate::{let_others_work, resize, world};

/// Ready, available and fully labelled replicas, and all.
fn counts(set: &MachineSet) -> [i32; 4] {
    let status = &set.status;
    [status.ready_replicas, status.available_replicas, status.fully_labeled_replicas, status.replicas]
        .map(Option::unwrap_or_default)
}

/// Injects a fault into a live machine.
async fn ail(ns: &Ns, machine: &Machine, faults: Value) {
    let annotations = json!({(names::annotation::FAULTS): faults.to_string()});
    ns.patch::<Machine>(machine.name(), json!({"metadata": {"annotations": annotations}})).await;
}

// S29
#[tokio::test]
async fn only_machines_whose_node_is_ready_count_as_ready() {
    let ns = world().await.namespace("ready").await;
    let set = ns.machine_set("a").replicas(4).create().await;
    let machines = ns.wait_running(4).await;
    ns.wait_set(set.name(), |set| counts(set) == [4; 4]).await;

    ail(&ns, &machines[0], json!([{"kind": "NodeNotReady"}])).await;
    ns.wait_set(set.name(), |set| counts(set) == [3, 3, 4, 4]).await;

    ail(&ns, &machines[1], json!([{"kind": "NodeDeleted", "args": {"reRegister": false}}])).await;
    ns.wait_set(set.name(), |set| counts(set) == [2, 2, 4, 4]).await;

    // A kubelet that has fallen silent contradicts nobody.
    ail(&ns, &machines[2], json!([{"kind": "NodeUnknown"}])).await;
    let unknown = json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]);
    ns.world().cluster().patch_status::<Node>(machines[2].name(), json!({"conditions": unknown})).await;
    ns.wait_set(set.name(), |set| counts(set) == [1, 1, 4, 4]).await;

    ail(&ns, &machines[0], json!([])).await;
    ns.wait_set(set.name(), |set| counts(set) == [2, 2, 4, 4]).await;
}

// S30
#[tokio::test]
async fn without_min_ready_seconds_ready_is_available() {
    let ns = world().await.namespace("at-once").await;
    let record = ns.record::<MachineSet>().await;
    let set = ns.machine_set("a").replicas(3).create().await;
    ns.wait_set(set.name(), |set| counts(set) == [3; 4]).await;
    for change in record.changes() {
        let [ready, available, ..] = counts(change.object());
        assert_eq!(ready, available);
    }
}

// S31
#[tokio::test]
async fn machines_are_available_only_after_min_ready_seconds() {
    const MIN_READY: Duration = Duration::from_secs(3);
    let ns = world().await.namespace("min-ready").await;
    let min_ready = json!({"spec": {"minReadySeconds": MIN_READY.as_secs()}});
    let record = ns.record::<MachineSet>().await;
    let set = ns.machine_set("a").replicas(2).with(min_ready).create().await;
    ns.wait_set(set.name(), |set| counts(set) == [2, 2, 2, 2]).await;
    let now = Timestamp::now();
    for node in ns.wait_nodes(|nodes| nodes.len() == 2).await {
        let since = node.condition("Ready").unwrap().last_transition_time.as_ref().unwrap().0;
        assert!(now > since + MIN_READY, "available at {now}, ready since {since}");
    }
    let is_waiting = |change: &Change<MachineSet>| counts(change.object()) == [2, 0, 2, 2];
    assert!(record.changes().iter().any(is_waiting), "it was ready first");
}

// S32
#[tokio::test]
async fn machines_that_lack_a_label_of_the_template_are_counted_apart() {
    let ns = world().await.namespace("labels").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    ns.wait_set(set.name(), |set| counts(set) == [2; 4]).await;
    let metadata = json!({"labels": {"example.com/tier": "gold"}});
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"template": {"metadata": metadata}}})).await;
    ns.wait_set(set.name(), |set| counts(set) == [2, 2, 0, 2]).await;
    resize(&ns, &set, 3).await;
    ns.wait_set(set.name(), |set| counts(set) == [3, 3, 1, 3]).await;
}

// S33
#[tokio::test]
async fn the_selector_is_told_in_the_form_that_the_server_takes() {
    let ns = world().await.namespace("selector").await;
    let roles = json!([{"key": "role", "operator": "In", "values": ["worker", "infra"]}]);
    let set = ns
        .machine_set("a")
        .replicas(2)
        .with(json!({"spec": {"selector": {"matchExpressions": roles}}}))
        .machine_label("role", "infra")
        .create()
        .await;
    ns.machine("lone").create().await;
    ns.wait_running(3).await;
    let text = format!("{}={},role in (infra,worker)", names::label::MACHINE_SET, set.name());
    ns.wait_set(set.name(), |set| set.status.label_selector.as_ref() == Some(&text)).await;

    // As an autoscaler of pods would use it.
    let path =
        format!("/apis/{}/namespaces/{}/machinesets/{}/scale", names::API_VERSION, ns.name(), set.name());
    let scale: Value = serde_json::from_str(&ns.kubectl(&["get", "--raw", &path]).await.stdout).unwrap();
    assert_eq!(scale["status"]["selector"], text.as_str());
    assert_eq!(scale["spec"]["replicas"], 2);
    let found = ns.wait_labelled::<Machine>(&text, |machines| machines.len() == 2).await;
    assert!(found.iter().all(|machine| machine.name().starts_with(set.name())));
}

// S34
#[tokio::test]
async fn a_status_that_somebody_emptied_is_told_again() {
    let ns = world().await.namespace("emptied").await;
    let set = ns.machine_set("a").replicas(1).create().await;
    let before = ns.wait_set(set.name(), |set| counts(set) == [1; 4]).await;
    assert!(before.status.conditions.is_true(names::condition::SPEC_VALID));
    for part in [
        json!({"labelSelector": null}),
        json!({"replicas": 7, "readyReplicas": null}),
        json!({"conditions": null}),
        json!({"observedGeneration": null}),
    ] {
        ns.patch_status::<MachineSet>(set.name(), part).await;
        ns.wait_set(set.name(), |set| {
            let (new, old) = (&set.status, &before.status);
            counts(set) == [1; 4]
                && new.label_selector == old.label_selector
                && new.observed_generation == old.observed_generation
                && new.conditions.is_true(names::condition::SPEC_VALID)
        })
        .await;
    }
}

// S35
#[tokio::test]
async fn a_change_that_moves_no_count_is_observed_too() {
    let ns = world().await.namespace("generation").await;
    let set = ns.machine_set("a").replicas(1).create().await;
    let before = ns.wait_set(set.name(), |set| counts(set) == [1; 4]).await;
    let policy = json!({"spec": {"deletePolicy": "Oldest"}});
    let changed = ns.patch::<MachineSet>(set.name(), policy).await;
    assert!(changed.metadata.generation > before.metadata.generation);
    let after =
        ns.wait_set(set.name(), |set| set.status.observed_generation == changed.metadata.generation).await;
    let observed_generation = before.status.observed_generation;
    assert_eq!(
        mapi_api::machine_set::MachineSetStatus { observed_generation, ..after.status },
        before.status
    );
}

// S36
#[tokio::test]
async fn what_changes_nothing_about_a_set_makes_no_write() {
    let ns = world().await.namespace("quiet").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    let machines = ns.wait_running(2).await;
    ns.wait_set(set.name(), |set| counts(set) == [2; 4] && set.metadata.annotations.is_some()).await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
    let written = ns.patch::<MachineSet>(set.name(), note.clone()).await;
    for machine in &machines {
        ns.patch::<Machine>(machine.name(), note.clone()).await;
    }
    let_others_work(&ns).await;
    assert_eq!(ns.get::<MachineSet>(set.name()).await.version(), written.version());
}
