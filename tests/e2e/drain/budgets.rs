//! Deployments under real disruption budgets: a drain waits for them, says so, and ends when they allow it.

use std::collections::BTreeMap;

use e2e::{Change, Machine, Node, Object, pod_node, pod_phase};
use futures::future::join_all;
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use mapi_api::{
    Condition, Conditions, Timestamp,
    names::{condition, reason},
};
use serde_json::json;

use crate::{FINISHED, is_marked, refusals, said, told, wait_blocked, world};

// D10, D15: and the Machine says which budget, and since when.
#[tokio::test]
async fn a_drain_waits_for_a_budget_that_allows_nothing_and_ends_when_it_does() {
    let ns = world().await.namespace("web").await;
    ns.machine_set("set").replicas(2).create().await;
    ns.wait_running(2).await;
    let pods = ns.deploy("web", 4).await;
    ns.budget("web", json!({"minAvailable": 4})).await;
    let node = pod_node(&pods[0]).to_owned();
    let mut here: Vec<_> = pods.iter().filter(|pod| pod_node(pod) == node).collect();
    here.sort_by_key(|pod| pod.metadata.name.clone());
    let first_pod = here[0].metadata.name.as_deref().unwrap();
    let (machines, recording) = (ns.record::<Machine>().await, ns.record::<Pod>().await);
    let machine = ns.get::<Machine>(&node).await;
    ns.delete::<Machine>(machine.name()).await;

    let waiting = wait_blocked(&ns, &machine).await;
    let seen = Timestamp::now();
    let drained = waiting.status.conditions.find(condition::DRAINED).unwrap().clone();
    let expected = Condition::no(
        condition::DRAINED,
        "Warning",
        reason::DRAIN_ERROR,
        format!(
            "could not drain machine: disruption budget `{0}/web` does not allow the eviction of pod `{0}/{first_pod}`",
            ns.name()
        ),
    );
    assert!(drained.same_state(&expected), "{drained:?}");
    let refused = refusals(&ns, "pods", "eviction").remove(first_pod).expect("it was refused");
    let after_s = seen.duration_since(refused[0].answered).as_secs_f64();
    assert!(after_s < 10.0, "told after {after_s} s");
    let since = drained.last_transition_time.clone().unwrap().0;
    let late = since.duration_since(refused[0].received).as_secs_f64();
    assert!((-1.0..3.0).contains(&late), "since {since} is not the first refusal, {}", refused[0].received);

    // The set has another Machine already.
    ns.wait_nodes(|nodes| nodes.len() == 3 && nodes.iter().all(|node| Node::is_ready(node))).await;
    assert!(!ns.list::<Pod>().await.iter().any(is_marked), "nothing was evicted");

    ns.patch::<PodDisruptionBudget>("web", json!({"spec": {"minAvailable": 3}})).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    ns.wait_running(2).await;
    ns.wait_pods("web", |pods| {
        pods.len() == 4 && pods.iter().all(|pod| is_healthy(pod) && pod_node(pod) != node)
    })
    .await;
    let is_over = |changes: &[Change<Pod>]| healthy(changes, "web").last() == Some(&4);
    assert!(fewest(&recording.until(is_over).await, "web", 4) >= 3);

    let said = said(&machines, &machine).await;
    let last = said.last().unwrap();
    assert!(last.is_true() && last.message == FINISHED, "{last:?}");
    let same: Vec<_> = said.iter().filter(|one| one.same_state(&drained)).collect();
    assert_eq!(same, [&drained], "its time did not move while the cause was the same");
    let mut events = told(&ns, &machine, "DrainSucceeded").await;
    events.dedup();
    assert_eq!(events, ["DrainProceeds", "DrainRequeued", "Deleted", "DrainSucceeded"]);
    let requeued = ns.wait_event(machine.name(), "DrainRequeued").await;
    let text = drained.message.replace("could not drain machine", "Node drain requeued");
    assert!(requeued.iter().any(|event| event.note.as_ref() == Some(&text)), "{requeued:?}");
}

// D10, D15: all Machines of a set at once.
#[tokio::test]
async fn a_set_is_replaced_whole_under_two_deployments_that_are_never_short() {
    let ns = world().await.namespace("whole").await;
    let set = ns.machine_set("set").replicas(3).create().await;
    let old = ns.wait_running(3).await;
    ns.deploy("api", 4).await;
    ns.deploy("db", 2).await;
    ns.budget("api", json!({"maxUnavailable": 1})).await;
    ns.budget("db", json!({"minAvailable": "50%"})).await;
    let pods = ns.record::<Pod>().await;
    let machines = ns.record::<Machine>().await;
    join_all(old.iter().map(|machine| ns.delete::<Machine>(machine.name()))).await;
    for machine in &old {
        ns.wait_gone::<Machine>(machine.name()).await;
        let said = said(&machines, machine).await;
        assert!(said.last().is_some_and(|last| last.is_true() && last.message == FINISHED), "{said:?}");
    }
    ns.wait_running(3).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(3)).await;
    for (app, replicas, least) in [("api", 4, 3), ("db", 2, 1)] {
        let is_whole = |pods: &[&Pod]| pods.len() == replicas && pods.iter().all(|pod| is_healthy(pod));
        ns.wait_pods(app, is_whole).await;
        let is_over = |changes: &[Change<Pod>]| healthy(changes, app).last() == Some(&replicas);
        assert!(fewest(&pods.until(is_over).await, app, replicas) >= least, "{app}");
    }
}

/// As budgets count.
fn is_healthy(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True");
    is_ready && pod_phase(pod) == "Running" && !is_marked(pod)
}

/// How many pods of an app were healthy after each change.
fn healthy(changes: &[Change<Pod>], app: &str) -> Vec<usize> {
    let mut pods = BTreeMap::new();
    let is_ours = |change: &&Change<Pod>| {
        change
            .object()
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("app"))
            .is_some_and(|of| of == app)
    };
    let count = |change: &Change<Pod>| {
        pods.insert(change.object().metadata.uid.clone(), change.now().is_some_and(is_healthy));
        pods.values().filter(|is_healthy| **is_healthy).count()
    };
    changes.iter().filter(is_ours).map(count).collect()
}

/// The fewest healthy pods at any time after they were complete.
fn fewest(changes: &[Change<Pod>], app: &str, complete: usize) -> usize {
    let counts = healthy(changes, app).into_iter();
    counts.skip_while(|count| *count < complete).min().expect("they were complete once")
}
