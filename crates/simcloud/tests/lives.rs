//! Whole lives of instances: each row is the timeline of what the far side did.

#![expect(clippy::unwrap_used, reason = "a test ends where its world is not what it says")]

mod life;

use expect_test::expect;
use life::{Life, START, cloud};
use mapi_api::{Node, Object, Timestamp};
use mapi_simcloud::node::{self, Readiness};
use serde_json::json;

#[test]
fn an_instant_life_takes_one_status_and_one_node() {
    let mut life = Life::new(json!({}), json!([]));
    life.run(60);
    life.mark();
    life.run(60).expect(expect![[r#"
        0: speaks, Running, register True
        60: falls silent, remove
    "#]]);
    assert!(life.node.is_none());
}

#[test]
fn a_life_in_a_cloud_goes_through_all_states() {
    let mut life = Life::new(cloud(), json!([]));
    life.run(100);
    life.mark();
    life.run(60).expect(expect![[r#"
        0: Pending
        20: Starting
        35: Running
        45: speaks, register False
        50: speaks, report True
        100: falls silent, Terminating
        110: remove
    "#]]);
}

// B12.27
#[test]
fn whoever_takes_over_later_comes_to_the_same_life() {
    let mut late = Life::new(cloud(), json!([]));
    late.now = Timestamp::from_second(START + 200).unwrap();
    late.look();
    let mut punctual = Life::new(cloud(), json!([]));
    punctual.run(200);
    let status = |life: &Life| life.instance.as_ref().unwrap().status.clone().unwrap();
    assert_eq!(status(&late), status(&punctual));
    late.expect(expect![[r#"
        200: speaks, Running, register True
    "#]]);
}

#[test]
fn a_stuck_instance_goes_on_when_the_fault_ends() {
    let mut life = Life::new(cloud(), json!([{ "kind": "StuckProvisioning", "duration": "60s" }]));
    life.run(120).expect(expect![[r#"
        0: Pending
        60: Starting
        75: Running
        85: speaks, register False
        90: speaks, report True
    "#]]);
    let args = json!({ "state": "Starting" });
    let mut life = Life::new(cloud(), json!([{ "kind": "StuckProvisioning", "args": args }]));
    life.run(3600).expect(expect![[r#"
        0: Pending
        20: Starting
    "#]]);
}

// B12.18
#[test]
fn an_instance_that_never_joins_runs_without_a_node() {
    let mut life = Life::new(cloud(), json!([{ "kind": "NeverJoin" }]));
    life.run(3600).expect(expect![[r#"
        0: Pending
        20: Starting
        35: Running
    "#]]);
}

// B12.3
#[test]
fn a_node_turns_not_ready_after_a_while_and_stays_so() {
    let mut life = Life::new(cloud(), json!([{ "kind": "NodeNotReady", "after": "40s" }]));
    life.run(3600).expect(expect![[r#"
        0: Pending
        20: Starting
        35: Running
        45: speaks, register False
        50: speaks, report True
        90: speaks, report False
    "#]]);
}

// B12.5
#[test]
fn a_node_flaps_with_its_periods() {
    let args = json!({ "ready": "5s", "notReady": "40s" });
    let mut life = Life::new(json!({}), json!([{ "kind": "NodeFlap", "args": args }]));
    life.run(100).expect(expect![[r#"
        0: speaks, Running, register True
        5: speaks, report False
        45: speaks, report True
        50: speaks, report False
        90: speaks, report True
        95: speaks, report False
    "#]]);
}

// B12.19
#[test]
fn a_silent_node_is_left_to_the_judgement_of_others_and_speaks_up_when_the_fault_ends() {
    let mut life =
        Life::new(json!({}), json!([{ "kind": "NodeUnknown", "after": "10s", "duration": "60s" }]));
    life.run(50);
    life.judge("Unknown");
    life.run(50).expect(expect![[r#"
        0: speaks, Running, register True
        10: falls silent
        70: speaks, report True and all else
    "#]]);
}

#[test]
fn an_outage_silences_the_nodes_of_its_zone_only() {
    for (zone, is_silent) in [("a", true), ("b", false)] {
        let fault = json!({ "kind": "ZoneOutage", "after": "10s", "args": { "zone": zone } });
        let mut life = Life::new(json!({}), json!([fault]));
        life.run(20);
        assert_eq!(life.pulse.is_none(), is_silent, "{zone}");
    }
}

// B12.32
#[test]
fn a_node_that_was_deleted_registers_again_with_another_uid() {
    let mut life = Life::new(json!({}), json!([]));
    life.run(10);
    life.node = None;
    life.run(10).expect(expect![[r#"
        0: speaks, Running, register True
        10: register True
    "#]]);
    assert_eq!(life.node.as_ref().map(|node| node.uid()), Some("n2"));
}

#[test]
fn the_fault_deletes_the_node_once_and_it_comes_back_unless_told_otherwise() {
    let mut life = Life::new(json!({}), json!([{ "kind": "NodeDeleted", "after": "30s" }]));
    life.run(600).expect(expect![[r#"
        0: speaks, Running, register True
        30: falls silent, delete node
        35: speaks, register True
    "#]]);
    let fault = json!({ "kind": "NodeDeleted", "after": "30s", "args": { "reRegister": false } });
    let mut life = Life::new(json!({}), json!([fault]));
    life.run(600).expect(expect![[r#"
        0: speaks, Running, register True
        30: falls silent, delete node
    "#]]);
}

#[test]
fn a_stopped_instance_keeps_its_node_and_starts_again_when_the_fault_ends() {
    let mut life =
        Life::new(cloud(), json!([{ "kind": "InstanceStopped", "after": "60s", "duration": "60s" }]));
    life.run(300).expect(expect![[r#"
        0: Pending
        20: Starting
        35: Running
        45: speaks, register False
        50: speaks, report True
        95: falls silent, Stopping
        97: Stopped
        155: Starting
        170: speaks, Running
    "#]]);
    assert!(life.node.is_some());
}

// B12.21
#[test]
fn an_instance_that_others_terminate_goes_with_its_node() {
    let mut life = Life::new(cloud(), json!([{ "kind": "InstanceTerminated", "after": "60s" }]));
    life.run(300).expect(expect![[r#"
        0: Pending
        20: Starting
        35: Running
        45: speaks, register False
        50: speaks, report True
        95: falls silent, terminate, Terminating
        105: remove
    "#]]);
    assert!(life.instance.is_none() && life.node.is_none());
}

#[test]
fn a_stuck_deletion_ends_with_its_fault() {
    let mut life = Life::new(json!({}), json!([{ "kind": "DeleteStuck", "duration": "120s" }]));
    life.run(10);
    life.mark();
    life.run(300).expect(expect![[r#"
        0: speaks, Running, register True
        10: falls silent, Terminating
        130: remove
    "#]]);
}

// B12.7
#[test]
fn an_instance_is_gone_no_earlier_than_its_deletion_takes() {
    let mut life = Life::new(json!({ "delete": "30s" }), json!([]));
    life.run(10);
    life.mark();
    life.run(29);
    assert!(life.instance.is_some());
    life.run(1);
    assert!(life.instance.is_none());
}

// B12.33
#[test]
fn a_foreign_node_is_not_touched_and_its_name_is_waited_for() {
    let foreign: Node = serde_json::from_value(json!({ "metadata": { "name": "m", "uid": "f" } })).unwrap();
    let mut life = Life::new(json!({}), json!([]));
    life.node = Some(foreign);
    life.run(60);
    assert_eq!(life.node.as_ref().map(|node| node.uid()), Some("f"));
    let status = life.instance.as_ref().unwrap().status.as_ref().unwrap();
    let message = &status.conditions[0].message;
    assert!(message.starts_with("spec.node.name: `m` is the name of a node that is not of"), "{message}");
    life.node = None;
    life.run(60);
    life.mark();
    life.run(10).expect(expect![[r#"
        0: Running NodeRegistered=False/NodeNameTaken
        60: speaks, register True, Running NodeRegistered=True/NodeRegistered
        120: falls silent, remove
    "#]]);
}

#[test]
fn a_foreign_node_survives_the_end_of_the_instance() {
    let other = json!({
        "metadata": { "name": "m", "uid": "f", "labels": { "machine.openshift.io/simulated": "true" } },
        "spec": { "providerID": "kubemark:///a/i-sim-2" },
    });
    let mut life = Life::new(json!({}), json!([]));
    life.node = Some(serde_json::from_value(other).unwrap());
    life.run(10);
    life.mark();
    life.run(10);
    assert_eq!((life.instance.is_none(), life.node.as_ref().map(|node| node.uid())), (true, Some("f")));
}

// B12.34
#[test]
fn a_fault_that_is_added_to_a_live_instance_counts_from_then() {
    let mut life = Life::new(json!({}), json!([]));
    life.run(1000);
    let since = mapi_api::meta::micro(life.now);
    let fault = json!({ "kind": "NodeNotReady", "after": "10s", "duration": "20s", "since": since });
    life.instance.as_mut().unwrap().spec.faults = vec![serde_json::from_value(fault).unwrap()];
    life.run(100).expect(expect![[r#"
        0: speaks, Running, register True
        1010: speaks, report False
        1030: speaks, report True
    "#]]);
}

#[test]
fn a_node_registers_with_everything_that_schedulers_read() {
    let life = Life::new(json!({}), json!([]));
    let mut instance = life.instance.unwrap();
    instance.spec.node.operating_system = "linux".into();
    let body = node::body(&instance, &Readiness::Ready, life.now, "v1.36.0");
    assert_eq!(body["spec"]["providerID"], "kubemark:///a/i-sim-1");
    assert_eq!(body["metadata"]["labels"]["machine.openshift.io/simulated"], "true");
    assert_eq!(body["status"]["nodeInfo"]["kubeletVersion"], "v1.36.0");
    assert_eq!(body["status"]["addresses"], json!([{ "type": "InternalIP", "address": "10.200.0.7" }]));
    let ready =
        body["status"]["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
    assert_eq!(
        (&ready["status"], &ready["lastTransitionTime"]),
        (&json!("True"), &json!("2023-11-14T22:13:20Z"))
    );
}
