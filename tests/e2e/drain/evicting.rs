//! Which pods stand in the way, and how they go.

use std::time::Duration;

use e2e::{Change, Machine, Node, Ns, Object, Options, SimulatedInstance, World, pod_node, pod_phase};
use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Pod};
use kube::api::DeleteParams;
use mapi_api::{
    Conditions,
    names::{annotation, condition},
};
use serde_json::{Value, json};

use crate::{
    FINISHED, bind, bind_running, drained_at, is_marked, let_others_drain, marked_at, pod_version, running,
    said_in_words, told, version, wait_cordoned, world,
};

/// Ten minutes: nobody waits for that.
const LONG_S: i64 = 600;

fn patient(pod: &mut Value) {
    pod["spec"]["terminationGracePeriodSeconds"] = json!(LONG_S);
}

async fn fail(ns: &Ns, machine: &Machine, kind: &str) {
    let faults = json!([{ "kind": kind }]).to_string();
    let patch = json!({"metadata": {"annotations": {annotation::FAULTS: faults}}});
    ns.patch::<Machine>(machine.name(), patch).await;
}

async fn wait_ready(ns: &Ns, machine: &Machine, status: &str) {
    ns.wait_node(machine.name(), |node| node.condition("Ready").is_some_and(|ready| ready.status == status))
        .await;
}

// D10
#[tokio::test]
async fn a_node_is_cordoned_emptied_and_only_then_does_its_instance_go() {
    let (ns, other) = (world().await.namespace("plain").await, world().await.namespace("plain-too").await);
    let (machines, instances) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let machine = running(&ns, ns.machine("m")).await;
    for name in ["a", "b"] {
        bind_running(&ns, &machine, name).await;
    }
    // The selector of the other namespace's template is not that of this Node, which a bound pod need not match.
    bind_running(&other, &machine, "c").await;
    let pods = [ns.record::<Pod>().await, other.record::<Pod>().await];
    let nodes = ns.world().cluster().record::<Node>().await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;

    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    let events = told(&ns, &machine, "DrainSucceeded").await;
    assert_eq!(events, ["DrainProceeds", "Deleted", "DrainSucceeded"]);
    let deleted = ns.wait_event(machine.name(), "Deleted").await;
    assert_eq!(deleted[0].note, Some(format!("Node \"{}\" drained", machine.name())));
    assert_eq!(
        (&*deleted[0].action.clone().unwrap(), deleted[0].type_.as_deref()),
        ("Drain", Some("Normal"))
    );

    let drained = drained_at(&machines, &machine).await;
    let is_cordoned = |change: &Change<Node>| change.object().spec.unschedulable;
    let nodes = nodes.until(|all| all.iter().any(is_cordoned)).await;
    let cordoned = nodes.iter().find(|change| is_cordoned(change)).unwrap().object();
    let is_terminated = |change: &Change<SimulatedInstance>| change.object().is_deleting();
    let instances = instances.until(|all| all.iter().any(is_terminated)).await;
    let terminated = instances.iter().find(|change| is_terminated(change)).unwrap().object();
    for (ns, pods, names) in [(&ns, &pods[0], &["a", "b"][..]), (&other, &pods[1], &["c"])] {
        for name in names {
            let marked = marked_at(ns, pods, name).await.expect("it was evicted");
            assert!(version(Some(cordoned.version())) < marked, "{name} was evicted before");
            let is_it = |pod: &Pod| pod.metadata.name.as_deref() == Some(name);
            let changes = pods.changes();
            let mut gone = changes.iter().filter(|change| change.now().is_none() && is_it(change.object()));
            assert!(pod_version(gone.next().expect("it is gone").object()) < drained, "{name} went later");
        }
    }
    assert!(drained < version(Some(terminated.version())), "the instance was terminated before");
}

// D17: here Nodes are marked Unknown after a short silence.
#[tokio::test]
async fn pods_of_a_silent_node_get_a_second_and_nobody_waits_for_its_kubelet() {
    let grace = Duration::from_secs(8);
    let world = World::own(Options { node_monitor_grace: Some(grace), ..Options::default() }).await;
    let ns = world.namespace("silent").await;
    let machines = ns.record::<Machine>().await;
    let heartbeat = json!({"heartbeat": {"leaseDuration": "4s", "leaseRenew": "1s"}});
    let machine = running(&ns, ns.machine("m").provider(heartbeat)).await;
    bind(&ns, &machine, "pod", patient).await;
    ns.wait::<Pod>("pod", |pod| pod_phase(pod) == "Running").await;
    let pods = ns.record::<Pod>().await;
    fail(&ns, &machine, "NodeUnknown").await;
    wait_ready(&ns, &machine, "Unknown").await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;

    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    let changes = pods.until(|all| all.iter().any(|change| is_marked(change.object()))).await;
    let marked = changes.iter().map(|change| change.object()).find(|pod| is_marked(pod)).unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(1));
    let drained = drained_at(&machines, &machine).await;
    let gone = changes.iter().find(|change| change.now().is_none());
    assert!(gone.is_none_or(|gone| pod_version(gone.object()) > drained), "the kubelet was not silent");
}

// D18
#[tokio::test]
async fn pods_of_a_node_that_is_not_ready_keep_their_grace_period_and_are_waited_for() {
    let ns = world().await.namespace("not-ready").await;
    let machines = ns.record::<Machine>().await;
    // Nobody ends its pods but the test.
    let machine = running(&ns, ns.machine("m").provider(json!({"pods": "off"}))).await;
    bind(&ns, &machine, "pod", patient).await;
    fail(&ns, &machine, "NodeNotReady").await;
    wait_ready(&ns, &machine, "False").await;
    ns.delete::<Machine>(machine.name()).await;
    let pod = ns.wait::<Pod>("pod", is_marked).await;
    assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(LONG_S));

    let_others_drain(&ns).await;
    let waiting = ns.get::<Machine>(machine.name()).await;
    assert_eq!(waiting.status.conditions.find(condition::DRAINED), None);
    ns.delete_with::<Pod>("pod", DeleteParams::default().grace_period(0)).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
}

// D19
#[tokio::test]
async fn pods_of_a_daemon_set_stay() {
    let ns = world().await.namespace("daemon-set").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    let agent = daemon_set(&ns).await.metadata.name.unwrap();
    bind_running(&ns, &machine, "pod").await;
    let pods = ns.record::<Pod>().await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;

    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    let drained = drained_at(&machines, &machine).await;
    assert!(marked_at(&ns, &pods, &agent).await.is_none_or(|marked| marked > drained));
    assert!(marked_at(&ns, &pods, "pod").await.is_some_and(|marked| marked < drained));
}

/// Makes a DaemonSet on this namespace's Nodes and waits until its pod runs on the one that there is.
pub(crate) async fn daemon_set(ns: &Ns) -> Pod {
    ns.apply(json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": ns.pod_template("agent")},
    }))
    .await;
    if !ns.world().plane().is_real() {
        ns.make_pods::<DaemonSet>("agent", 1).await;
    }
    let is_there = |pods: &[&Pod]| pods.len() == 1 && pod_phase(pods[0]) == "Running";
    ns.wait_pods("agent", is_there).await.remove(0)
}

// D20
#[tokio::test]
async fn a_static_pod_stays_and_pods_with_local_data_finished_or_without_a_controller_go() {
    let ns = world().await.namespace("kinds").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    let mirror = |pod: &mut Value| {
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "abc"});
    };
    let local = |pod: &mut Value| pod["spec"]["volumes"] = json!([{"name": "scratch", "emptyDir": {}}]);
    bind(&ns, &machine, "static", mirror).await;
    bind(&ns, &machine, "local", local).await;
    for name in ["bare", "finished"] {
        bind(&ns, &machine, name, |_| {}).await;
    }
    for name in ["static", "local", "bare", "finished"] {
        ns.wait::<Pod>(name, |pod| pod_phase(pod) == "Running").await;
    }
    ns.patch_status::<Pod>("finished", json!({"phase": "Succeeded"})).await;
    let pods = ns.record::<Pod>().await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;

    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    let drained = drained_at(&machines, &machine).await;
    assert!(marked_at(&ns, &pods, "static").await.is_none_or(|marked| marked > drained));
    for name in ["local", "bare", "finished"] {
        assert!(marked_at(&ns, &pods, name).await.is_some_and(|marked| marked < drained), "{name}");
    }
}

// D21
#[tokio::test]
async fn a_pod_that_comes_back_elsewhere_under_its_name_is_gone_from_here() {
    let ns = world().await.namespace("same-name").await;
    ns.machine_set("set").replicas(2).create().await;
    let machines = ns.wait_running(2).await;
    ns.apply(json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 1,
            "selector": {"matchLabels": {"app": "db"}},
            "template": ns.pod_template("db"),
        },
    }))
    .await;
    let old = ns.wait::<Pod>("db-0", |pod| pod_phase(pod) == "Running").await;
    let machine = machines.iter().find(|machine| machine.name() == pod_node(&old)).unwrap();
    let recording = ns.record::<Machine>().await;
    ns.delete::<Machine>(machine.name()).await;
    wait_cordoned(&ns, machine).await;
    let new = ns
        .wait::<Pod>("db-0", |pod| pod.metadata.uid != old.metadata.uid && pod_phase(pod) == "Running")
        .await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(said_in_words(&recording, machine).await, [format!("True {FINISHED}")]);
    let now = ns.get::<Pod>("db-0").await;
    assert_eq!(now.metadata.uid, new.metadata.uid, "it was left alone");
    assert_ne!(pod_node(&now), machine.name());
}
