//! Drains that the API server does not let through, or that are not ours.

use e2e::{Machine, Node, Ns, Object, Options, SimulatedInstance, World};
use k8s_openapi::api::{core::v1::Pod, rbac::v1::ClusterRole};
use kube::api::{Patch, PatchParams};
use mapi_api::{Conditions, names::condition};
use serde_json::{Value, json};

use crate::{
    FINISHED, FORBIDDEN, bind_running, blocked, evicting::daemon_set, is_marked, let_others_drain, refusals,
    running, said_in_words, told, wait_blocked, was_cordoned, world,
};

fn permit() -> Value {
    json!({"metadata": {"annotations": {FORBIDDEN: null}}})
}

// D16
#[tokio::test]
async fn a_node_that_cannot_be_cordoned_keeps_its_pods_and_is_tried_again() {
    let ns = world().await.namespace("no-cordon").await;
    let machines = ns.record::<Machine>().await;
    let draft = ns.machine("m").provider(json!({"nodeAnnotations": {FORBIDDEN: ""}}));
    let machine = running(&ns, draft).await;
    bind_running(&ns, &machine, "pod").await;
    let nodes = ns.world().cluster().api::<Node>();
    let patch = Patch::Merge(json!({"spec": {"unschedulable": true}}));
    let ours = nodes.patch(machine.name(), &PatchParams::default().dry_run(), &patch).await;
    let kube::Error::Api(words) = ours.expect_err("the server refuses it") else { panic!("no answer") };

    ns.delete::<Machine>(machine.name()).await;
    let told = wait_blocked(&ns, &machine).await;
    let text = blocked(&told).unwrap();
    let start = format!("could not drain machine: unable to cordon node `{}`: ", machine.name());
    assert_eq!(text.strip_prefix(&start), Some(&*words.message), "{text}");
    assert!(!is_marked(&ns.get::<Pod>("pod").await));

    ns.world().cluster().patch::<Node>(machine.name(), permit()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    let said = said_in_words(&machines, &machine).await;
    assert_eq!([&said[0], &said[said.len() - 1]], [&format!("False {text}"), &format!("True {FINISHED}")]);
}

/// Drains of others that one may take longer than. They take at least a moment each.
const ROUNDS: usize = 30;

// D22
#[tokio::test]
async fn a_result_that_cannot_be_written_is_written_later_and_the_instance_stays_until_then() {
    let ns = world().await.namespace("no-news").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m").annotation(FORBIDDEN, "")).await;
    bind_running(&ns, &machine, "pod").await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Pod>("pod").await;
    // The result is written once the drain knows that the pod is gone, which may be later than that of others.
    let is_tried = || refusals(&ns, "machines", "status").contains_key(machine.name());
    for _ in 0..ROUNDS {
        let_others_drain(&ns).await;
        if is_tried() {
            break;
        }
    }
    assert!(is_tried(), "it was never tried");
    let waiting = ns.get::<Machine>(machine.name()).await;
    assert_eq!(waiting.status.conditions.find(condition::DRAINED), None);
    assert_eq!(told(&ns, &machine, "DrainProceeds").await, ["DrainProceeds"]);
    let instances = ns.list::<SimulatedInstance>().await;
    assert!(instances.iter().any(|one| one.spec.node.name == machine.name() && !one.is_deleting()));

    ns.patch::<Machine>(machine.name(), permit()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    let mut events = told(&ns, &machine, "DrainSucceeded").await;
    events.dedup();
    assert_eq!(events, ["DrainProceeds", "Deleted", "DrainSucceeded"]);
}

// D19: here the controllers may not look at DaemonSets until they are allowed to.
#[tokio::test]
async fn nothing_is_evicted_before_it_is_known_which_pods_a_daemon_set_would_bring_back() {
    const ROLE: &str = "machine-api-controllers";
    let world = World::own(Options { scheduler: true, ..Options::default() }).await;
    let ns = world.namespace("unknown").await;
    let role = world.cluster().get::<ClusterRole>(ROLE).await;
    let is_about = |rule: &&k8s_openapi::api::rbac::v1::PolicyRule| {
        !rule.resources.iter().flatten().any(|resource| resource == "daemonsets")
    };
    let rules: Vec<_> = role.rules.iter().flatten().filter(is_about).collect();
    world.cluster().patch::<ClusterRole>(ROLE, json!({ "rules": rules })).await;

    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    daemon_set(&ns).await;
    bind_running(&ns, &machine, "pod").await;
    ns.delete::<Machine>(machine.name()).await;
    let told = wait_blocked(&ns, &machine).await;
    let text = blocked(&told).unwrap();
    let start = format!("could not drain machine: unable to get daemon set `{}/agent`: ", ns.name());
    assert!(text.starts_with(&start) && text.matches("agent").count() == 2, "{text}");
    assert!(!is_marked(&ns.get::<Pod>("pod").await));

    world.cluster().patch::<ClusterRole>(ROLE, json!({"rules": role.rules})).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    let said = said_in_words(&machines, &machine).await;
    assert_eq!([&said[0], &said[said.len() - 1]], [&format!("False {text}"), &format!("True {FINISHED}")]);
}

async fn belongs_to(ns: &Ns, machine: &Machine, owner: &str) {
    ns.patch::<Machine>(machine.name(), json!({"spec": {"authoritativeAPI": owner}})).await;
    ns.patch_status::<Machine>(machine.name(), json!({"authoritativeAPI": owner})).await;
}

// D23
#[tokio::test]
async fn a_machine_of_cluster_api_is_not_drained_until_it_comes_back() {
    let world = World::own(Options { migration: true, ..Options::default() }).await;
    let ns = world.namespace("theirs").await;
    let (machines, nodes) = (ns.record::<Machine>().await, world.cluster().record::<Node>().await);
    let machine = running(&ns, ns.machine("m")).await;
    bind_running(&ns, &machine, "pod").await;
    ns.patch_status::<Machine>(machine.name(), json!({"authoritativeAPI": "Migrating"})).await;
    belongs_to(&ns, &machine, "ClusterAPI").await;
    ns.wait_machine(machine.name(), |machine| machine.status.conditions.is_true(condition::PAUSED)).await;
    ns.delete::<Machine>(machine.name()).await;
    // As the migration mirrors it.
    ns.patch_status::<Machine>(machine.name(), json!({"phase": "Deleting"})).await;
    let other = let_others_drain(&ns).await;
    let theirs = ns.get::<Machine>(machine.name()).await;
    assert_eq!((theirs.phase(), theirs.status.conditions.find(condition::DRAINED)), ("Deleting", None));
    assert!(!was_cordoned(&nodes, &machine, &other).await);
    let events = ns.events(machine.name()).await;
    assert!(
        events.iter().all(|event| event.reason.as_deref().is_none_or(|reason| !reason.starts_with("Drain")))
    );

    ns.patch_status::<Machine>(machine.name(), json!({"authoritativeAPI": "Migrating"})).await;
    belongs_to(&ns, &machine, "MachineAPI").await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    assert_eq!(told(&ns, &machine, "DrainSucceeded").await, ["DrainProceeds", "Deleted", "DrainSucceeded"]);
}
