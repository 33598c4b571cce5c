//! Machines that are deleted while a create may be under way.

use std::time::Duration;

use e2e::{Change, Machine, Ns, Object, Recording, SimulatedInstance};
use mapi_api::{Conditions, names::condition};
use serde_json::json;

use crate::{instances_of, is_held, let_others_work, life, state, world};

/// Half a minute for a create under way, what the cloud needs to show it on top, and as much again.
const PATIENCE: Duration = Duration::from_secs(150);

/// What was made for a Machine went before it, and nothing comes after it.
async fn check_nothing_was_left(
    ns: &Ns,
    machines: &Recording<Machine>,
    ledger: &Recording<SimulatedInstance>,
    machine: &Machine,
) {
    ns.wait_gone::<Machine>(machine.name()).await;
    let (_, end) = life(machines, machine).await;
    let_others_work(ns, &format!("after-{}", machine.name().rsplit('-').next().unwrap_or_default())).await;
    for (made, gone) in instances_of(ledger, machine).await {
        assert!(made < end && gone < end, "`{}`: {made}, {gone}, {end}", machine.name());
    }
}

#[tokio::test]
async fn a_machine_that_is_deleted_at_any_moment_of_its_creation_leaves_no_instance() {
    let ns = world().await.namespace("early").await.patient(PATIENCE);
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let at_once = ns.machine("once").create().await;
    ns.delete::<Machine>(at_once.name()).await;

    type Moment = fn(&Machine) -> bool;
    let moments: [(&str, Moment); 4] = [
        ("held", is_held),
        ("looked", |machine| machine.status.conditions.find(condition::INSTANCE_EXISTS).is_some()),
        ("made", |machine| !state(machine).is_empty()),
        ("exists", |machine| machine.status.conditions.is_true(condition::INSTANCE_EXISTS)),
    ];
    let mut made = vec![at_once];
    for (short, is_moment) in moments {
        // Not so quick that all moments are one.
        let timing = json!({"timing": {"provision": "500ms", "boot": "500ms"}});
        let machine = ns.machine(short).provider(timing).create().await;
        ns.wait_machine(machine.name(), is_moment).await;
        ns.delete::<Machine>(machine.name()).await;
        made.push(machine);
    }
    let seen = ns.machine("seen").create().await;
    let is_its = |change: &Change<SimulatedInstance>| change.object().spec.machine_ref.uid == seen.uid();
    ledger.until(|changes| changes.iter().any(is_its)).await;
    ns.delete::<Machine>(seen.name()).await;
    made.push(seen);
    for machine in &made {
        check_nothing_was_left(&ns, &machines, &ledger, machine).await;
    }
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn an_instance_that_cannot_be_seen_yet_is_waited_for_even_if_its_node_has_come() {
    let ns = world().await.namespace("hidden").await.patient(PATIENCE);
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let hidden = json!([{"kind": "CreateDuplicateVisible", "duration": "8s"}]);
    let made = ns.machine("made").faults(hidden.clone()).create().await;
    ledger.until(|changes| !changes.is_empty()).await;
    ns.delete::<Machine>(made.name()).await;
    let joined = ns.machine("joined").faults(hidden).create().await;
    ns.wait_machine(joined.name(), |machine| machine.node_name().is_some()).await;
    ns.delete::<Machine>(joined.name()).await;
    for machine in [made, joined] {
        check_nothing_was_left(&ns, &machines, &ledger, &machine).await;
        assert_eq!(instances_of(&ledger, &machine).await.len(), 1);
    }
}

#[tokio::test]
async fn a_create_without_an_answer_is_waited_for() {
    let ns = world().await.namespace("unanswered").await.patient(PATIENCE);
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let timeout = json!([{"kind": "CreateError", "args": {"class": "Timeout"}}]);
    let machine = ns.machine("m").faults(timeout).create().await;
    ns.wait_event(machine.name(), "FailedCreate").await;
    ns.delete::<Machine>(machine.name()).await;
    check_nothing_was_left(&ns, &machines, &ledger, &machine).await;
    let (states, _) = life(&machines, &machine).await;
    let time =
        |machine: &Machine| machine.metadata.deletion_timestamp.as_ref().map(|mark| mark.0.as_second());
    let mark = states.iter().find_map(time).expect("it was marked");
    // The end of another Machine dates that of this one.
    assert!(mapi_api::Timestamp::now().as_second() - mark >= 30);
}
