//! How a status is written.

use std::collections::BTreeMap;

use e2e::{Machine, Ns, Object, Options, World, free_port};
use mapi_api::{Conditions, names::condition};
use serde_json::json;

use crate::{condition, life, running, settled, world};

/// A Machine that takes two seconds to run: times in a status are whole seconds.
async fn let_time_pass(ns: &Ns, short: &str) {
    running(ns, ns.machine(short).provider(json!({"timing": {"join": "2s"}}))).await;
}

// M48, M49
#[tokio::test]
async fn last_updated_moves_if_and_only_if_the_status_does() {
    let ns = world().await.namespace("updated").await;
    let machines = ns.record::<Machine>().await;
    let machine = settled(&ns, ns.machine("m")).await;
    let name = machine.name();
    let poke = json!({"metadata": {"annotations": {"e2e.test/poke": "1"}}, "spec": {"taints": []}});
    let before = ns.patch::<Machine>(name, poke).await.status.last_updated;
    let_time_pass(&ns, "other").await;
    assert_eq!(ns.get::<Machine>(name).await.status.last_updated, before);

    let hook = json!({"spec": {"lifecycleHooks": {"preDrain": [{"name": "migrate", "owner": "storage"}]}}});
    ns.patch::<Machine>(name, hook).await;
    let hooked = ns.wait_machine(name, |m| condition(m, condition::DRAINABLE).starts_with("False")).await;
    assert!(hooked.status.last_updated > before);

    ns.patch::<Machine>(name, json!({"spec": {"lifecycleHooks": null}})).await;
    ns.delete::<Machine>(name).await;
    ns.wait_gone::<Machine>(name).await;
    let (states, _) = life(&machines, &machine).await;
    for pair in states.windows(2) {
        let [old, new] = [&pair[0].status, &pair[1].status];
        let mut same = new.clone();
        same.last_updated.clone_from(&old.last_updated);
        assert!(same != *old || new == old, "the time moved alone: {old:?} {new:?}");
    }
}

#[tokio::test]
async fn conditions_of_other_writers_survive() {
    let ns = world().await.namespace("foreign").await;
    let machine = running(&ns, ns.machine("m")).await;
    let mut list = serde_json::to_value(&machine.status.conditions).unwrap();
    let foreign = json!({
        "type": "Foreign", "status": "Unknown", "severity": "Info", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    list.as_array_mut().unwrap().push(foreign);
    ns.patch_status::<Machine>(machine.name(), json!({ "conditions": list })).await;
    let hook =
        json!({"spec": {"lifecycleHooks": {"preTerminate": [{"name": "migrate", "owner": "storage"}]}}});
    ns.patch::<Machine>(machine.name(), hook).await;
    let is_written = |machine: &Machine| condition(machine, condition::TERMINABLE).starts_with("False");
    let after = ns.wait_machine(machine.name(), is_written).await;
    assert_eq!(condition(&after, "Foreign"), "Unknown Info R m");
    let since = after.status.conditions.find("Foreign").and_then(|found| found.last_transition_time.clone());
    assert_eq!(since.map(|time| time.0.to_string()).as_deref(), Some("2026-01-01T00:00:00Z"));
}

// M54
#[tokio::test]
async fn each_new_phase_but_deleting_is_measured_once() {
    let world = World::own(Options { idle: true, ..Options::default() }).await;
    let port = free_port();
    world.start_cloud();
    world.start_controllers(&[&format!("--metrics-bind-address=127.0.0.1:{port}")]);
    let ns = world.namespace("measured").await;
    let machines = ns.record::<Machine>().await;
    let made = [running(&ns, ns.machine("a")).await, running(&ns, ns.machine("b")).await];
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    for machine in &made {
        ns.delete::<Machine>(machine.name()).await;
        let (states, _) = life(&machines, machine).await;
        let mut phases: Vec<&str> = states.iter().map(Machine::phase).collect();
        phases.dedup();
        for phase in phases.into_iter().filter(|phase| !["", "Deleting"].contains(phase)) {
            *expected.entry(phase.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(expected["Running"], 2);
    let text = world.metrics(port).await;
    let count = |line: &str| {
        let line = line.strip_prefix("mapi_machine_phase_transition_seconds_count{phase=\"")?;
        let (phase, count) = line.split_once("\"} ")?;
        Some((phase.to_owned(), count.parse().ok()?))
    };
    assert_eq!(text.lines().filter_map(count).collect::<BTreeMap<_, _>>(), expected);
}
