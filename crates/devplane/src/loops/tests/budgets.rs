//! What budgets allow.

use serde_json::{Value, json};

use crate::environment::seconds;
use crate::loops::testing::Bench;

/// `name ready-status phase`, labelled `app=x`; the owner is the uid of a ReplicaSet, or empty.
fn pod(bench: &mut Bench, name: &str, ready: &str, owner: &str) {
    let mut references = json!([]);
    if !owner.is_empty() {
        references = json!([{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": true,
        }]);
    }
    bench.put(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": "x"}, "ownerReferences": references,
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }));
}

fn budget(bench: &mut Bench, spec: &Value) {
    let mut spec = spec.clone();
    if spec["selector"].is_null() {
        spec["selector"] = json!({"matchLabels": {"app": "x"}});
    }
    bench.put(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default", "generation": 1}, "spec": spec,
    }));
}

fn status(bench: &Bench) -> Value {
    bench.get("poddisruptionbudgets", "default/b").unwrap()["status"].clone()
}

/// Allowed, healthy of desired, expected; then the reason of the condition.
fn numbers(bench: &Bench) -> String {
    let status = status(bench);
    format!(
        "allowed {} healthy {}/{} of {} {}",
        status["disruptionsAllowed"],
        status["currentHealthy"],
        status["desiredHealthy"],
        status["expectedPods"],
        status["conditions"][0]["reason"].as_str().unwrap(),
    )
}

fn set(bench: &mut Bench, name: &str, replicas: i64, deployment: &str) {
    let mut references = json!([]);
    if !deployment.is_empty() {
        references = json!([{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "uid": deployment,
            "controller": true,
        }]);
    }
    bench.put(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": references},
        "spec": {"replicas": replicas},
    }));
}

#[test]
fn bare_pods_count_for_a_number_that_must_be_available_only() {
    let rows = [
        (json!({"minAvailable": 1}), "allowed 1 healthy 2/1 of 3 SufficientPods"),
        (json!({"minAvailable": 2}), "allowed 0 healthy 2/2 of 3 InsufficientPods"),
        (json!({"minAvailable": 5}), "allowed 0 healthy 2/5 of 3 InsufficientPods"),
        (json!({"minAvailable": "50%"}), "allowed 0 healthy 2/0 of 0 InsufficientPods"),
        (json!({"maxUnavailable": 1}), "allowed 0 healthy 2/0 of 0 InsufficientPods"),
        (json!({"maxUnavailable": "30%"}), "allowed 0 healthy 2/0 of 0 InsufficientPods"),
        (json!({}), "allowed 0 healthy 2/0 of 0 InsufficientPods"),
        (json!({"minAvailable": 1, "selector": {}}), "allowed 1 healthy 2/1 of 3 SufficientPods"),
        (
            json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "y"}}}),
            "allowed 0 healthy 0/1 of 0 InsufficientPods",
        ),
    ];
    for (spec, expected) in rows {
        let mut bench = Bench::new();
        for (name, ready) in [("p1", "True"), ("p2", "True"), ("p3", "False")] {
            pod(&mut bench, name, ready, "");
        }
        budget(&mut bench, &spec);
        bench.work();
        assert_eq!(numbers(&bench), expected, "{spec}");
        assert_eq!(status(&bench)["observedGeneration"], 1);
    }
}

#[test]
fn controllers_say_how_many_pods_are_expected() {
    let rows = [
        (json!({"minAvailable": "50%"}), "allowed 0 healthy 3/4 of 7 InsufficientPods"),
        (json!({"minAvailable": "40%"}), "allowed 0 healthy 3/3 of 7 InsufficientPods"),
        (json!({"maxUnavailable": 5}), "allowed 1 healthy 3/2 of 7 SufficientPods"),
        (json!({"maxUnavailable": "70%"}), "allowed 1 healthy 3/2 of 7 SufficientPods"),
        (json!({"maxUnavailable": 9}), "allowed 3 healthy 3/0 of 7 SufficientPods"),
        (json!({"minAvailable": 1}), "allowed 2 healthy 3/1 of 3 SufficientPods"),
    ];
    for (spec, expected) in rows {
        let mut bench = Bench::new();
        bench.put(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "default"}, "spec": {"replicas": 4},
        }));
        // The deployment decides about the first two, whatever they ask for.
        set(&mut bench, "old", 9, "d");
        set(&mut bench, "new", 9, "d");
        set(&mut bench, "own", 3, "");
        for (name, owner) in [("p1", "old"), ("p2", "new"), ("p3", "own")] {
            pod(&mut bench, name, "True", owner);
        }
        budget(&mut bench, &spec);
        bench.work();
        assert_eq!(numbers(&bench), expected, "{spec}");
    }
}

#[test]
fn a_budget_that_cannot_be_counted_says_why() {
    let rows = [
        ("e.x/v1", "Foo", "no matches for kind \"Foo\" in version \"e.x/v1\""),
        ("v1", "ConfigMap", "configmaps does not implement the scale subresource"),
        (
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets.policy does not implement the scale subresource",
        ),
        ("apps/v1", "ReplicaSet", "found no controllers for pod \"p\""),
    ];
    for (api_version, kind, message) in rows {
        let mut bench = Bench::new();
        pod(&mut bench, "p", "True", "o");
        bench.change("pods", "default/p", |pod| {
            // The garbage collector cannot say anything about the second owner, and leaves the pod alone.
            pod["metadata"]["ownerReferences"] = json!([
                {"apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": true},
                {"apiVersion": "e.x/v1", "kind": "Bar", "name": "s", "uid": "s"},
            ]);
        });
        budget(&mut bench, &json!({"maxUnavailable": 1}));
        bench.work();
        let status = status(&bench);
        assert_eq!(status["conditions"][0]["reason"], "SyncFailed");
        assert_eq!(status["conditions"][0]["message"], message);
        assert_eq!(status["disruptionsAllowed"], 0);
        assert!(status["observedGeneration"].is_null());
    }
}

#[test]
fn a_budget_follows_its_pods_and_its_own_changes() {
    let mut bench = Bench::new();
    for name in ["p1", "p2", "p3"] {
        pod(&mut bench, name, "True", "");
    }
    budget(&mut bench, &json!({"minAvailable": 1}));
    bench.work();
    assert_eq!(numbers(&bench), "allowed 2 healthy 3/1 of 3 SufficientPods");
    pod(&mut bench, "p1", "False", "");
    bench.work();
    assert_eq!(numbers(&bench), "allowed 1 healthy 2/1 of 3 SufficientPods");
    bench.change("pods", "default/p1", |pod| pod["metadata"]["labels"]["app"] = "y".into());
    bench.work();
    assert_eq!(numbers(&bench), "allowed 1 healthy 2/1 of 2 SufficientPods");
    bench.delete("pods", "default/p2", None);
    bench.pass(1);
    assert_eq!(numbers(&bench), "allowed 0 healthy 1/1 of 1 InsufficientPods");
    let changed = status(&bench)["conditions"][0]["lastTransitionTime"].clone();
    assert_eq!(changed, "2030-01-01T00:00:00Z");
    bench.change("poddisruptionbudgets", "default/b", |budget| {
        budget["metadata"]["generation"] = 2.into();
        budget["spec"] = json!({"minAvailable": 0, "selector": {"matchLabels": {"app": "y"}}});
    });
    bench.work();
    assert_eq!(numbers(&bench), "allowed 0 healthy 0/0 of 1 InsufficientPods");
    assert_eq!(status(&bench)["observedGeneration"], 2);
    assert_eq!(status(&bench)["conditions"][0]["observedGeneration"], 2);
}

#[test]
fn an_evicted_pod_counts_as_gone_until_it_is_being_deleted_or_two_minutes_are_over() {
    let mut bench = Bench::new();
    for name in ["p1", "p2"] {
        pod(&mut bench, name, "True", "");
    }
    budget(&mut bench, &json!({"minAvailable": 1}));
    bench.work();
    let time = seconds(bench.now());
    bench.change("poddisruptionbudgets", "default/b", |budget| {
        budget["status"]["disruptedPods"] = json!({"p1": time, "p2": time, "stranger": time});
    });
    bench.delete("pods", "default/p2", None);
    bench.pass(119);
    assert_eq!(numbers(&bench), "allowed 0 healthy 0/1 of 1 InsufficientPods");
    assert_eq!(status(&bench)["disruptedPods"], json!({"p1": time}));
    bench.pass(1);
    assert_eq!(numbers(&bench), "allowed 0 healthy 1/1 of 1 InsufficientPods");
    assert!(status(&bench)["disruptedPods"].is_null());
    assert_eq!(bench.next, None);
}
