//! The number of a set's Machines.

use std::{collections::BTreeSet, time::Duration};

use e2e::{Machine, MachineSet, Object};
use k8s_openapi::api::core::v1::ResourceQuota;
use mapi_api::{Conditions, names};
use serde_json::json;

use crate::{ever, let_others_work, resize, uids, world};

/// The quota of Machines of a namespace, as an administrator sets it.
const MACHINES: &str = "count/machines.machine.openshift.io";

// S05
#[tokio::test]
async fn a_set_without_a_number_gets_one_machine() {
    let ns = world().await.namespace("default").await;
    let set = ns.machine_set("a").without("/spec/replicas").create().await;
    ns.wait_running(1).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(1)).await;
}

// S16, S18
#[tokio::test]
async fn shrinking_removes_what_is_too_much_and_nothing_else() {
    let ns = world().await.namespace("shrink").await;
    let set = ns.machine_set("a").replicas(3).create().await;
    let all = uids(&ns.wait_running(3).await);
    let record = ns.record::<Machine>().await;

    // The same number again is no reason to do anything.
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": 3, "minReadySeconds": 0}})).await;
    ns.wait_set(set.name(), |set| set.status.observed_generation == set.metadata.generation).await;
    assert_eq!(uids(&ns.list::<Machine>().await), all);

    resize(&ns, &set, 1).await;
    let left = ns.wait_running(1).await.remove(0);
    ns.wait_set(set.name(), |set| set.status.replicas == Some(1)).await;
    let_others_work(&ns).await;
    assert!(!ns.get::<Machine>(left.name()).await.is_deleting(), "the one that stays stays");
    let deleted = record.changes().iter().filter(|change| change.now().is_none()).count();
    assert_eq!(deleted, 2);

    resize(&ns, &set, 0).await;
    ns.wait_gone::<Machine>(left.name()).await;
    ns.wait_set(set.name(), |set| set.status.replicas == Some(0)).await;
}

#[tokio::test]
async fn the_last_of_many_wishes_is_what_counts() {
    let ns = world().await.namespace("wishes").await;
    let set = ns.machine_set("a").create().await;
    for replicas in [7, 2, 9, 0, 5, 1, 6, 3] {
        resize(&ns, &set, replicas).await;
    }
    ns.wait_running(3).await;
    let set = ns
        .wait_set(set.name(), |set| {
            let status = &set.status;
            status.observed_generation == set.metadata.generation && status.available_replicas == Some(3)
        })
        .await;
    assert_eq!((set.status.replicas, set.status.ready_replicas), (Some(3), Some(3)));
}

// S14
#[tokio::test]
async fn machines_that_the_server_refuses_are_told_and_made_once_it_accepts_them() {
    let ns = world().await.namespace("quota").await;
    let quota = |count: &str| {
        json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few"}, "spec": {"hard": {(MACHINES): count}}})
    };
    ns.apply(quota("3")).await;
    let is_counted = |quota: &ResourceQuota| {
        let hard = quota.status.as_ref().and_then(|status| status.hard.as_ref());
        hard.is_some_and(|hard| hard.contains_key(MACHINES))
    };
    ns.wait("few", is_counted).await;
    let record = ns.record::<Machine>().await;

    let set = ns.machine_set("a").replicas(6).create().await;
    let type_ = names::condition::MACHINES_CREATED;
    let refused = ns.wait_set(set.name(), |set| set.status.conditions.is_false(type_)).await;
    let condition = refused.status.conditions.find(type_).unwrap();
    assert_eq!((condition.reason.as_str(), condition.severity.as_str()), ("SyncError", "Warning"));
    for part in [&ns.full("a-*"), "exceeded quota: few", MACHINES] {
        assert!(condition.message.contains(part), "no `{part}` in `{}`", condition.message);
    }
    let events = ns.wait_event(set.name(), "ReconcileError").await;
    let note = events[0].note.as_deref().unwrap_or_default();
    assert!(note.starts_with("failed to sync machines: "), "{note}");
    ns.wait_running(3).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(3)).await;

    ns.apply(quota("100")).await;
    let machines = ns.wait_running(6).await;
    ns.wait_set(set.name(), |set| {
        set.status.conditions.is_true(type_) && set.status.ready_replicas == Some(6)
    })
    .await;
    assert_eq!(ever(&record.changes()), uids(&machines), "each was made once");
}

// S41
#[tokio::test]
async fn five_hundred_machines_are_made_once_each() {
    let ns = world().await.namespace("burst").await.patient(Duration::from_secs(180));
    let record = ns.record::<Machine>().await;
    // Of a kind that no cloud serves, so that this is about the set alone.
    let draft = ns.machine_set("a").provider(json!({"kind": "NobodyServesThis"}));
    let set = draft.create().await;
    resize(&ns, &set, 500).await;
    ns.wait_set(set.name(), |set| set.status.replicas == Some(500)).await;
    let_others_work(&ns).await;

    let machines = ns.list::<Machine>().await;
    let burst: Vec<&Machine> =
        machines.iter().filter(|machine| machine.name().starts_with(set.name())).collect();
    assert_eq!(burst.len(), 500);
    assert!(burst.iter().all(|machine| !machine.is_deleting()));
    let names: BTreeSet<&str> = burst.iter().map(|machine| machine.name()).collect();
    assert_eq!(names.len(), 500);
    assert_eq!(ever(&record.changes()).len(), machines.len(), "none came and went");
}

// S37
#[tokio::test]
async fn a_status_that_others_write_around_still_ends_true() {
    let ns = world().await.namespace("busy").await;
    let set = ns.machine_set("a").create().await;
    let writes = async {
        for round in 0..60 {
            let note = json!({"metadata": {"annotations": {"example.com/round": round.to_string()}}});
            ns.patch::<MachineSet>(set.name(), note).await;
        }
    };
    tokio::join!(resize(&ns, &set, 10), writes);
    let set = ns.wait_set(set.name(), |set| set.status.available_replicas == Some(10)).await;
    let status = &set.status;
    assert_eq!((status.replicas, status.ready_replicas), (Some(10), Some(10)));
    assert_eq!(status.fully_labeled_replicas, Some(10));
    assert_eq!(status.observed_generation, set.metadata.generation);
    assert_eq!(set.annotation("example.com/round"), Some("59"), "what others wrote stays");
}
