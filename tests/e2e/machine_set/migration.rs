//! Sets that Cluster API owns, under the feature gate `MachineAPIMigration`.

use e2e::{Change, Machine, MachineSet, Object, Options, World};
use mapi_api::{Conditions, names::condition};
use serde_json::json;

use crate::{let_others_work, of};

/// Status, severity, reason and message of condition Paused.
fn paused(set: &MachineSet) -> Option<[&str; 4]> {
    let paused = set.status.conditions.find(condition::PAUSED)?;
    Some([&paused.status.0, &paused.severity, &paused.reason, &paused.message])
}

// S38
#[tokio::test]
async fn a_set_of_cluster_api_makes_no_machines_until_it_comes_back() {
    let world = World::own(Options { migration: true, ..Options::default() }).await;
    let ns = world.namespace("migrate").await;
    let theirs = json!({"spec": {"authoritativeAPI": "ClusterAPI"}});
    let set = ns.machine_set("a").replicas(2).with(theirs).create().await;
    let record = ns.record::<MachineSet>().await;
    let text = |owner: &str| format!("The AuthoritativeAPI status is set to '{owner}'");
    let is_paused = |set: &MachineSet, owner: &str| {
        set.status.authoritative_api.as_deref() == Some(owner)
            && paused(set) == Some(["True", "", "AuthoritativeAPINotMachineAPI", &text(owner)])
    };
    ns.wait_set(set.name(), |set| is_paused(set, "ClusterAPI")).await;
    ns.patch_status::<MachineSet>(set.name(), json!({"authoritativeAPI": "Migrating"})).await;
    ns.wait_set(set.name(), |set| is_paused(set, "Migrating")).await;

    // A set of ours, beside it.
    let_others_work(&ns).await;
    assert!(of(&set, &ns.list::<Machine>().await).is_empty());
    let still = ns.get::<MachineSet>(set.name()).await;
    assert_eq!((still.status.replicas, still.metadata.annotations), (None, None), "nothing else is said");

    ns.patch_status::<MachineSet>(set.name(), json!({"authoritativeAPI": "MachineAPI"})).await;
    let ours = ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(2)).await;
    let expected = ["False", "Info", "AuthoritativeAPIMachineAPI", &text("MachineAPI")];
    assert_eq!(paused(&ours), Some(expected));
    assert_eq!(of(&set, &ns.list::<Machine>().await).len(), 2);

    // It was paused without a gap.
    let changes = record.until(|changes| {
        changes.iter().filter_map(Change::now).any(|set| set.status.ready_replicas == Some(2))
    });
    let ours = |change: &&Change<MachineSet>| change.object().name() == set.name();
    let changes = changes.await;
    let states: Vec<&str> =
        changes.iter().filter(ours).filter_map(|change| Some(paused(change.object())?[0])).collect();
    let first_false = states.iter().position(|state| *state == "False").unwrap();
    assert!(states[..first_false].iter().all(|state| *state == "True"), "{states:?}");
    assert!(states[first_false..].iter().all(|state| *state == "False"), "{states:?}");
}
