//! How namespaces begin and end.

use serde_json::{Value, json};

use crate::loops::testing::Bench;
use crate::options::Options;

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
    })
}

fn object(kind: &str, name: &str, finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": "one", "finalizers": finalizers},
    })
}

/// Reasons of the conditions that are not False.
fn waits_for(bench: &Bench) -> Vec<String> {
    let namespace = bench.get("namespaces", "one").unwrap();
    let conditions = namespace["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 5);
    let not_false = conditions.iter().filter(|condition| condition["status"] != "False");
    not_false.map(|condition| condition["message"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_new_namespace_is_given_what_each_has() {
    let mut bench = Bench::with(Options { ca: Some("PEM".into()), ..Options::default() });
    bench.put(namespace("one"));
    bench.work();
    let all = ["configmaps one/kube-root-ca.crt", "namespaces /one", "serviceaccounts one/default"];
    assert_eq!(bench.objects(), all);
    bench.delete("serviceaccounts", "one/default", None);
    bench.change("configmaps", "one/kube-root-ca.crt", |map| map["data"] = json!({}));
    bench.work();
    assert_eq!(bench.objects(), all);
    assert_eq!(bench.get("configmaps", "one/kube-root-ca.crt").unwrap()["data"], json!({"ca.crt": "PEM"}));
    bench.delete("namespaces", "one", None);
    bench.work();
    assert_eq!(bench.objects(), [""; 0]);
}

#[test]
fn a_namespace_ends_when_everything_in_it_is_gone() {
    let mut bench = Bench::new();
    bench.put(namespace("one"));
    bench.put(namespace("two"));
    bench.put(object("ConfigMap", "x", &["e.x/f", "e.x/h"]));
    bench.put(object("ConfigMap", "y", &[]));
    bench.put(object("Secret", "s", &["e.x/h"]));
    bench.work();
    bench.delete("namespaces", "one", None);
    bench.work();
    assert_eq!(bench.get("namespaces", "one").unwrap()["status"]["phase"], "Terminating");
    assert_eq!(bench.get("configmaps", "one/y"), None);
    let waiting = [
        "Some resources are remaining: configmaps. has 1 resource instances, secrets. has 1 resource instances",
        "Some content in the namespace has finalizers remaining: e.x/f in 1 resource instances, \
         e.x/h in 2 resource instances",
    ];
    assert_eq!(waits_for(&bench), waiting);
    bench.change("configmaps", "one/x", |map| map["metadata"]["finalizers"] = json!([]));
    bench.pass(5);
    let waiting = [
        "Some resources are remaining: secrets. has 1 resource instances",
        "Some content in the namespace has finalizers remaining: e.x/h in 1 resource instances",
    ];
    assert_eq!(waits_for(&bench), waiting);
    bench.change("secrets", "one/s", |map| map["metadata"]["finalizers"] = json!([]));
    bench.work();
    assert_eq!(bench.objects(), ["namespaces /two", "serviceaccounts two/default"]);
}

#[test]
fn pods_go_before_everything_else() {
    let mut bench = Bench::new();
    bench.put(namespace("one"));
    bench.put(object("ConfigMap", "x", &[]));
    let mut pod = object("Pod", "p", &[]);
    pod["spec"]["nodeName"] = "n".into();
    bench.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}));
    bench.put(pod);
    bench.work();
    bench.delete("namespaces", "one", None);
    bench.work();
    assert_eq!(waits_for(&bench), [""; 0]);
    assert!(bench.get("configmaps", "one/x").is_some());
    let pod = bench.get("pods", "one/p").unwrap();
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    bench.change("pods", "one/p", |pod| pod["metadata"]["deletionGracePeriodSeconds"] = 0.into());
    bench.work();
    assert_eq!(bench.objects(), ["nodes /n"]);
}

#[test]
fn a_finalizer_of_the_namespace_itself_keeps_it() {
    let mut bench = Bench::new();
    let mut one = namespace("one");
    one["metadata"]["finalizers"] = json!(["x.y/z"]);
    bench.put(one);
    bench.work();
    bench.delete("namespaces", "one", None);
    bench.work();
    assert_eq!(bench.objects(), ["namespaces /one deleting +x.y/z"]);
    assert_eq!(bench.get("namespaces", "one").unwrap()["spec"], json!({}));
    bench.change("namespaces", "one", |one| one["metadata"]["finalizers"] = json!([]));
    bench.work();
    assert_eq!(bench.objects(), [""; 0]);
}
