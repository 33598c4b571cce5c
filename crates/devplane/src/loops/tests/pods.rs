//! Pods on nodes that are no place to be.

use serde_json::{Value, json};

use crate::loops::testing::Bench;

fn node(bench: &mut Bench, taints: &Value) {
    // A node that never says anything would be tainted in a minute.
    bench.put(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }));
}

fn pod(bench: &mut Bench, name: &str, node: &str, tolerations: &Value) {
    bench.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"nodeName": node, "tolerations": tolerations}, "status": {"phase": "Running"},
    }));
}

fn is_deleting(bench: &Bench, name: &str) -> bool {
    let pod = bench.get("pods", &format!("default/{name}")).expect("nobody has ended it");
    pod["metadata"]["deletionTimestamp"].is_string()
}

#[test]
fn a_pod_stays_as_long_as_it_stands_all_taints() {
    let one = json!([{"key": "k", "value": "v", "effect": "NoExecute"}]);
    let two = json!([{"key": "k", "value": "v", "effect": "NoExecute"}, {"key": "l", "effect": "NoExecute"}]);
    let mild = json!([{"key": "k", "effect": "NoSchedule"}]);
    let rows = [
        (&one, json!([]), Some(0)),
        (&mild, json!([]), None),
        (&one, json!([{"operator": "Exists"}]), None),
        (&one, json!([{"key": "k", "operator": "Exists", "effect": "NoExecute"}]), None),
        (&one, json!([{"key": "k", "value": "v"}]), None),
        (&one, json!([{"key": "k", "value": "w"}]), Some(0)),
        (&one, json!([{"key": "k", "operator": "Exists", "effect": "NoSchedule"}]), Some(0)),
        (&one, json!([{"key": "k", "operator": "Exists", "tolerationSeconds": 300}]), Some(300)),
        (&one, json!([{"key": "k", "operator": "Exists", "tolerationSeconds": -1}]), Some(0)),
        (&two, json!([{"key": "k", "operator": "Exists"}]), Some(0)),
        (
            &two,
            json!([
                {"key": "k", "operator": "Exists", "tolerationSeconds": 300},
                {"key": "l", "operator": "Exists", "tolerationSeconds": 20},
            ]),
            Some(20),
        ),
    ];
    for (taints, tolerations, expected) in rows {
        let mut bench = Bench::new();
        node(&mut bench, taints);
        pod(&mut bench, "p", "n", &tolerations);
        let Some(after_s) = expected else {
            bench.pass(100_000);
            assert!(!is_deleting(&bench, "p"), "{taints} {tolerations}");
            continue;
        };
        if after_s > 0 {
            bench.pass(after_s - 1);
            assert!(!is_deleting(&bench, "p"), "{taints} {tolerations}");
            bench.pass(1);
        }
        bench.work();
        assert!(is_deleting(&bench, "p"), "{taints} {tolerations}");
    }
}

#[test]
fn a_pod_that_is_evicted_says_why() {
    let mut bench = Bench::new();
    node(&mut bench, &json!([{"key": "k", "effect": "NoExecute"}]));
    pod(&mut bench, "p", "n", &json!([]));
    bench.work();
    let pod = bench.get("pods", "default/p").unwrap();
    let expected = json!([{
        "type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint", "observedGeneration": 1,
        "lastProbeTime": null, "lastTransitionTime": "2030-01-01T00:00:00Z",
    }]);
    assert_eq!(pod["status"]["conditions"], expected);
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
}

#[test]
fn a_taint_that_goes_in_time_evicts_nobody() {
    let mut bench = Bench::new();
    let taints = json!([{"key": "k", "effect": "NoExecute"}]);
    let tolerations = json!([{"operator": "Exists", "tolerationSeconds": 300}]);
    node(&mut bench, &taints);
    pod(&mut bench, "p", "n", &tolerations);
    bench.pass(200);
    bench.change("nodes", "n", |node| node["spec"]["taints"] = json!([]));
    bench.pass(200);
    assert!(!is_deleting(&bench, "p"));
    bench.change("nodes", "n", |node| node["spec"]["taints"] = taints);
    bench.pass(299);
    assert!(!is_deleting(&bench, "p"));
    bench.pass(1);
    assert!(is_deleting(&bench, "p"));
    assert_eq!(bench.next, None);
}

#[test]
fn pods_of_a_node_that_is_gone_are_removed() {
    let mut bench = Bench::new();
    node(&mut bench, &json!([]));
    pod(&mut bench, "here", "n", &json!([]));
    pod(&mut bench, "nowhere", "m", &json!([]));
    pod(&mut bench, "unbound", "", &json!([]));
    bench.pass(39);
    assert_eq!(bench.objects().len(), 4);
    bench.pass(1);
    assert_eq!(bench.objects(), ["nodes /n", "pods default/here", "pods default/unbound"]);
    bench.delete("nodes", "n", None);
    bench.pass(20);
    // A node that comes back in time is the pods' node again.
    node(&mut bench, &json!([]));
    bench.pass(100);
    assert_eq!(bench.objects(), ["nodes /n", "pods default/here", "pods default/unbound"]);
    bench.change("pods", "default/here", |pod| pod["metadata"]["finalizers"] = json!(["x.y/z"]));
    bench.delete("nodes", "n", None);
    bench.pass(40);
    let pod = bench.get("pods", "default/here").unwrap();
    assert_eq!(pod["status"]["phase"], "Failed");
    assert_eq!(pod["status"]["conditions"][0]["message"], "PodGC: node no longer exists");
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 0);
    bench.change("pods", "default/here", |pod| pod["metadata"]["finalizers"] = json!([]));
    bench.work();
    assert_eq!(bench.objects(), ["pods default/unbound"]);
    assert_eq!(bench.next, None);
}
