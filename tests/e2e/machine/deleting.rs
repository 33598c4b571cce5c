//! From the deletion mark to the end: what goes in which order, and what holds it.

use e2e::{Machine, Object, SimulatedInstance};
use mapi_api::{
    Timestamp,
    names::{annotation, condition},
};
use serde_json::json;

use crate::{
    condition, finalizers, instance, instances_of, is_held, let_others_work, life, provisioned, running,
    state, world,
};

// M25
#[tokio::test]
async fn a_machine_stays_and_says_what_its_instance_does_until_that_is_gone() {
    let ns = world().await.namespace("stuck").await;
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let machine = running(&ns, ns.machine("m").faults(json!([{"kind": "DeleteStuck"}]))).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_machine(machine.name(), |machine| state(machine) == "Terminating").await;
    let_others_work(&ns, "other").await;
    let held = ns.get::<Machine>(machine.name()).await;
    assert_eq!((held.phase(), is_held(&held)), ("Deleting", true));
    assert_eq!(condition(&held, condition::INSTANCE_EXISTS), "True");
    let columns = ns.kubectl(&["get", "machine", machine.name(), "-o", "wide"]).await;
    let row = columns.table()[1].concat();
    assert!(row.contains("Deleting") && row.ends_with("Terminating"), "{row}");

    // Somebody mends it at the cloud.
    let mended = json!({"spec": {"faults": []}});
    ns.patch::<SimulatedInstance>(instance(&ns, &machine).await.name(), mended).await;
    ns.wait_nothing_left().await;
    let (_, end) = life(&machines, &machine).await;
    let spans = instances_of(&ledger, &machine).await;
    assert!(spans.len() == 1 && spans[0].1 < end, "it went at {end}, its instance at {spans:?}");
    assert_eq!(ns.wait_event(machine.name(), "Delete").await.len(), 1);
}

// M26
#[tokio::test]
async fn the_finalizers_of_others_stay_in_their_order() {
    let ns = world().await.namespace("others").await;
    let before = json!({"metadata": {"finalizers": ["e2e.test/a"]}});
    let machine = running(&ns, ns.machine("m").with(before)).await;
    let all = [finalizers(&machine), vec!["e2e.test/b"]].concat();
    ns.patch::<Machine>(machine.name(), json!({"metadata": {"finalizers": all}})).await;
    ns.delete::<Machine>(machine.name()).await;
    let left = ns.wait_machine(machine.name(), |machine| !is_held(machine)).await;
    assert_eq!((finalizers(&left), left.phase()), (vec!["e2e.test/a", "e2e.test/b"], "Deleting"));
    assert_eq!(ns.list::<SimulatedInstance>().await.len(), 0);
    let_others_work(&ns, "other").await;
    assert_eq!(ns.get::<Machine>(machine.name()).await.version(), left.version(), "nothing more is written");
    ns.patch::<Machine>(machine.name(), json!({"metadata": {"finalizers": null}})).await;
    ns.wait_nothing_left().await;
}

// M36
#[tokio::test]
async fn a_machine_that_is_not_ours_to_hold_only_says_that_it_is_deleted() {
    let ns = world().await.namespace("not-held").await;
    let others = json!({"metadata": {"finalizers": ["e2e.test/a"]}});
    // Without its label it never gets the finalizer.
    let machine = ns.machine("m").with(others).without("/metadata/labels").create().await;
    ns.wait_machine(machine.name(), |m| !condition(m, condition::SPEC_VALID).is_empty()).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Deleting").await;
    let_others_work(&ns, "other").await;
    let left = ns.get::<Machine>(machine.name()).await;
    assert_eq!(finalizers(&left), ["e2e.test/a"]);
    assert_eq!(condition(&left, condition::INSTANCE_EXISTS), "");
    ns.patch::<Machine>(machine.name(), json!({"metadata": {"finalizers": null}})).await;
    ns.wait_nothing_left().await;
}

// M34
#[tokio::test]
async fn a_removal_that_has_to_wait_goes_on_by_itself_and_not_before() {
    let ns = world().await.namespace("timeout").await;
    let ledger = ns.record::<SimulatedInstance>().await;
    let machine = provisioned(&ns, ns.machine("m")).await;
    let start = Timestamp::now().as_second() + 4;
    let timeout = json!({"metadata": {"annotations": {annotation::DELETION_TIMEOUT: start.to_string()}}});
    ns.patch::<Machine>(machine.name(), timeout).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
    let changes = ledger.changes();
    let marks = changes.iter().filter_map(|change| change.object().metadata.deletion_timestamp.as_ref());
    let marks: Vec<i64> = marks.map(|mark| mark.0.as_second()).collect();
    assert!(!marks.is_empty() && marks.iter().all(|mark| *mark >= start), "{marks:?} and {start}");
}
