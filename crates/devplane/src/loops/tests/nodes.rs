//! Nodes that fall silent, and the taints of nodes.

use serde_json::{Value, json};

use crate::environment::{micros, seconds};
use crate::loops::testing::Bench;

/// Posts the status of a node as a kubelet would; creates it if it is not there.
fn post(bench: &mut Bench, name: &str, ready: &str) {
    let time = seconds(bench.now());
    let conditions = json!([{
        "type": "Ready", "status": ready, "reason": "Kubelet", "message": "m",
        "lastHeartbeatTime": time, "lastTransitionTime": time,
    }]);
    if bench.get("nodes", name).is_none() {
        bench.put(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {}},
            "spec": {}, "status": {"conditions": conditions},
        }));
    } else {
        bench.change("nodes", name, |node| node["status"]["conditions"] = conditions);
    }
}

fn renew(bench: &mut Bench, name: &str) {
    let now = micros(bench.now());
    bench.put(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": {"renewTime": now},
    }));
}

/// Taints of a node, without the part that all have in common, and its condition Ready.
fn taints(bench: &Bench, name: &str) -> String {
    let node = bench.get("nodes", name).unwrap();
    let taint = |taint: &Value| {
        let key = taint["key"].as_str().unwrap().trim_start_matches("node.kubernetes.io/");
        format!("{key}:{}", taint["effect"].as_str().unwrap())
    };
    let mut all: Vec<String> = node["spec"]["taints"].as_array().into_iter().flatten().map(taint).collect();
    all.sort();
    all.join(" ")
}

fn ready(bench: &Bench, name: &str) -> Value {
    let node = bench.get("nodes", name).unwrap();
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == "Ready").cloned().unwrap_or_default()
}

const UNREACHABLE: &str = "unreachable:NoExecute unreachable:NoSchedule";

#[test]
fn a_silent_node_is_unknown_and_comes_back() {
    let mut bench = Bench::new();
    post(&mut bench, "n", "True");
    post(&mut bench, "well", "True");
    bench.pass(40);
    post(&mut bench, "well", "True");
    bench.pass(9);
    assert_eq!(ready(&bench, "n")["status"], "True");
    bench.pass(1);
    let expected = json!({
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
        "lastHeartbeatTime": "2030-01-01T00:00:00Z", "lastTransitionTime": "2030-01-01T00:00:50Z",
    });
    assert_eq!(ready(&bench, "n"), expected);
    let node = bench.get("nodes", "n").unwrap();
    assert_eq!(node["status"]["conditions"][3]["reason"], "NodeStatusNeverUpdated");
    assert_eq!(taints(&bench, "n"), UNREACHABLE);
    assert_eq!(node["spec"]["taints"][0]["timeAdded"], "2030-01-01T00:00:50Z");
    post(&mut bench, "n", "True");
    bench.work();
    assert_eq!(taints(&bench, "n"), "");
    assert!(bench.get("nodes", "n").unwrap()["spec"]["taints"].is_null());
}

#[test]
fn a_lease_is_a_sign_of_life() {
    let mut bench = Bench::new();
    post(&mut bench, "n", "True");
    for _ in 0..10 {
        renew(&mut bench, "n");
        bench.pass(40);
        assert_eq!(ready(&bench, "n")["status"], "True");
    }
    // The same lease again is none.
    bench.change("leases", "kube-node-lease/n", |lease| lease["metadata"]["labels"] = json!({"a": "b"}));
    bench.pass(10);
    assert_eq!(ready(&bench, "n")["status"], "Unknown");
}

#[test]
fn a_node_that_never_said_anything_is_given_a_minute() {
    let mut bench = Bench::new();
    bench.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    bench.pass(59);
    assert_eq!(ready(&bench, "n"), json!(null));
    bench.pass(1);
    assert_eq!(ready(&bench, "n")["reason"], "NodeStatusNeverUpdated");
    assert_eq!(ready(&bench, "n")["lastHeartbeatTime"], "2030-01-01T00:00:00Z");
    bench.delete("nodes", "n", None);
    bench.work();
    assert_eq!(bench.next, None);
}

#[test]
fn what_is_wrong_with_a_node_becomes_taints() {
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status});
    let rows = [
        (vec![condition("Ready", "True")], false, ""),
        (vec![condition("Ready", "False")], false, "not-ready:NoExecute not-ready:NoSchedule"),
        (
            vec![condition("Ready", "True"), condition("MemoryPressure", "True")],
            false,
            "memory-pressure:NoSchedule",
        ),
        (vec![condition("Ready", "True"), condition("DiskPressure", "Unknown")], false, ""),
        (
            vec![condition("Ready", "True"), condition("NetworkUnavailable", "True")],
            true,
            "network-unavailable:NoSchedule unschedulable:NoSchedule",
        ),
        (vec![], true, "unschedulable:NoSchedule"),
    ];
    for (conditions, unschedulable, expected) in rows {
        let mut bench = Bench::new();
        post(&mut bench, "well", "True");
        bench.put(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
            "spec": {
                "unschedulable": unschedulable,
                "taints": [
                    {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
                    {"key": "node.kubernetes.io/pid-pressure", "effect": "NoSchedule"},
                    {"key": "a/mine", "effect": "NoExecute"},
                ],
            },
            "status": {"conditions": conditions},
        }));
        bench.work();
        assert_eq!(taints(&bench, "n"), format!("a/mine:NoExecute {expected}").trim_end());
    }
}

#[test]
fn nothing_is_evicted_while_all_nodes_are_down() {
    let mut bench = Bench::new();
    for name in ["a", "b"] {
        post(&mut bench, name, "True");
    }
    bench.pass(40);
    post(&mut bench, "b", "True");
    bench.pass(10);
    assert_eq!(taints(&bench, "a"), UNREACHABLE);
    assert_eq!(taints(&bench, "b"), "");
    bench.pass(40);
    assert_eq!(taints(&bench, "a"), "unreachable:NoSchedule");
    assert_eq!(taints(&bench, "b"), "unreachable:NoSchedule");
    post(&mut bench, "a", "True");
    bench.work();
    assert_eq!(taints(&bench, "a"), "");
    assert_eq!(taints(&bench, "b"), UNREACHABLE);
}

#[test]
fn a_small_zone_that_is_mostly_down_evicts_nothing_anew() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c", "d", "e"] {
        post(&mut bench, name, "True");
        let zone = if name == "e" { "two" } else { "one" };
        bench.change("nodes", name, |node| {
            node["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": zone});
        });
    }
    bench.work();
    for name in ["a", "b", "c"] {
        post(&mut bench, name, "False");
        bench.work();
    }
    // The first two fell while the zone was well.
    let both = "not-ready:NoExecute not-ready:NoSchedule";
    assert_eq!(["a", "b", "c"].map(|name| taints(&bench, name)), [both, both, "not-ready:NoSchedule"]);
    post(&mut bench, "b", "True");
    bench.work();
    assert_eq!(["a", "b", "c"].map(|name| taints(&bench, name)), [both, "", both]);
}

#[test]
fn pods_of_a_silent_node_are_not_ready() {
    let mut bench = Bench::new();
    post(&mut bench, "n", "True");
    bench.put(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2029-01-01T00:00:00Z"},
            {"type": "PodScheduled", "status": "True"},
        ]},
    }));
    bench.pass(50);
    let pod = bench.get("pods", "default/p").unwrap();
    let expected = json!([
        {"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T00:00:50Z"},
        {"type": "PodScheduled", "status": "True"},
    ]);
    assert_eq!(pod["status"]["conditions"], expected);
}
