//! Which Machines are drained, and when their Node may be cordoned.

use super::*;

// D01, D02, D08
#[test]
fn only_a_machine_that_is_being_deleted_and_says_so_is_drained() {
    let drained = json!([{"type": "Drained", "status": "True", "message": "kept"}]);
    let rows = [
        json!({"metadata": {"deletionTimestamp": null}, "status": {"phase": "Running"}}),
        json!({"metadata": {"deletionTimestamp": null}, "status": {"phase": "Failed"}}),
        json!({"metadata": {"deletionTimestamp": null}, "status": {"phase": "Provisioning"}}),
        json!({"metadata": {"deletionTimestamp": null}, "status": {"phase": "Provisioned"}}),
        json!({"metadata": {"deletionTimestamp": null}, "status": {"phase": "Deleting"}}),
        json!({"status": {"phase": "Running"}}),
        json!({"status": {"phase": null}}),
        json!({"status": {"conditions": drained}}),
    ];
    for change in rows {
        let mut world = World::new(change.clone());
        let before = world.drained();
        let round = world.round();
        assert_eq!(
            (round.events, round.requeue, world.drained()),
            (vec![], Requeue::Never, before),
            "{change}"
        );
    }
}

// D03
#[test]
fn a_pre_drain_hook_blocks_and_says_so_once_a_hook() {
    let hooks = |names: &[&str]| {
        let list: Vec<_> = names.iter().map(|name| json!({"name": name, "owner": "o"})).collect();
        json!({"preDrain": list})
    };
    let mut world = World::with_pods(&["a"]);
    world.machine["spec"]["lifecycleHooks"] = hooks(&["x"]);
    let round = world.round();
    assert_eq!(round.events, ["DrainBlocked: Drain blocked by pre-drain hook"]);
    assert_eq!(
        (round.requeue, world.drained().as_str(), world.is_cordoned()),
        (Requeue::Never, "none", false)
    );
    assert_eq!(world.round().events, [""; 0]);
    world.machine["spec"]["lifecycleHooks"] = hooks(&["x", "y"]);
    assert_eq!(world.round().events.len(), 1);
    world.machine["spec"]["lifecycleHooks"] = json!({});
    assert_eq!(world.round().evicted, ["a"], "I16: only now");
}

// D04, D05, D06, D07
#[test]
fn without_a_node_or_when_told_to_the_drain_is_skipped_whatever_hooks_there_are() {
    let hook = json!({"lifecycleHooks": {"preDrain": [{"name": "x", "owner": "o"}]}});
    let exclude = |value: &str| json!({"machine.openshift.io/exclude-node-draining": value});
    let rows = [
        json!({"status": {"nodeRef": null}}),
        json!({"status": {"nodeRef": null}, "spec": hook}),
        json!({"metadata": {"annotations": exclude("")}}),
        json!({"metadata": {"annotations": exclude("false")}, "spec": hook}),
    ];
    for change in rows {
        let mut world = World::new(change.clone());
        let round = world.round();
        assert_eq!(round.events, ["DrainSkipped: Node drain skipped"], "{change}");
        assert_eq!((world.drained().as_str(), world.is_cordoned()), ("True Node drain skipped", false));
    }
}

// D09
#[test]
fn a_node_that_is_gone_is_drained() {
    let mut world = World::with_pods(&["a"]);
    world.node = Look::Gone;
    let round = world.round();
    assert_eq!(round.events, ["DrainProceeds: Node drain proceeds", "DrainSucceeded: Node drain succeeded"]);
    assert_eq!((world.drained().as_str(), round.evicted), ("True Drain finished successfully", vec![]));
}

#[test]
fn a_node_that_only_bears_the_name_is_left_alone() {
    let mut world = World::with_pods(&["a"]);
    world.set_node(json!({"metadata": {"uid": "other"}}));
    let round = world.round();
    assert_eq!((round.evicted, world.is_cordoned()), (vec![], false), "I19");
    assert_eq!(world.drained(), "True Drain finished successfully");
}

// D10
#[test]
fn a_worker_is_cordoned_its_pods_are_evicted_and_each_step_is_told_once() {
    let mut world = World::with_pods(&["b", "a"]);
    let round = world.round();
    assert_eq!(round.events, ["DrainProceeds: Node drain proceeds"]);
    assert_eq!((world.is_cordoned(), round.evicted), (true, vec!["a".into(), "b".into()]));
    assert_eq!(world.drained(), "none");
    assert!(world.pass(3).round().evicted.is_empty(), "what ends is not evicted again");
    world.pods.clear();
    let last = world.round();
    assert_eq!(last.events, ["Deleted: Node \"n\" drained", "DrainSucceeded: Node drain succeeded"]);
    assert_eq!(
        (world.drained().as_str(), last.requeue),
        ("True Drain finished successfully", Requeue::Never)
    );
}

fn control_plane(label: &str) -> World {
    let mut world = World::with_pods(&["a"]);
    world.set_node(json!({"metadata": {"labels": {label: ""}}}));
    world
}

fn peer(is_cordoned: bool, is_leaving: bool) -> Peer {
    Peer { name: "other".into(), is_cordoned, is_leaving }
}

const ROLES: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

// D11, D12, D13, D14
#[test]
fn one_control_plane_node_is_drained_at_a_time_and_workers_do_not_count() {
    let mut worker = World::with_pods(&["a"]);
    worker.peers = Ok(vec![peer(true, true)]);
    assert_eq!(worker.round().evicted, ["a"], "a worker");

    for role in ROLES {
        let mut alone = control_plane(role);
        alone.peers = Ok(vec![peer(false, false), peer(false, true)]);
        assert_eq!(alone.round().evicted, ["a"], "no other is cordoned");

        let mut contended = control_plane(role);
        contended.peers = Ok(vec![peer(true, true)]);
        let round = contended.round();
        assert_eq!(
            (round.requeue, round.evicted, contended.is_cordoned()),
            (seconds(20), vec![], false),
            "{role}"
        );
        assert_eq!(
            contended.drained(),
            "False Warning DrainError could not drain machine: drain not permitted: control-plane node `other` is \
             being drained"
        );

        let mut resumed = control_plane(role);
        resumed.set_node(json!({"spec": {"unschedulable": true}}));
        resumed.peers = Ok(vec![peer(true, true)]);
        assert_eq!(resumed.round().evicted, ["a"], "cordoned already");
    }
}

#[test]
fn a_control_plane_node_that_an_admin_cordoned_blocks_no_other() {
    let mut world = control_plane(ROLES[0]);
    world.peers = Ok(vec![peer(true, false)]);
    assert_eq!(world.round().evicted, ["a"], "item 29");
}

#[test]
fn a_list_of_control_plane_nodes_that_fails_lets_nothing_through() {
    let mut world = control_plane(ROLES[0]);
    world.peers = Err("no answer".into());
    let round = world.round();
    assert!(round.evicted.is_empty() && !world.is_cordoned());
    assert!(matches!(round.requeue, Requeue::Backoff(_)));
}

// D16
#[test]
fn a_node_that_cannot_be_cordoned_is_tried_again_after_20_s() {
    let mut world = World::with_pods(&["a"]);
    world.cordon_error = Some("forbidden".into());
    let round = world.round();
    assert_eq!((round.requeue, round.evicted), (seconds(20), vec![]));
    assert_eq!(
        world.drained(),
        "False Warning DrainError could not drain machine: unable to cordon node `n`: forbidden"
    );
    world.cordon_error = None;
    assert_eq!(world.pass(20).round().evicted, ["a"]);
}

// D22
#[test]
fn a_refused_status_patch_is_repeated_in_the_next_round() {
    let mut world = World::new(json!({}));
    world.is_status_refused = true;
    let round = world.round();
    assert!(round.failed && world.drained() == "none");
    assert_eq!(round.events, ["DrainProceeds: Node drain proceeds"], "success is told once it is written");
    world.is_status_refused = false;
    world.round();
    assert_eq!(world.drained(), "True Drain finished successfully");
}

// D23
#[test]
fn a_machine_of_cluster_api_is_not_drained() {
    let paused = json!([{"type": "Paused", "status": "True"}]);
    let rows = [
        json!({"status": {"authoritativeAPI": "ClusterAPI"}}),
        json!({"status": {"authoritativeAPI": "Migrating"}}),
        json!({"status": {"authoritativeAPI": "MachineAPI", "conditions": paused}}),
    ];
    for change in rows {
        let mut world = World { is_gate_on: true, ..World::with_pods(&["a"]) };
        json_patch::merge(&mut world.machine, &change);
        let round = world.round();
        assert!(
            round.events.is_empty() && round.evicted.is_empty() && !world.is_cordoned(),
            "item 26: {change}"
        );
    }
}

#[test]
fn a_node_that_cannot_be_read_is_told_and_tried_again() {
    let mut world = World::with_pods(&["a"]);
    world.node = Look::Failed("no answer".into());
    let round = world.round();
    assert_eq!(round.requeue, Requeue::Backoff("unable to get node `n`: no answer".into()));
    assert!(world.drained().ends_with("unable to get node `n`: no answer"), "I13");
}

#[test]
fn pods_that_cannot_be_listed_are_not_taken_to_be_gone() {
    let mut world = World::with_pods(&["a"]);
    world.list_error = Some("no answer".into());
    let round = world.round();
    assert!(matches!(round.requeue, Requeue::Backoff(_)), "I15");
    assert!(world.drained().ends_with("unable to list the pods of node `n`: no answer"));
}
