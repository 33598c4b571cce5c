//! Machines whose ownership moves between the Machine API and Cluster API, under the feature gate `MachineAPIMigration`.

use e2e::{Change, Draft, Machine, Ns, Object, Options, Recording, SimulatedInstance, World};
use mapi_api::{
    Conditions,
    names::{condition, finalizer},
};
use serde_json::json;

async fn world() -> World {
    World::shared(Options { migration: true, ..Options::default() }).await
}

/// A Machine that Cluster API shall own.
fn theirs(draft: Draft<Machine>) -> Draft<Machine> {
    draft.machine_spec(json!({"authoritativeAPI": "ClusterAPI"}))
}

/// Moves a Machine to another owner, as the controller of the migration does.
async fn hand_over(ns: &Ns, machine: &Machine, owner: &str) {
    ns.patch_status::<Machine>(machine.name(), json!({ "authoritativeAPI": owner })).await;
}

/// Status, severity, reason and message of condition Paused.
fn paused(machine: &Machine) -> Option<[&str; 4]> {
    let paused = machine.status.conditions.find(condition::PAUSED)?;
    Some([&paused.status.0, &paused.severity, &paused.reason, &paused.message])
}

/// Waits until a Machine says who owns it.
async fn wait_owned(ns: &Ns, machine: &Machine, owner: &str) -> Machine {
    let text = format!("The AuthoritativeAPI status is set to '{owner}'");
    let expected = match owner {
        "MachineAPI" => ["False", "Info", "AuthoritativeAPIMachineAPI", &text],
        _ => ["True", "", "AuthoritativeAPINotMachineAPI", &text],
    };
    ns.wait_machine(machine.name(), |machine| paused(machine) == Some(expected)).await
}

async fn running(ns: &Ns, draft: Draft<Machine>) -> Machine {
    let machine = draft.create().await;
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await
}

/// A Machine of ours runs and goes: whatever the controllers had to do before is done by then.
async fn let_others_work(ns: &Ns, short: &str) {
    let other = running(ns, ns.machine(short)).await;
    ns.delete::<Machine>(other.name()).await;
    ns.wait_gone::<Machine>(other.name()).await;
}

/// Whether an instance was ever made for a Machine.
fn was_made(ledger: &Recording<SimulatedInstance>, machine: &Machine) -> bool {
    ledger.changes().iter().any(|change| change.object().spec.machine_ref.uid == machine.uid())
}

// M41, M42, M43, M44
#[tokio::test]
async fn a_machine_of_cluster_api_is_let_be_until_it_comes_back() {
    let ns = world().await.namespace("theirs").await;
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let machine = theirs(ns.machine("m")).create().await;
    wait_owned(&ns, &machine, "ClusterAPI").await;
    let_others_work(&ns, "first").await;
    hand_over(&ns, &machine, "Migrating").await;
    wait_owned(&ns, &machine, "Migrating").await;
    let_others_work(&ns, "second").await;
    let waiting = ns.get::<Machine>(machine.name()).await;
    assert!(!waiting.has_finalizer(finalizer::MACHINE) && !was_made(&ledger, &machine));
    assert_eq!((waiting.phase(), waiting.status.conditions.len()), ("", 1), "nothing but Paused is said");

    hand_over(&ns, &machine, "MachineAPI").await;
    let ours = ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
    assert_eq!(ours.provider_id().is_some(), was_made(&ledger, &machine));
    wait_owned(&ns, &machine, "MachineAPI").await;

    let is_it = |change: &&Change<Machine>| change.object().uid() == machine.uid();
    let is_over = |changes: &[Change<Machine>]| {
        changes.iter().filter(is_it).any(|change| change.object().phase() == "Running")
    };
    let changes = machines.until(is_over).await;
    let states: Vec<&Machine> = changes.iter().filter(is_it).map(Change::object).collect();
    let first = states.iter().find(|machine| machine.status.authoritative_api.is_some()).unwrap();
    assert_eq!((first.status.conditions.len(), paused(first)), (0, None), "the owner is recorded first");
    let paused: Vec<&str> = states.iter().filter_map(|machine| Some(paused(machine)?[0])).collect();
    let back = paused.iter().position(|status| *status == "False").unwrap();
    assert!(paused[..back].iter().all(|status| *status == "True"), "{paused:?}");
    assert!(paused[back..].iter().all(|status| *status == "False"), "{paused:?}");
}

// M47
#[tokio::test]
async fn a_machine_that_is_handed_over_is_not_removed_before_it_comes_back() {
    let ns = world().await.namespace("paused").await;
    let machine = running(&ns, ns.machine("m")).await;
    hand_over(&ns, &machine, "Migrating").await;
    let before = wait_owned(&ns, &machine, "Migrating").await;
    ns.delete::<Machine>(machine.name()).await;
    let_others_work(&ns, "other").await;
    let after = ns.get::<Machine>(machine.name()).await;
    assert!(after.is_deleting() && after.has_finalizer(finalizer::MACHINE));
    assert_eq!(after.status, before.status);
    let instances = ns.list::<SimulatedInstance>().await;
    assert_eq!(instances.iter().filter(|instance| !instance.is_deleting()).count(), 1);

    hand_over(&ns, &machine, "MachineAPI").await;
    ns.wait_nothing_left().await;
}

// M57
#[tokio::test]
async fn a_failed_machine_keeps_its_error_when_its_owner_changes() {
    let ns = world().await.namespace("failed").await;
    let fault = json!([{"kind": "CreateError", "args": {"class": "InvalidConfiguration"}}]);
    let machine = ns.machine("m").faults(fault).create().await;
    let failed = ns.wait_machine(machine.name(), |machine| machine.phase() == "Failed").await;
    let error = |machine: &Machine| {
        let status = machine.status.clone();
        (status.phase, status.error_reason, status.error_message)
    };
    assert!(failed.has_error());
    for owner in ["Migrating", "ClusterAPI", "Migrating", "MachineAPI"] {
        hand_over(&ns, &machine, owner).await;
        let now = wait_owned(&ns, &machine, owner).await;
        assert_eq!(error(&now), error(&failed), "{owner}");
    }
}

// M46
#[tokio::test]
async fn with_the_gate_off_the_owner_means_nothing() {
    let arguments = vec!["--feature-gates=MachineAPIMigration=false".to_owned()];
    let world = World::own(Options { migration: true, arguments, ..Options::default() }).await;
    let ns = world.namespace("off").await;
    let machine = theirs(ns.machine("m")).create().await;
    hand_over(&ns, &machine, "ClusterAPI").await;
    let machine = ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
    assert_eq!((paused(&machine), machine.status.authoritative_api.as_deref()), (None, Some("ClusterAPI")));
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
}
