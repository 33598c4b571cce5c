//! Nodes whose leases stop: the real node life-cycle controller marks them Unknown, and health checks act on that.

use std::time::Duration;

use e2e::{
    Change, Draft, Machine, MachineHealthCheck, MachineSet, Node, Ns, Object, Options, Recording, World,
};
use futures::future::join_all;
use k8s_openapi::api::core::v1::Node as WholeNode;
use mapi_api::{
    Conditions,
    names::{annotation, condition, reason},
};
use serde_json::json;

/// Eight leases: a busy machine skips no eight of them in a row.
const GRACE: Duration = Duration::from_secs(8);
/// The life-cycle controller looks once in two seconds, so Nodes that fall silent together are not marked together. Eight
/// seconds later all of them are.
const TIMEOUT: &str = "8s";
/// Silence takes its time, twice.
const PATIENCE: Duration = Duration::from_secs(120);

async fn world() -> World {
    World::shared(Options { node_monitor_grace: Some(GRACE), ..Options::default() }).await
}

/// A set whose Nodes renew their leases each second.
fn set(ns: &Ns, replicas: i64) -> Draft<MachineSet> {
    let heartbeat = json!({"heartbeat": {"leaseDuration": "4s", "leaseRenew": "1s"}});
    ns.machine_set("set").replicas(replicas).provider(heartbeat)
}

async fn silence(ns: &Ns, machines: &[Machine]) {
    let faults = json!([{"kind": "NodeUnknown"}]).to_string();
    let patch = json!({"metadata": {"annotations": {annotation::FAULTS: faults}}});
    join_all(machines.iter().map(|machine| ns.patch::<Machine>(machine.name(), patch.clone()))).await;
}

/// A namespace with four running Machines and a check of them that counts all of them healthy.
async fn four(claim: &str, limit: &str) -> (Ns, Vec<Machine>, MachineHealthCheck) {
    let ns = world().await.namespace(claim).await.patient(PATIENCE);
    set(&ns, 4).create().await;
    let machines = ns.wait_running(4).await;
    let check = ns.health_check("check").unhealthy("Ready", "Unknown", TIMEOUT).max_unhealthy(limit);
    let check = check.create().await;
    healthy(&ns, &check, 4).await;
    (ns, machines, check)
}

async fn healthy(ns: &Ns, check: &MachineHealthCheck, count: i64) -> MachineHealthCheck {
    ns.wait_check(check.name(), |check| check.status.current_healthy == Some(count)).await
}

async fn replaced(ns: &Ns, machines: &[Machine]) {
    for machine in machines {
        ns.wait_gone::<Machine>(machine.name()).await;
    }
    ns.wait_running(4).await;
}

/// The Machines that were deleted or asked to go so far.
fn deleted(machines: &Recording<Machine>) -> Vec<String> {
    let is_going = |change: &&Change<Machine>| change.now().is_none_or(Object::is_deleting);
    machines.changes().iter().filter(is_going).map(|change| change.object().name().to_owned()).collect()
}

// H03
#[tokio::test]
async fn a_node_whose_leases_stop_is_marked_unknown_and_its_machine_is_replaced() {
    let ns = world().await.namespace("silent").await.patient(PATIENCE);
    set(&ns, 2).create().await;
    let machines = ns.wait_running(2).await;
    let (silent, other) = (&machines[0], &machines[1]);
    let check = ns.health_check("check").unhealthy("Ready", "Unknown", "2s").create().await;
    healthy(&ns, &check, 2).await;
    let nodes = ns.world().cluster().record::<WholeNode>().await;
    silence(&ns, &machines[..1]).await;
    ns.wait_gone::<Machine>(silent.name()).await;

    let seen = nodes
        .until(|changes| {
            let gone = changes.iter().filter(|change| change.now().is_none());
            gone.map(|change| change.object().metadata.name.as_deref()).any(|name| name == silent.node_name())
        })
        .await;
    let of_node = seen
        .iter()
        .filter_map(Change::now)
        .filter(|node| node.metadata.name.as_deref() == silent.node_name());
    let conditions = of_node.filter_map(|node| node.status.as_ref()?.conditions.as_ref()).flatten();
    let unknown: Vec<_> = conditions.filter(|c| c.type_ == "Ready" && c.status == "Unknown").collect();
    assert_eq!(unknown.first().and_then(|c| c.reason.as_deref()), Some("NodeStatusUnknown"));

    ns.wait_event(silent.name(), "MachineDeleted").await;
    let now = ns.wait_running(2).await;
    assert!(now.iter().any(|machine| machine.uid() == other.uid()), "the other one was well");
    ns.wait_nodes(|nodes| nodes.len() == 2 && nodes.iter().all(|node| Node::is_ready(node))).await;
    healthy(&ns, &check, 2).await;
}

// H03, H19, H23, H24
#[tokio::test]
async fn half_silent_at_once_deletes_nothing_at_forty_percent_and_is_repaired_at_a_hundred() {
    let (ns, machines, check) = four("half", "40%").await;
    let (open, open_machines, open_check) = four("all", "100%").await;
    let recording = ns.record::<Machine>().await;

    silence(&ns, &machines[..2]).await;
    let told = ns
        .wait_check(check.name(), |check| {
            let allowed = check.status.conditions.find(condition::REMEDIATION_ALLOWED);
            allowed.is_some_and(|allowed| !allowed.is_true())
        })
        .await;
    let allowed = told.status.conditions.find(condition::REMEDIATION_ALLOWED).unwrap();
    assert_eq!(allowed.reason, reason::TOO_MANY_UNHEALTHY);
    assert!(allowed.message.contains("total: 4, unhealthy: 2, maxUnhealthy: 40%"), "{}", allowed.message);
    assert_eq!(told.status.remediations_allowed, Some(0));
    ns.wait_event(check.name(), "RemediationRestricted").await;

    // Silent later and repaired: so the time of those that were silent before is over too.
    silence(&open, &open_machines[..2]).await;
    replaced(&open, &open_machines[..2]).await;
    healthy(&open, &open_check, 4).await;
    // The first edit makes the check look again now, the second shows that it has done what came of that.
    for limit in ["45%", "49%"] {
        ns.patch::<MachineHealthCheck>(check.name(), json!({"spec": {"maxUnhealthy": limit}})).await;
        let counts = format!("total: 4, unhealthy: 2, maxUnhealthy: {limit}");
        let is_told = |check: &MachineHealthCheck| {
            let allowed = check.status.conditions.find(condition::REMEDIATION_ALLOWED);
            allowed.is_some_and(|allowed| !allowed.is_true() && allowed.message.contains(&counts))
        };
        ns.wait_check(check.name(), is_told).await;
    }
    assert_eq!(deleted(&recording), [""; 0]);

    ns.patch::<MachineHealthCheck>(check.name(), json!({"spec": {"maxUnhealthy": "100%"}})).await;
    replaced(&ns, &machines[..2]).await;
    let told = healthy(&ns, &check, 4).await;
    assert!(told.status.conditions.is_true(condition::REMEDIATION_ALLOWED));
    for machine in &machines[2..] {
        assert_eq!(ns.get::<Machine>(machine.name()).await.uid(), machine.uid());
    }
}
