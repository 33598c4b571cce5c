//! How many may be unhealthy, and what happens when more are.

use e2e::{Machine, MachineHealthCheck, Ns, Object};
use mapi_api::{
    Condition, Conditions,
    names::{annotation, condition, reason},
};
use serde_json::{Value, json};

use crate::{break_node, check, counted, heal_node, metric, owned, world};

const SHORT_CIRCUIT: &str = "mapi_machinehealthcheck_short_circuit";

fn allowed(check: &MachineHealthCheck) -> Option<&Condition> {
    check.status.conditions.find(condition::REMEDIATION_ALLOWED)
}

/// Waits until a check has stopped all repairs, for this reason in numbers.
async fn stopped(ns: &Ns, check: &str, counts: &str) -> MachineHealthCheck {
    let message = format!(
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy ({counts})"
    );
    ns.wait_check(check, |check| {
        allowed(check).is_some_and(|allowed| !allowed.is_true() && allowed.message == message)
    })
    .await
}

// H18
#[tokio::test]
async fn a_limit_below_zero_allows_while_nothing_is_unhealthy() {
    let ns = world().await.namespace("below-zero").await;
    let machine = owned(&ns, "m").await.create().await;
    ns.wait_running(1).await;
    let check = counted(&ns, check(&ns).max_unhealthy(-1).create().await.name(), 1, 1).await;
    assert_eq!(check.status.remediations_allowed, Some(0));
    assert!(allowed(&check).unwrap().is_true());

    break_node(&ns, machine.name()).await;
    let counts = "total: 1, unhealthy: 1, maxUnhealthy: -1";
    let check = stopped(&ns, check.name(), counts).await;
    assert_eq!(allowed(&check).unwrap().reason, reason::TOO_MANY_UNHEALTHY);
    assert_eq!(check.status.remediations_allowed, Some(0));
    let events = ns.wait_event(check.name(), "RemediationRestricted").await;
    let note = format!("Remediation restricted due to exceeded number of unhealthy machines ({counts})");
    assert_eq!(events[0].note.as_deref(), Some(note.as_str()));
    assert!(!ns.get::<Machine>(machine.name()).await.is_deleting());
}

// H19, H22
#[tokio::test]
async fn the_limit_of_five_machines_is_told_however_it_is_written() {
    let ns = world().await.namespace("written").await;
    ns.machine_set("set").replicas(5).create().await;
    ns.wait_running(5).await;
    let check = check(&ns).create().await;
    counted(&ns, check.name(), 5, 5).await;
    let limits: [(Value, i32); 9] = [
        (json!("40%"), 2),
        (json!("59%"), 2),
        (json!("100%"), 5),
        (json!("2"), 2),
        (json!(null), 5),
        (json!(2), 2),
        (json!("0%"), 0),
        (json!("60%"), 3),
        (json!(7), 7),
    ];
    for (limit, left) in limits {
        ns.patch::<MachineHealthCheck>(check.name(), json!({"spec": {"maxUnhealthy": limit}})).await;
        let is_told = |check: &MachineHealthCheck| check.status.remediations_allowed == Some(left);
        ns.wait_check(check.name(), is_told).await;
    }
}

// H19, H23, H24
#[tokio::test]
async fn more_than_two_of_five_stop_all_repairs_and_when_two_are_left_both_are_replaced() {
    let ns = world().await.namespace("three-of-five").await;
    ns.machine_set("set").replicas(5).create().await;
    let machines = ns.wait_running(5).await;
    // Nothing is decided before all of it is there.
    let check = check(&ns).max_unhealthy("40%").annotation(annotation::PAUSED, "").create().await;
    for machine in &machines[..3] {
        break_node(&ns, machine.name()).await;
    }
    let release = json!({"metadata": {"annotations": {annotation::PAUSED: null}}});
    ns.patch::<MachineHealthCheck>(check.name(), release).await;
    stopped(&ns, check.name(), "total: 5, unhealthy: 3, maxUnhealthy: 40%").await;
    ns.wait_event(check.name(), "RemediationRestricted").await;
    break_node(&ns, machines[3].name()).await;
    let check = stopped(&ns, check.name(), "total: 5, unhealthy: 4, maxUnhealthy: 40%").await;
    assert_eq!((check.status.current_healthy, check.status.remediations_allowed), (Some(1), Some(0)));
    assert_eq!(metric(&ns, check.name(), SHORT_CIRCUIT).await, Some(1.0));
    let events = ns.wait_event(check.name(), "RemediationRestricted").await;
    assert!(events.len() == 1 && events[0].series.is_none(), "told once: {events:?}");
    assert!(ns.list::<Machine>().await.iter().all(|machine| !machine.is_deleting()));

    // With one of them well, three are still too many; with two of them, the other two are repaired.
    for machine in &machines[2..4] {
        heal_node(&ns, machine.name()).await;
    }
    for machine in &machines[..2] {
        ns.wait_gone::<Machine>(machine.name()).await;
    }
    ns.wait_running(5).await;
    let check = counted(&ns, check.name(), 5, 5).await;
    assert!(allowed(&check).unwrap().is_true());
    assert_eq!(metric(&ns, check.name(), SHORT_CIRCUIT).await, Some(0.0));
    for machine in &machines[2..] {
        assert_eq!(ns.get::<Machine>(machine.name()).await.uid(), machine.uid(), "it was none of the sick");
    }
}
