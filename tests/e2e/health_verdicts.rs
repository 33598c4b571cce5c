//! Which Machines are sick, and from when on.

use e2e::{Change, Machine, MachineHealthCheck, Node, Ns, Object, Recording};
use mapi_api::{
    Conditions, Timestamp,
    names::{annotation, condition, label},
};
use serde_json::json;

use crate::{BROKEN, break_node, check, counted, heal_node, metric, owned, reasons, report, world};

/// When the deletion of a Machine was asked for, in whole seconds.
async fn deleted_at(machines: &Recording<Machine>, name: &str) -> i64 {
    let mark = |changes: &[Change<Machine>]| {
        let ours = changes.iter().map(Change::object).filter(|machine| machine.name() == name);
        let mut marks = ours.filter_map(|machine| machine.metadata.deletion_timestamp.clone());
        marks.next().map(|time| time.0.as_second())
    };
    mark(&machines.until(|changes| mark(changes).is_some()).await).expect("that was waited for")
}

/// The faults of a live Machine.
async fn inject(ns: &Ns, machine: &str, faults: serde_json::Value) {
    let patch = json!({"metadata": {"annotations": {annotation::FAULTS: faults.to_string()}}});
    ns.patch::<Machine>(machine, patch).await;
}

// H03
#[tokio::test]
async fn a_machine_whose_node_is_sick_for_too_long_is_replaced() {
    let ns = world().await.namespace("sick").await;
    ns.machine_set("set").replicas(1).create().await;
    let machine = ns.wait_running(1).await.remove(0);
    let checks = ns.record::<MachineHealthCheck>().await;
    let check = check(&ns).create().await;
    counted(&ns, check.name(), 1, 1).await;
    report(&ns, machine.node_name().unwrap(), (BROKEN, "True"), 302).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    ns.wait_running(1).await;
    counted(&ns, check.name(), 1, 1).await;

    let events = ns.wait_event(machine.name(), "MachineDeleted").await;
    let target = format!("{}/{}/{}/{}", ns.name(), check.name(), machine.name(), machine.name());
    let note = format!("Machine {target} has been remediated by requesting to delete Machine object");
    assert_eq!(events[0].note.as_deref(), Some(note.as_str()));
    assert_eq!(events.len(), 1);
    let remediated = metric(&ns, check.name(), "mapi_machinehealthcheck_remediation_success_total").await;
    assert_eq!(remediated, Some(1.0));
    let was_told = checks.changes().iter().filter_map(Change::now).any(|check| {
        let status = &check.status;
        let counts = (status.expected_machines, status.current_healthy, status.remediations_allowed);
        counts == (Some(1), Some(0), Some(0)) && status.conditions.is_true(condition::REMEDIATION_ALLOWED)
    });
    assert!(was_told, "{:?}", checks.changes());
}

// H05
#[tokio::test]
async fn a_machine_under_external_repair_is_not_healthy_though_its_node_is() {
    let ns = world().await.namespace("external").await;
    let machine = owned(&ns, "m").await.create().await;
    ns.wait_running(1).await;
    let check = check(&ns).create().await;
    counted(&ns, check.name(), 1, 1).await;
    let mark =
        |value: Option<&str>| json!({"metadata": {"annotations": {annotation::EXTERNAL_REMEDIATION: value}}});
    ns.patch::<Machine>(machine.name(), mark(Some("false"))).await;
    counted(&ns, check.name(), 1, 0).await;
    ns.patch::<Machine>(machine.name(), mark(None)).await;
    counted(&ns, check.name(), 1, 1).await;
    assert!(!ns.get::<Machine>(machine.name()).await.is_deleting());
    let told = reasons(&ns, machine.name()).await;
    assert!(!told.iter().any(|reason| reason == "DetectedUnhealthy"), "{told:?}");
}

// H06
#[tokio::test]
async fn a_machine_that_turns_sick_is_told_at_once_and_repaired_when_its_time_is_over() {
    let ns = world().await.namespace("turns").await;
    let machine = owned(&ns, "m").await.create().await;
    ns.wait_running(1).await;
    let machines = ns.record::<Machine>().await;
    let check = ns.health_check("check").unhealthy(BROKEN, "True", "4s").create().await;
    counted(&ns, check.name(), 1, 1).await;
    let began = Timestamp::now().as_second();
    report(&ns, machine.name(), (BROKEN, "True"), 0).await;
    let events = ns.wait_event(machine.name(), "DetectedUnhealthy").await;
    let (name, ns_name) = (machine.name(), ns.name());
    let note = format!("Machine {ns_name}/{}/{name}/{name} has unhealthy node {name}", check.name());
    assert_eq!(events[0].note.as_deref(), Some(note.as_str()));
    assert!(deleted_at(&machines, name).await >= began + 4);
}

// H07
#[tokio::test]
async fn each_machine_is_repaired_when_its_own_time_is_over() {
    let ns = world().await.namespace("own-time").await;
    for short in ["slow", "fast"] {
        owned(&ns, short).await.create().await;
    }
    ns.wait_running(2).await;
    let machines = ns.record::<Machine>().await;
    let check = ns.health_check("check").unhealthy(BROKEN, "True", "2s").unhealthy("Cracked", "True", "8s");
    counted(&ns, check.create().await.name(), 2, 2).await;
    let began = Timestamp::now().as_second();
    report(&ns, &ns.full("slow"), ("Cracked", "True"), 0).await;
    report(&ns, &ns.full("fast"), (BROKEN, "True"), 0).await;
    let slow = deleted_at(&machines, &ns.full("slow")).await;
    let fast = deleted_at(&machines, &ns.full("fast")).await;
    assert!(began + 2 <= fast && fast < slow && began + 8 <= slow, "{began}, fast {fast}, slow {slow}");
}

// H10, H11
#[tokio::test]
async fn a_machine_that_does_not_become_a_node_in_time_is_repaired() {
    let ns = world().await.namespace("never-joins").await;
    let machines = ns.record::<Machine>().await;
    let check = check(&ns).startup_timeout("5s").create().await;
    let machine = owned(&ns, "m").await.faults(json!([{"kind": "NeverJoin"}])).create().await;
    counted(&ns, check.name(), 1, 0).await;
    let began = machine.metadata.creation_timestamp.as_ref().unwrap().0.as_second();
    assert!(deleted_at(&machines, machine.name()).await >= began + 5);
    let told = reasons(&ns, machine.name()).await;
    assert!(!told.iter().any(|reason| reason == "DetectedUnhealthy"), "it never was healthy: {told:?}");
}

// H12
#[tokio::test]
async fn with_startup_timeout_zero_a_machine_without_node_is_neither_healthy_nor_repaired() {
    let ns = world().await.namespace("no-timeout").await;
    let make = async |short: &str, timeout: &str| {
        let selector = json!({"spec": {"selector": {"matchLabels": {"e2e.test/name": short}}}});
        let check = ns.health_check(short).unhealthy(BROKEN, "True", "300s").with(selector);
        check.startup_timeout(timeout).create().await;
        let machine = owned(&ns, short).await.faults(json!([{"kind": "NeverJoin"}]));
        machine.machine_label("e2e.test/name", short).create().await
    };
    let patient = make("patient", "0s").await;
    let hasty = make("hasty", "2s").await;
    ns.wait_gone::<Machine>(hasty.name()).await;
    assert!(!ns.get::<Machine>(patient.name()).await.is_deleting());
    let check = counted(&ns, &ns.full("patient"), 1, 0).await;
    assert_eq!(check.status.remediations_allowed, Some(0));
}

// H13, H36
#[tokio::test]
async fn a_machine_whose_node_is_gone_is_replaced_without_grace() {
    let ns = world().await.namespace("node-gone").await;
    ns.machine_set("set").replicas(1).create().await;
    let machine = ns.wait_running(1).await.remove(0);
    let check = check(&ns).unhealthy("Ready", "Unknown", "1h").create().await;
    counted(&ns, check.name(), 1, 1).await;
    inject(&ns, machine.name(), json!([{"kind": "NodeDeleted", "args": {"reRegister": false}}])).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_ne!(ns.wait_running(1).await[0].name(), machine.name());
}

// H14
#[tokio::test]
async fn a_failed_machine_is_repaired_whatever_its_node_says() {
    let ns = world().await.namespace("failed").await;
    ns.machine_set("set").replicas(1).create().await;
    let machine = ns.wait_running(1).await.remove(0);
    let check = check(&ns).startup_timeout("0").create().await;
    counted(&ns, check.name(), 1, 1).await;
    let failed =
        json!({"phase": "Failed", "errorReason": "CreateError", "errorMessage": "it fell off the table"});
    ns.patch_status::<Machine>(machine.name(), failed).await;
    ns.wait_event(machine.name(), "MachineDeleted").await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_ne!(ns.wait_running(1).await[0].name(), machine.name());
}

// H16
#[tokio::test]
async fn a_machine_that_is_being_deleted_counts_as_unhealthy_and_is_no_news() {
    let ns = world().await.namespace("deleting").await;
    let hook = json!({"lifecycleHooks": {"preDrain": [{"name": "e2e.test/held", "owner": "e2e"}]}});
    let held = owned(&ns, "held").await.machine_spec(hook).create().await;
    let other = owned(&ns, "other").await.create().await;
    ns.wait_running(2).await;
    let check = check(&ns).create().await;
    counted(&ns, check.name(), 2, 2).await;
    ns.delete::<Machine>(held.name()).await;
    counted(&ns, check.name(), 2, 1).await;

    break_node(&ns, held.name()).await;
    break_node(&ns, other.name()).await;
    ns.wait_gone::<Machine>(other.name()).await;
    counted(&ns, check.name(), 1, 0).await;
    ns.wait_event(other.name(), "MachineDeleted").await;
    let told = reasons(&ns, held.name()).await;
    for reason in ["MachineDeleted", "MachineDeletionFailed", "DetectedUnhealthy"] {
        assert!(!told.iter().any(|told| told == reason), "{told:?}");
    }
    ns.patch::<Machine>(held.name(), json!({"spec": {"lifecycleHooks": null}})).await;
    counted(&ns, check.name(), 0, 0).await;
}

// H38
#[tokio::test]
async fn the_shipped_termination_check_takes_a_terminating_machine_and_never_one_without_node() {
    let ns = world().await.namespace("termination").await;
    let spot = owned(&ns, "spot").await.machine_label(label::INTERRUPTIBLE, "").create().await;
    let starting = owned(&ns, "starting").await.machine_label(label::INTERRUPTIBLE, "");
    let starting = starting.faults(json!([{"kind": "NeverJoin"}])).create().await;
    let steady = owned(&ns, "steady").await.create().await;
    for machine in [&spot, &steady] {
        ns.wait_node(machine.name(), Node::is_ready).await;
    }
    let check = ns.health_check("termination-handler").unhealthy("Terminating", "True", "0s");
    let selector = json!({"spec": {"selector": {"matchLabels": {label::INTERRUPTIBLE: ""}}}});
    let check = check.max_unhealthy("100%").startup_timeout("0").with(selector).create().await;
    counted(&ns, check.name(), 2, 1).await;
    for machine in [&steady, &spot] {
        report(&ns, machine.name(), ("Terminating", "True"), 0).await;
    }
    ns.wait_gone::<Machine>(spot.name()).await;
    counted(&ns, check.name(), 1, 0).await;
    for machine in [&starting, &steady] {
        assert!(!ns.get::<Machine>(machine.name()).await.is_deleting(), "{}", machine.name());
    }
}

/// A Node that is well again in time is no reason to act, however often it was sick.
#[tokio::test]
async fn a_machine_whose_node_recovers_in_time_stays() {
    let ns = world().await.namespace("recovers").await;
    let machine = owned(&ns, "m").await.create().await;
    let other = owned(&ns, "other").await.create().await;
    ns.wait_running(2).await;
    let check = ns.health_check("check").unhealthy(BROKEN, "True", "8s").create().await;
    counted(&ns, check.name(), 2, 2).await;
    report(&ns, machine.name(), (BROKEN, "True"), 0).await;
    counted(&ns, check.name(), 2, 1).await;
    heal_node(&ns, machine.name()).await;
    counted(&ns, check.name(), 2, 2).await;
    report(&ns, other.name(), (BROKEN, "True"), 0).await;
    ns.wait_gone::<Machine>(other.name()).await;
    assert!(!ns.get::<Machine>(machine.name()).await.is_deleting());
}
