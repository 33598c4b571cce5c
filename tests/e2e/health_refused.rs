//! Health checks whose writes the server refuses. Here the controllers may delete Machines and write the status of checks
//! only where a test allows it.

use e2e::{Draft, Machine, MachineHealthCheck, Ns, Object, Options, World};
use k8s_openapi::api::{core::v1::ConfigMap, rbac::v1::ClusterRole};
use mapi_api::{Conditions, Timestamp, condition::whole_seconds, names::condition};
use serde_json::json;

/// What is refused: a resource and a verb of it.
const DELETE_MACHINES: (&str, &str) = ("machines", "delete");
const WRITE_STATUS: (&str, &str) = ("machinehealthchecks/status", "patch");

async fn world() -> World {
    const ROLE: &str = "machine-api-controllers-namespaced";
    let world = World::shared(Options::default()).await;
    let mut rules = world.cluster().get::<ClusterRole>(ROLE).await.rules.unwrap_or_default();
    for rule in &mut rules {
        for (resource, verb) in [DELETE_MACHINES, WRITE_STATUS] {
            if rule.resources.iter().flatten().any(|name| name == resource) {
                rule.verbs.retain(|allowed| allowed != verb);
            }
        }
    }
    rules.retain(|rule| !rule.verbs.is_empty());
    world.cluster().patch::<ClusterRole>(ROLE, json!({ "rules": rules })).await;
    world
}

/// Allows in a namespace what is refused elsewhere.
async fn allow(ns: &Ns, (resource, verb): (&str, &str)) {
    let group = "rbac.authorization.k8s.io";
    let name = resource.replace('/', "-");
    let rule = json!({"apiGroups": ["machine.openshift.io"], "resources": [resource], "verbs": [verb]});
    let account = json!({
        "kind": "ServiceAccount", "name": "machine-api-controllers", "namespace": "openshift-machine-api",
    });
    let api_version = format!("{group}/v1");
    let metadata = json!({ "name": name });
    ns.apply(json!({"apiVersion": api_version, "kind": "Role", "metadata": metadata, "rules": [rule]})).await;
    ns.apply(json!({
        "apiVersion": api_version, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name}, "subjects": [account],
    }))
    .await;
}

/// Makes running Machines that nobody replaces and whose Nodes are sick.
async fn sick(ns: &Ns, shorts: &[&str]) {
    ns.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})).await;
    let uid = ns.get::<ConfigMap>("owner").await.metadata.uid;
    let owner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": true});
    for short in shorts {
        ns.machine(short).with(json!({"metadata": {"ownerReferences": [owner]}})).create().await;
    }
    ns.wait_running(shorts.len()).await;
    let since = whole_seconds(Timestamp::from_second(Timestamp::now().as_second() - 3600).expect("a time"));
    let conditions = json!([
        {"type": "Ready", "status": "True"},
        {"type": "Broken", "status": "True", "lastTransitionTime": since},
    ]);
    for short in shorts {
        let status = json!({ "conditions": conditions });
        ns.world().cluster().patch_status::<e2e::Node>(&ns.full(short), status).await;
    }
}

fn check(ns: &Ns) -> Draft<MachineHealthCheck> {
    ns.health_check("check").unhealthy("Broken", "True", "300s")
}

// H33
#[tokio::test]
async fn a_deletion_that_fails_is_told_and_tried_again_and_the_others_are_tried_too() {
    let ns = world().await.namespace("no-delete").await;
    allow(&ns, WRITE_STATUS).await;
    sick(&ns, &["a", "b"]).await;
    let check = check(&ns).create().await;
    for short in ["a", "b"] {
        let events = ns.wait_event(&ns.full(short), "MachineDeletionFailed").await;
        let note = events[0].note.as_deref().unwrap_or_default();
        assert!(note.contains(check.name()) && note.contains("could not be deleted"), "{note}");
        assert!(!ns.get::<Machine>(&ns.full(short)).await.is_deleting());
    }
    allow(&ns, DELETE_MACHINES).await;
    for short in ["a", "b"] {
        ns.wait_gone::<Machine>(&ns.full(short)).await;
    }
}

// H37
#[tokio::test]
async fn a_check_whose_status_cannot_be_written_repairs_nothing() {
    let world = world().await;
    let (ns, open) = (world.namespace("no-status").await, world.namespace("open").await);
    for refused in [DELETE_MACHINES, WRITE_STATUS] {
        allow(&open, refused).await;
    }
    allow(&ns, DELETE_MACHINES).await;
    let machines = ns.record::<Machine>().await;
    sick(&ns, &["m"]).await;
    check(&ns).create().await;
    // What came later elsewhere is repaired first.
    sick(&open, &["m"]).await;
    check(&open).create().await;
    open.wait_gone::<Machine>(&open.full("m")).await;
    assert!(machines.changes().iter().all(|change| change.now().is_some_and(|m| !m.is_deleting())));

    allow(&ns, WRITE_STATUS).await;
    ns.wait_gone::<Machine>(&ns.full("m")).await;
    let is_told =
        |check: &MachineHealthCheck| check.status.conditions.is_true(condition::REMEDIATION_ALLOWED);
    ns.wait_check(&ns.full("check"), is_told).await;
}
