//! Health checks: which Machines one is about, what it counts, and when it leaves everything alone.
//!
//! The other files of this executable are about verdicts, repairs, limits and remediation requests. What they share is
//! here. A Node is made sick by a condition that only the tests know and write.

use std::sync::OnceLock;

use e2e::{Draft, Machine, MachineHealthCheck, Node, Ns, Object, Options, World, free_port};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use mapi_api::{
    Conditions, Timestamp,
    condition::whole_seconds,
    names::{annotation, condition, reason},
};
use serde_json::{Value, json};

#[path = "health_external.rs"]
mod external;
#[path = "health_limits.rs"]
mod limits;
#[path = "health_repairs.rs"]
mod repairs;
#[path = "health_verdicts.rs"]
mod verdicts;

/// Type of the Node condition that makes a Machine sick when it is True.
const BROKEN: &str = "Broken";

async fn world() -> World {
    let arguments = vec![format!("--metrics-bind-address=127.0.0.1:{}", port())];
    let manifests = vec![external::SAMPLE.into()];
    World::shared(Options { arguments, manifests, ..Options::default() }).await
}

/// Where the controllers serve their metrics.
fn port() -> u16 {
    static PORT: OnceLock<u16> = OnceLock::new();
    *PORT.get_or_init(free_port)
}

/// Writes a condition of a Node, whose status is what it is since some seconds.
async fn report(ns: &Ns, node: &str, (type_, status): (&str, &str), seconds: i64) {
    let since = Timestamp::from_second(Timestamp::now().as_second() - seconds).expect("a time");
    let condition = json!({"type": type_, "status": status, "lastTransitionTime": whole_seconds(since)});
    // Conditions are merged by type, so that those of the kubelet stay.
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    let nodes = ns.world().cluster().api::<Node>();
    nodes.patch_status(node, &PatchParams::default(), &patch).await.expect("the Node is there");
}

/// Makes a Node sick for longer than any check of the tests allows.
async fn break_node(ns: &Ns, node: &str) {
    report(ns, node, (BROKEN, "True"), 3600).await;
}

async fn heal_node(ns: &Ns, node: &str) {
    report(ns, node, (BROKEN, "False"), 0).await;
}

/// A check of all Machines of the namespace that allows nobody to be broken for five minutes.
fn check(ns: &Ns) -> Draft<MachineHealthCheck> {
    ns.health_check("check").unhealthy(BROKEN, "True", "300s")
}

/// A Machine with a controller that replaces no Machine: when it is gone, it is gone.
async fn owned(ns: &Ns, short: &str) -> Draft<Machine> {
    ns.machine(short).with(owned_by(owner(ns, json!({"controller": true})).await))
}

fn owned_by(owner: Value) -> Value {
    json!({"metadata": {"ownerReferences": [owner]}})
}

/// A reference to an object that the garbage collector finds.
async fn owner(ns: &Ns, extra: Value) -> Value {
    let mut reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"});
    ns.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})).await;
    reference["uid"] = json!(ns.get::<ConfigMap>("owner").await.metadata.uid);
    for (field, value) in extra.as_object().expect("more fields are an object") {
        reference[field] = value.clone();
    }
    reference
}

/// Waits until a check has counted as many Machines, and as many healthy ones among them.
async fn counted(ns: &Ns, check: &str, expected: i64, healthy: i64) -> MachineHealthCheck {
    ns.wait_check(check, |check| {
        let status = &check.status;
        (status.expected_machines, status.current_healthy) == (Some(expected), Some(healthy))
    })
    .await
}

/// The value of a check's series of a metric.
async fn metric(ns: &Ns, check: &str, name: &str) -> Option<f64> {
    let series = format!("{name}{{name=\"{check}\",namespace=\"{}\"}} ", ns.name());
    let text = ns.world().metrics(port()).await;
    let value = text.lines().find_map(|line| line.strip_prefix(&series))?;
    Some(value.parse().expect("a metric is a number"))
}

/// The reasons of all events about an object so far.
async fn reasons(ns: &Ns, name: &str) -> Vec<String> {
    ns.events(name).await.into_iter().filter_map(|event| event.reason).collect()
}

// H01
#[tokio::test]
async fn a_check_that_is_gone_leaves_no_metric_series() {
    let ns = world().await.namespace("gone").await;
    let check = check(&ns).create().await;
    counted(&ns, check.name(), 0, 0).await;
    let metrics = ["mapi_machinehealthcheck_nodes_covered", "mapi_machinehealthcheck_short_circuit"];
    for name in metrics {
        assert_eq!(metric(&ns, check.name(), name).await, Some(0.0), "{name}");
    }
    ns.delete::<MachineHealthCheck>(check.name()).await;
    ns.wait_gone::<MachineHealthCheck>(check.name()).await;
    // What came later is looked at later.
    let later = ns.health_check("later").unhealthy(BROKEN, "True", "300s").create().await;
    counted(&ns, later.name(), 0, 0).await;
    for name in metrics {
        assert_eq!(metric(&ns, check.name(), name).await, None, "{name}");
    }
}

// H02
#[tokio::test]
async fn a_paused_check_does_nothing_until_it_is_released() {
    let ns = world().await.namespace("paused").await;
    let machine = owned(&ns, "m").await.create().await;
    let other = owned(&ns, "other").await.machine_label("e2e.test/other", "yes").create().await;
    ns.wait_running(2).await;
    for machine in [&machine, &other] {
        break_node(&ns, machine.name()).await;
    }
    let paused = check(&ns).annotation(annotation::PAUSED, "false").create().await;
    let selector = json!({"spec": {"selector": {"matchLabels": {"e2e.test/other": "yes"}}}});
    ns.health_check("other").unhealthy(BROKEN, "True", "300s").with(selector).create().await;
    ns.wait_gone::<Machine>(other.name()).await;
    let untouched = ns.get::<MachineHealthCheck>(paused.name()).await;
    assert_eq!(untouched.status, Default::default());
    assert!(!ns.get::<Machine>(machine.name()).await.is_deleting());
    assert_eq!(reasons(&ns, paused.name()).await, [""; 0]);

    let release = json!({"metadata": {"annotations": {annotation::PAUSED: null}}});
    ns.patch::<MachineHealthCheck>(paused.name(), release).await;
    ns.wait_gone::<Machine>(machine.name()).await;
}

// H04, H15
#[tokio::test]
async fn a_healthy_node_needs_nothing_and_a_condition_that_it_lacks_is_not_unknown() {
    let ns = world().await.namespace("healthy").await;
    ns.machine("m").create().await;
    ns.wait_running(1).await;
    let check = check(&ns).unhealthy("Unheard", "Unknown", "1s").unhealthy("Ready", "False", "1s");
    let check = counted(&ns, check.create().await.name(), 1, 1).await;
    assert_eq!(check.status.remediations_allowed, Some(1));
    let allowed = check.status.conditions.find(condition::REMEDIATION_ALLOWED).unwrap();
    assert!(allowed.is_true());
    assert_eq!((allowed.reason.as_str(), allowed.message.as_str()), ("", ""));
}

// H08
#[tokio::test]
async fn a_check_without_machines_says_so() {
    let ns = world().await.namespace("empty").await;
    let check = counted(&ns, check(&ns).create().await.name(), 0, 0).await;
    assert_eq!(check.status.remediations_allowed, Some(0));
    assert!(check.status.conditions.is_true(condition::REMEDIATION_ALLOWED));
}

// H34
#[tokio::test]
async fn an_empty_selector_is_about_every_machine_of_the_namespace_and_an_invalid_one_about_none() {
    let world = world().await;
    let (ns, other) = (world.namespace("selected").await, world.namespace("other").await);
    for (ns, short) in [(&ns, "a"), (&ns, "b"), (&other, "c")] {
        ns.machine(short).machine_label("e2e.test/name", short).create().await;
    }
    ns.wait_running(2).await;
    other.wait_running(1).await;
    let empty = check(&ns).create().await;
    counted(&ns, empty.name(), 2, 2).await;

    let like = json!([{"key": "e2e.test/name", "operator": "Like", "values": ["a"]}]);
    let invalid = ns.health_check("invalid").unhealthy(BROKEN, "True", "300s");
    let invalid = invalid.with(json!({"spec": {"selector": {"matchExpressions": like}}})).create().await;
    let told = ns
        .wait_check(invalid.name(), |check| check.status.conditions.find(condition::SPEC_VALID).is_some())
        .await;
    let complaint = told.status.conditions.find(condition::SPEC_VALID).unwrap();
    assert_eq!(complaint.reason, reason::INVALID_SELECTOR);
    assert!(complaint.message.contains("Like"), "{}", complaint.message);
    assert_eq!(told.status.expected_machines, None);

    let put_right =
        json!({"spec": {"selector": {"matchExpressions": null, "matchLabels": {"e2e.test/name": "a"}}}});
    ns.patch::<MachineHealthCheck>(invalid.name(), put_right).await;
    let told = counted(&ns, invalid.name(), 1, 1).await;
    assert!(told.status.conditions.is_true(condition::SPEC_VALID));
}

// H35
#[tokio::test]
async fn a_machine_that_moves_or_goes_is_missed_by_the_check_that_it_leaves() {
    let ns = world().await.namespace("moves").await;
    let check_of = async |short: &str| {
        let selector = json!({"spec": {"selector": {"matchLabels": {"e2e.test/side": short}}}});
        let check = ns.health_check(short).unhealthy(BROKEN, "True", "300s").with(selector);
        check.create().await.name().to_owned()
    };
    let (left, right) = (check_of("left").await, check_of("right").await);
    let machine = ns.machine("m").machine_label("e2e.test/side", "left").create().await;
    counted(&ns, &left, 1, 1).await;
    counted(&ns, &right, 0, 0).await;

    let moved = json!({"metadata": {"labels": {"e2e.test/side": "right"}}});
    ns.patch::<Machine>(machine.name(), moved).await;
    counted(&ns, &left, 0, 0).await;
    counted(&ns, &right, 1, 1).await;

    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    counted(&ns, &right, 0, 0).await;
}

/// The published pattern lets more through than a duration.
#[tokio::test]
async fn a_timeout_that_is_none_is_told_and_other_checks_go_on() {
    let ns = world().await.namespace("timeout").await;
    let bad = check(&ns).startup_timeout("x5m").create().await;
    let good = ns.health_check("good").unhealthy(BROKEN, "True", "300s").create().await;
    let told = ns.wait_check(bad.name(), |check| !check.status.conditions.is_empty()).await;
    let complaint = told.status.conditions.find(condition::SPEC_VALID).unwrap();
    assert_eq!(complaint.reason, reason::INVALID_FIELD);
    for part in ["spec.nodeStartupTimeout", "x5m", "300s, 5m or 1h30m"] {
        assert!(complaint.message.contains(part), "no {part} in: {}", complaint.message);
    }
    counted(&ns, good.name(), 0, 0).await;

    ns.patch::<MachineHealthCheck>(bad.name(), json!({"spec": {"nodeStartupTimeout": "5m"}})).await;
    let told = counted(&ns, bad.name(), 0, 0).await;
    assert!(told.status.conditions.is_true(condition::SPEC_VALID));
}
