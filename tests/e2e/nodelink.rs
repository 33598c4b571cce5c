//! Nodes find their Machines, and what a Machine wishes for its Node gets there and stays there.

use std::time::Duration;

use e2e::{Change, Draft, Machine, MachineSet, Node, Ns, Object, Options, Recording, World};
use kube::api::{DynamicObject, PostParams};
use mapi_api::{Time, machine::Taint, names::annotation};
use serde_json::{Value, json};

async fn world() -> World {
    World::shared(Options::default()).await
}

/// A Machine of a cloud that nobody serves: nothing but nodelink and the test cares for it.
fn stranger(ns: &Ns, short: &str) -> Draft<Machine> {
    ns.machine(short).provider(json!({"apiVersion": "cloud.example/v1", "kind": "ExampleProviderSpec"}))
}

/// The same with the provider id of [`id`].
fn identified(ns: &Ns, short: &str) -> Draft<Machine> {
    stranger(ns, short).machine_spec(json!({"providerID": id(ns, short)}))
}

/// A provider id that no other test has.
fn id(ns: &Ns, short: &str) -> String {
    format!("example:///{}", ns.full(short))
}

fn addresses(ips: &[&str]) -> Value {
    ips.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect()
}

/// Registers a Ready Node as a kubelet does, called [`Ns::full`]`(short)`, with more fields.
async fn register(ns: &Ns, short: &str, extra: Value) -> Node {
    let mut object = json!({
        "metadata": {"name": ns.full(short), "labels": {"e2e.test/namespace": ns.name()}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    for (part, fields) in extra.as_object().expect("more fields are an object") {
        for (field, value) in fields.as_object().expect("a part is an object") {
            object[part][field] = value.clone();
        }
    }
    let object: DynamicObject = serde_json::from_value(object).expect("metadata and more");
    let nodes = ns.world().cluster().api::<Node>();
    nodes.create(&PostParams::default(), &object).await.expect("the name is new");
    ns.wait_node(&ns.full(short), |_| true).await
}

/// A Node with the provider id of [`id`].
async fn register_identified(ns: &Ns, short: &str, id_of: &str) -> Node {
    register(ns, short, json!({"spec": {"providerID": id(ns, id_of)}})).await
}

/// Links a Machine and a Node that were not there before. Whatever nodelink was to do until now, it has begun.
async fn later(ns: &Ns, short: &str) {
    let machine = identified(ns, short).create().await;
    let node = register_identified(ns, &format!("{short}-node"), short).await;
    ns.wait_machine(machine.name(), |machine| machine.node_name() == Some(node.name())).await;
}

fn wishes(labels: Value) -> Value {
    json!({"spec": {"metadata": {"labels": labels}}})
}

async fn change_node(ns: &Ns, name: &str, patch: Value) {
    ns.world().cluster().patch::<Node>(name, patch).await;
}

/// Taints of the tests, in order. Kubernetes adds its own.
fn taints(node: &Node) -> Vec<String> {
    let ours = node.spec.taints.iter().filter(|taint| taint.key.starts_with("e2e.test/"));
    let text = |Taint { key, value, effect, .. }: &Taint| {
        format!("{key}={}:{effect}", value.as_deref().unwrap_or_default())
    };
    ours.map(text).collect()
}

// N01, N19
#[tokio::test]
async fn a_node_with_the_provider_id_of_a_machine_is_linked_to_it() {
    let ns = world().await.namespace("same-id").await;
    let machine = identified(&ns, "m").machine_label("e2e.test/own", "yes").create().await;
    let node = register_identified(&ns, "n", "m").await;

    let machine = ns.wait_machine(machine.name(), |machine| machine.status.node_ref.is_some()).await;
    let reference = machine.status.node_ref.clone().unwrap();
    assert_eq!(reference.kind.as_deref(), Some("Node"));
    assert_eq!(reference.name.as_deref(), Some(node.name()));
    assert_eq!(reference.uid.as_deref(), Some(node.uid()));
    assert_eq!((reference.api_version, reference.namespace), (None, None));

    let node = ns.wait_node(node.name(), |node| node.annotation(annotation::MACHINE).is_some()).await;
    assert_eq!(node.annotation(annotation::MACHINE), Some(machine.key().to_string().as_str()));
    assert_eq!(node.label("e2e.test/own"), None, "labels of the Machine itself are its own");
}

// N02
#[tokio::test]
async fn a_shared_address_links_if_one_side_has_no_provider_id() {
    let ns = world().await.namespace("same-ip").await;
    // The instance of the simulated cloud has a provider id, and its kubelet is ours here.
    let machine = ns.machine("m").faults(json!([{"kind": "NeverJoin"}])).create().await;
    let machine = ns.wait_machine(machine.name(), |machine| machine.phase() == "Provisioned").await;
    let ip = machine.internal_ips().next().expect("a provisioned Machine has an address");
    let node = register(&ns, "n", json!({"status": {"addresses": addresses(&[ip])}})).await;
    ns.wait_machine(machine.name(), |machine| machine.node_name() == Some(node.name())).await;

    let other = stranger(&ns, "other").create().await;
    ns.patch_status::<Machine>(other.name(), json!({"addresses": addresses(&["192.0.2.2"])})).await;
    let status = json!({"addresses": addresses(&["192.0.2.2"])});
    let node =
        register(&ns, "other", json!({"spec": {"providerID": id(&ns, "other")}, "status": status})).await;
    ns.wait_machine(other.name(), |machine| machine.node_name() == Some(node.name())).await;
}

// N03
#[tokio::test]
async fn a_node_that_no_machine_matches_is_left_alone() {
    let ns = world().await.namespace("nobodys").await;
    let status = json!({"addresses": addresses(&["192.0.2.3"])});
    let extra = json!({"spec": {"providerID": id(&ns, "nobody")}, "status": status});
    let nobodys = register(&ns, "nobodys", extra).await;
    register(&ns, "without", json!({})).await;
    later(&ns, "later").await;
    for name in [nobodys.name(), &ns.full("without")] {
        assert_eq!(ns.wait_node(name, |_| true).await.annotation(annotation::MACHINE), None, "{name}");
    }
}

// N04
#[tokio::test]
async fn two_machines_with_one_provider_id_are_linked_to_nobody_until_one_is_left() {
    let ns = world().await.namespace("ambiguous").await;
    for short in ["a", "b"] {
        stranger(&ns, short).machine_spec(json!({"providerID": id(&ns, "both")})).create().await;
    }
    let node = register_identified(&ns, "n", "both").await;
    later(&ns, "later").await;
    for short in ["a", "b"] {
        assert_eq!(ns.get::<Machine>(&ns.full(short)).await.node_name(), None, "{short}");
    }
    assert_eq!(ns.wait_node(node.name(), |_| true).await.annotation(annotation::MACHINE), None);

    ns.patch::<Machine>(&ns.full("b"), json!({"spec": {"providerID": id(&ns, "b")}})).await;
    ns.wait_machine(&ns.full("a"), |machine| machine.node_name() == Some(node.name())).await;
    assert_eq!(ns.get::<Machine>(&ns.full("b")).await.node_name(), None);
}

// N05
#[tokio::test]
async fn an_address_that_is_used_again_links_no_other_instance() {
    let ns = world().await.namespace("used-again").await;
    let machine = identified(&ns, "m").create().await;
    ns.patch_status::<Machine>(machine.name(), json!({"addresses": addresses(&["192.0.2.5"])})).await;
    let recording = ns.record::<Machine>().await;
    let node = async |short: &str, id_of: &str| {
        let status = json!({"addresses": addresses(&["192.0.2.5"])});
        register(&ns, short, json!({"spec": {"providerID": id(&ns, id_of)}, "status": status})).await
    };
    let old = node("old", "gone").await;
    later(&ns, "later").await;
    let new = node("new", "m").await;
    ns.wait_machine(machine.name(), |machine| machine.node_name() == Some(new.name())).await;

    let is_ours = |change: &&Change<Machine>| change.object().name() == machine.name();
    for change in recording.changes().iter().filter(is_ours) {
        assert_ne!(change.object().node_name(), Some(old.name()));
    }
    assert_eq!(ns.wait_node(old.name(), |_| true).await.annotation(annotation::MACHINE), None);
}

// N06
#[tokio::test]
async fn the_first_address_of_a_node_decides() {
    let ns = world().await.namespace("first-address").await;
    let machine = stranger(&ns, "m").create().await;
    let extra = |ips: &[&str]| json!({"status": {"addresses": addresses(ips)}});
    let node = register(&ns, "n", extra(&["192.0.2.60", "192.0.2.61"])).await;
    ns.patch_status::<Machine>(machine.name(), json!({"addresses": addresses(&["192.0.2.61"])})).await;
    later(&ns, "later").await;
    assert_eq!(ns.get::<Machine>(machine.name()).await.node_name(), None);

    let turned = json!({"addresses": addresses(&["192.0.2.61", "192.0.2.60"])});
    ns.world().cluster().patch_status::<Node>(node.name(), turned).await;
    ns.wait_machine(machine.name(), |machine| machine.node_name() == Some(node.name())).await;
}

// N08
#[tokio::test]
async fn a_node_that_is_going_is_not_written_and_its_machine_still_names_it_when_it_is_gone() {
    let ns = world().await.namespace("going").await;
    let held = json!({"metadata": {"finalizers": ["e2e.test/held"]}});
    let cluster = ns.world().cluster();
    let hold = async |node: &Node| {
        change_node(&ns, node.name(), held.clone()).await;
        cluster.delete::<Node>(node.name()).await;
    };
    let linked = identified(&ns, "linked").create().await;
    let going = register_identified(&ns, "linked-node", "linked").await;
    ns.wait_machine(linked.name(), |machine| machine.node_name().is_some()).await;
    hold(&going).await;
    let early = register_identified(&ns, "early-node", "late").await;
    hold(&early).await;

    let late = identified(&ns, "late").create().await;
    ns.patch::<Machine>(linked.name(), wishes(json!({"e2e.test/wish": "yes"}))).await;
    later(&ns, "later").await;
    assert_eq!(ns.get::<Machine>(late.name()).await.node_name(), None);
    for node in [&going, &early] {
        let node = ns.wait_node(node.name(), Object::is_deleting).await;
        assert_eq!(node.label("e2e.test/wish"), None, "{}", node.name());
        change_node(&ns, node.name(), json!({"metadata": {"finalizers": null}})).await;
        cluster.wait_gone::<Node>(node.name()).await;
    }
    later(&ns, "last").await;
    let linked = ns.get::<Machine>(linked.name()).await;
    assert_eq!(linked.status.node_ref.unwrap().uid.as_deref(), Some(going.uid()));
}

// N09: as decision 0005 has it.
#[tokio::test]
async fn a_flip_of_readiness_is_counted_by_the_set_and_touches_no_machine() {
    let ns = world().await.namespace("flips").await;
    let nodes = ns.world().cluster().record::<Node>().await;
    let machines = ns.record::<Machine>().await;
    let args = json!({"ready": "2s", "notReady": "2s"});
    let faults = json!([{"kind": "NodeFlap", "args": args}]);
    let set = ns.machine_set("set").replicas(1).faults(faults).create().await;
    let machine = ns.wait_running(1).await.remove(0);

    // Whatever else there was to write is written after the first two flips.
    flipped(&nodes, machine.name(), 3).await;
    let before = machines.len();
    ns.wait_set(set.name(), |set| set.status.ready_replicas.unwrap_or_default() == 0).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(1)).await;
    flipped(&nodes, machine.name(), 5).await;
    assert_eq!(machines.len(), before, "the Machine was written: {:?}", machines.changes().last());
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": 0}})).await;
}

/// Waits until a Node was seen in as many states of readiness one after the other.
async fn flipped(nodes: &Recording<Node>, name: &str, states: usize) {
    nodes
        .until(|changes| {
            let ours = changes.iter().filter_map(Change::now).filter(|node| node.name() == name);
            let mut seen: Vec<bool> = ours.map(Node::is_ready).collect();
            seen.dedup();
            seen.len() >= states
        })
        .await;
}

// N10
#[tokio::test]
async fn a_machine_that_lost_its_node_gets_it_back() {
    let ns = world().await.namespace("lost").await;
    ns.machine("m").create().await;
    let machine = ns.wait_running(1).await.remove(0);
    ns.patch_status::<Machine>(machine.name(), json!({"nodeRef": null})).await;
    let restored = ns.wait_machine(machine.name(), |machine| machine.node_name().is_some()).await;
    assert_eq!(restored.status.node_ref, machine.status.node_ref);
}

// N11
#[tokio::test]
async fn a_node_that_registers_anew_gives_its_machine_the_new_identity() {
    let ns = world().await.namespace("anew").await;
    ns.machine("m").create().await;
    let machine = ns.wait_running(1).await.remove(0);
    let name = machine.node_name().unwrap();
    let old = ns.wait_node(name, Node::is_ready).await;
    ns.world().cluster().delete::<Node>(name).await;
    let new = ns.wait_node(name, |node| node.uid() != old.uid()).await;
    let is_new = |machine: &Machine| {
        machine.status.node_ref.as_ref().is_some_and(|reference| reference.uid.as_deref() == Some(new.uid()))
    };
    let machine = ns.wait_machine(machine.name(), is_new).await;
    assert_eq!((machine.node_name(), machine.phase()), (Some(name), "Running"));
}

// N12, N19
#[tokio::test]
async fn the_wishes_of_the_machine_win_over_the_cloud_and_over_a_user_of_the_node() {
    let ns = world().await.namespace("wishes").await;
    let metadata = json!({
        "labels": {"e2e.test/tier": "machine", "e2e.test/new": "yes"},
        "annotations": {"e2e.test/note": "machine"},
    });
    let cloud = json!({
        "nodeLabels": {"e2e.test/tier": "cloud", "e2e.test/cloud": "stays"},
        "nodeAnnotations": {"e2e.test/note": "cloud"},
    });
    let machine = ns.machine("m").machine_spec(json!({ "metadata": metadata })).provider(cloud);
    let machine = machine.machine_label("e2e.test/own", "yes").create().await;
    let is_granted = |node: &Node| {
        node.label("e2e.test/tier") == Some("machine")
            && node.label("e2e.test/new") == Some("yes")
            && node.annotation("e2e.test/note") == Some("machine")
    };
    let node = ns.wait_node(machine.name(), is_granted).await;
    assert_eq!((node.label("e2e.test/cloud"), node.label("e2e.test/own")), (Some("stays"), None));

    let labels = json!({"e2e.test/tier": "user", "e2e.test/new": null, "e2e.test/user": "stays"});
    let edit = json!({"metadata": {"labels": labels, "annotations": {"e2e.test/note": null}}});
    change_node(&ns, machine.name(), edit).await;
    let node = ns.wait_node(machine.name(), is_granted).await;
    assert_eq!(node.label("e2e.test/user"), Some("stays"));
}

// N13
#[tokio::test]
async fn a_wish_that_is_dropped_stays_on_the_node() {
    let ns = world().await.namespace("dropped").await;
    let machine = ns.machine("m").with(wishes(json!({"e2e.test/old": "yes"})));
    let machine = machine.create().await;
    ns.wait_node(machine.name(), |node| node.label("e2e.test/old").is_some()).await;
    let labels = json!({"e2e.test/old": null, "e2e.test/new": "yes"});
    ns.patch::<Machine>(machine.name(), wishes(labels)).await;
    let node = ns.wait_node(machine.name(), |node| node.label("e2e.test/new").is_some()).await;
    assert_eq!(node.label("e2e.test/old"), Some("yes"));
}

// N14, N15
#[tokio::test]
async fn taints_are_added_behind_the_nodes_own_and_come_back_when_a_user_removes_them() {
    let ns = world().await.namespace("taints").await;
    let taint = |key: &str, value: &str, effect: &str| json!({"key": format!("e2e.test/{key}"), "value": value, "effect": effect});
    let of_cloud = json!([taint("a", "cloud", "NoSchedule"), taint("b", "cloud", "PreferNoSchedule")]);
    let of_machine = json!([
        taint("c", "machine", "PreferNoSchedule"),
        taint("a", "machine", "NoSchedule"),
        taint("a", "machine", "PreferNoSchedule"),
    ]);
    let machine = ns.machine("m").provider(json!({"registerWithTaints": of_cloud}));
    let machine = machine.machine_spec(json!({"taints": of_machine})).create().await;
    let cloud = ["e2e.test/a=cloud:NoSchedule", "e2e.test/b=cloud:PreferNoSchedule"];
    let added = ["e2e.test/c=machine:PreferNoSchedule", "e2e.test/a=machine:PreferNoSchedule"];
    let all = [cloud, added].concat();
    let node = ns.wait_node(machine.name(), |node| taints(node).len() == all.len()).await;
    assert_eq!(taints(&node), all);

    let left: Vec<&Taint> =
        node.spec.taints.iter().filter(|taint| taint.value.as_deref() != Some("machine")).collect();
    change_node(&ns, machine.name(), json!({"spec": {"taints": left}})).await;
    let node = ns.wait_node(machine.name(), |node| taints(node).len() == all.len()).await;
    assert_eq!(taints(&node), all);
}

// N16
#[tokio::test]
async fn a_machine_that_learns_its_identity_after_its_node_came_is_linked() {
    let ns = world().await.namespace("late-machine").await;
    let by_id = register_identified(&ns, "by-id", "m").await;
    let by_ip = register(&ns, "by-ip", json!({"status": {"addresses": addresses(&["192.0.2.16"])}})).await;
    later(&ns, "later").await;
    let machine = stranger(&ns, "m").create().await;
    ns.patch::<Machine>(machine.name(), json!({"spec": {"providerID": id(&ns, "m")}})).await;
    ns.wait_machine(machine.name(), |machine| machine.node_name() == Some(by_id.name())).await;
    let other = stranger(&ns, "other").create().await;
    ns.patch_status::<Machine>(other.name(), json!({"addresses": addresses(&["192.0.2.16"])})).await;
    ns.wait_machine(other.name(), |machine| machine.node_name() == Some(by_ip.name())).await;
}

// N17: a refusal in place of a conflict, which nobody can order.
#[tokio::test]
async fn a_node_that_cannot_be_written_is_tried_again_and_its_machine_is_written_once() {
    let ns = world().await.namespace("refused").await;
    let machine = identified(&ns, "m").with(wishes(json!({"e2e.test/wish": "not a value"})));
    let machine = machine.create().await;
    let node = register_identified(&ns, "n", "m").await;
    let linked = ns.wait_machine(machine.name(), |machine| machine.node_name().is_some()).await;
    let updated = |machine: &Machine| machine.status.last_updated.clone().map(|Time(time)| time);
    later(&ns, "later").await;
    let before = ns.wait_node(node.name(), |_| true).await;
    assert_eq!(before.annotation(annotation::MACHINE), None, "the server refuses the label");

    ns.patch::<Machine>(machine.name(), wishes(json!({"e2e.test/wish": "a-value"}))).await;
    ns.wait_node(node.name(), |node| node.label("e2e.test/wish") == Some("a-value")).await;
    assert_eq!(updated(&ns.get::<Machine>(machine.name()).await), updated(&linked));
}

// N10: and in the time that a controller takes to start.
#[tokio::test]
async fn links_that_were_lost_while_nobody_looked_are_restored_at_the_start() {
    let world = World::own(Options::default()).await;
    let ns = world.namespace("start").await.patient(Duration::from_secs(120));
    ns.machine_set("set").replicas(2).create().await;
    ns.wait_running(2).await;
    world.kill_controllers();
    for machine in ns.list::<Machine>().await {
        ns.patch_status::<Machine>(machine.name(), json!({"nodeRef": null})).await;
        change_node(&ns, machine.name(), json!({"metadata": {"annotations": {annotation::MACHINE: null}}}))
            .await;
    }
    world.start_controllers(&[]);
    ns.wait_machines(|all| all.iter().all(|machine| machine.node_name() == Some(machine.name()))).await;
    ns.wait_nodes(|all| all.iter().all(|node| node.annotation(annotation::MACHINE).is_some())).await;
}
