//! Tables of looks at a Node among Machines and other Nodes.

use mapi_api::{Machine, Node, Object, Timestamp};
use serde_json::{Value, json};

use super::{Candidates, Facts, decide, machine_of, node_of};
use crate::{Action, Kind, Requeue, Sub};

fn now() -> Timestamp {
    "2026-01-01T12:00:00.5Z".parse().expect("timestamp")
}

/// Everything that the caches hold.
#[derive(Default)]
struct World {
    machines: Vec<Machine>,
    nodes: Vec<Node>,
    is_migration_on: bool,
}

fn addresses(ips: &[&str]) -> Value {
    ips.iter().map(|ip| json!({"type": "InternalIP", "address": ip})).collect()
}

fn machine(name: &str, id: &str, ips: &[&str], extra: Value) -> Value {
    let mut value = json!({
        "metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"providerID": id}, "status": {"addresses": addresses(ips)}});
    merge(&mut value, extra);
    value
}

fn node(name: &str, id: &str, ips: &[&str], extra: Value) -> Value {
    let mut value = json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1"},
        "spec": {"providerID": id}, "status": {"addresses": addresses(ips)}});
    merge(&mut value, extra);
    value
}

/// The Node `n` as it is once it has been linked to Machine `m` and nothing more is wanted.
fn annotated() -> Value {
    json!({"metadata": {"annotations": {"machine.openshift.io/machine": "ns/m"}}})
}

fn linked() -> Value {
    json!({"status": {"nodeRef": {"kind": "Node", "name": "n", "uid": "uid-n"}}})
}

fn merge(value: &mut Value, patch: Value) {
    match (value, patch) {
        (Value::Object(object), Value::Object(patch)) => {
            for (key, change) in patch {
                merge(object.entry(key).or_insert(Value::Null), change);
            }
        }
        (value, patch) => *value = patch,
    }
}

impl World {
    fn of(machines: Vec<Value>, nodes: Vec<Value>) -> Self {
        let machines = machines.into_iter().map(|m| serde_json::from_value(m).expect("machine")).collect();
        let nodes = nodes.into_iter().map(|n| serde_json::from_value(n).expect("node")).collect();
        Self { machines, nodes, is_migration_on: false }
    }

    fn machines_for(&self, node: &Node) -> Candidates<'_, Machine> {
        let address = node.internal_ips().next();
        let by_id = |m: &&Machine| node.provider_id().is_some() && m.provider_id() == node.provider_id();
        let by_address =
            |m: &&Machine| address.is_some_and(|address| m.internal_ips().any(|ip| ip == address));
        Candidates {
            by_provider_id: self.machines.iter().filter(by_id).collect(),
            by_address: self.machines.iter().filter(by_address).collect(),
        }
    }

    fn nodes_for(&self, machine: &Machine) -> Candidates<'_, Node> {
        let address = machine.internal_ips().next();
        let by_id = |n: &&Node| machine.provider_id().is_some() && n.provider_id() == machine.provider_id();
        let by_address = |n: &&Node| address.is_some_and(|address| n.internal_ips().any(|ip| ip == address));
        Candidates {
            by_provider_id: self.nodes.iter().filter(by_id).collect(),
            by_address: self.nodes.iter().filter(by_address).collect(),
        }
    }

    /// One look at the first Node: what it writes, as text, or the error.
    fn look(&self) -> Result<Vec<String>, String> {
        self.look_at(&self.nodes[0])
    }

    fn look_at(&self, node: &Node) -> Result<Vec<String>, String> {
        let machine = machine_of(node, &self.machines_for(node));
        let counterpart = match &machine {
            Ok(Some(machine)) => node_of(machine, &self.nodes_for(machine)),
            Ok(None) | Err(_) => Ok(None),
        };
        let facts = Facts { node, machine, counterpart, is_migration_on: self.is_migration_on, now: now() };
        let plan = decide(&facts);
        let lines = plan.actions.iter().map(|action| match action {
            Action::Patch { target, sub, patch } => {
                let kind = if target.kind == Kind::Node { "node" } else { "machine" };
                let part = if *sub == Sub::Status { "status" } else { "main" };
                format!("{kind} {} {part} {patch}", target.key)
            }
            other => panic!("nodelink only patches: {other:?}"),
        });
        match plan.requeue {
            Requeue::Never => Ok(lines.collect()),
            Requeue::Backoff(error) => Err(error),
            Requeue::After(delay) => panic!("nodelink waits for changes, not for {delay:?}"),
        }
    }

    /// Which Node a change of a Machine wakes.
    fn woken(&self) -> Option<String> {
        let machine = &self.machines[0];
        node_of(machine, &self.nodes_for(machine)).ok().flatten().map(|node| node.name().to_owned())
    }
}

const LINK: &str = concat!(
    r#"machine ns/m status {"status":{"lastUpdated":"2026-01-01T12:00:00Z","#,
    r#""nodeRef":{"kind":"Node","name":"n","uid":"uid-n"}}}"#
);
const ANNOTATE: &str = r#"node n main {"metadata":{"annotations":{"machine.openshift.io/machine":"ns/m"}}}"#;

// N01, N02
#[test]
fn the_same_provider_id_or_else_the_same_address_links() {
    for (why, machine, node) in [
        ("provider id", machine("m", "c:///1", &[], json!({})), node("n", "c:///1", &[], json!({}))),
        ("address", machine("m", "", &["10.0.0.1"], json!({})), node("n", "", &["10.0.0.1"], json!({}))),
        (
            "one has no id",
            machine("m", "", &["10.0.0.1"], json!({})),
            node("n", "c:///1", &["10.0.0.1"], json!({})),
        ),
        (
            "the id wins",
            machine("m", "c:///1", &["10.0.0.9"], json!({})),
            node("n", "c:///1", &["10.0.0.1"], json!({})),
        ),
    ] {
        assert_eq!(
            World::of(vec![machine], vec![node]).look(),
            Ok(vec![LINK.into(), ANNOTATE.into()]),
            "{why}"
        );
    }
}

// N03
#[test]
fn a_node_that_no_machine_matches_is_left_alone() {
    for node in [node("n", "c:///2", &["10.0.0.2"], json!({})), node("n", "", &[], json!({}))] {
        let world = World::of(vec![machine("m", "c:///1", &["10.0.0.1"], json!({}))], vec![node]);
        assert_eq!(world.look(), Ok(vec![]));
    }
}

#[test]
fn provider_ids_are_compared_to_the_letter() {
    let world =
        World::of(vec![machine("m", "c:///A", &[], json!({}))], vec![node("n", "c:///a", &[], json!({}))]);
    assert_eq!(world.look(), Ok(vec![]));
}

// N04, N07
#[test]
fn two_machines_with_the_provider_id_of_a_node_are_an_error_that_names_them() {
    let machines = ["m", "o"].map(|name| machine(name, "c:///1", &[], json!({}))).into();
    let error = World::of(machines, vec![node("n", "c:///1", &[], json!({}))]).look();
    let text = "cannot link node `n`: machine `ns/m` and machine `ns/o` have its provider id `c:///1`, one is allowed";
    assert_eq!(error, Err(text.into()));
}

#[test]
fn two_nodes_with_the_provider_id_of_a_machine_are_an_error_and_neither_is_linked() {
    let nodes = ["n", "o"].map(|name| node(name, "c:///1", &[], json!({}))).into();
    let world = World::of(vec![machine("m", "c:///1", &[], json!({}))], nodes);
    let text =
        "cannot link machine `ns/m`: node `n` and node `o` have its provider id `c:///1`, one is allowed";
    for node in &world.nodes {
        assert_eq!(world.look_at(node), Err(text.into()));
    }
}

#[test]
fn two_nodes_or_machines_with_one_address_are_an_error() {
    let nodes = ["n", "o"].map(|name| node(name, "", &["10.0.0.1"], json!({}))).into();
    assert!(World::of(vec![machine("m", "", &["10.0.0.1"], json!({}))], nodes).look().is_err());
    let machines = ["m", "o"].map(|name| machine(name, "", &["10.0.0.1"], json!({}))).into();
    assert!(World::of(machines, vec![node("n", "", &["10.0.0.1"], json!({}))]).look().is_err());
}

// N05
#[test]
fn an_address_used_again_does_not_link_two_different_provider_ids() {
    let world = World::of(
        vec![machine("m", "c:///old", &["10.0.0.1"], json!({}))],
        vec![node("n", "c:///new", &["10.0.0.1"], json!({}))],
    );
    assert_eq!(world.look(), Ok(vec![]));
    assert_eq!(world.woken(), None);
}

#[test]
fn an_address_used_again_links_the_machine_that_is_meant() {
    let old = machine("old", "c:///old", &["10.0.0.1"], json!({}));
    let new = machine("m", "", &["10.0.0.1"], json!({}));
    let world = World::of(vec![old, new], vec![node("n", "c:///new", &["10.0.0.1"], json!({}))]);
    assert_eq!(world.look(), Ok(vec![LINK.into(), ANNOTATE.into()]));
}

#[test]
fn a_node_with_the_address_of_a_machine_that_is_another_node_is_left_alone() {
    let stranger = node("stranger", "", &["10.0.0.1"], json!({}));
    let world = World::of(
        vec![machine("m", "c:///1", &["10.0.0.1"], json!({}))],
        vec![stranger, node("n", "c:///1", &["10.0.0.1"], json!({}))],
    );
    assert_eq!(
        world.look_at(&world.nodes[0]),
        Ok(vec![]),
        "else the two would take the reference from each other"
    );
    assert_eq!(world.look_at(&world.nodes[1]), Ok(vec![LINK.into(), ANNOTATE.into()]));
}

// N06
#[test]
fn the_first_address_of_the_asking_side_is_looked_for_among_all_of_the_other() {
    let world = |ips: &[&str]| {
        World::of(vec![machine("m", "", &["b"], json!({}))], vec![node("n", "", ips, json!({}))])
    };
    assert_eq!(world(&["a", "b"]).woken(), Some("n".into()));
    assert_eq!(world(&["a", "b"]).look(), Ok(vec![]));
    assert_eq!(world(&["b", "a"]).look(), Ok(vec![LINK.into(), ANNOTATE.into()]));
}

#[test]
fn a_node_found_by_its_own_first_address_is_linked_though_the_machine_lists_another_first() {
    let world =
        World::of(vec![machine("m", "", &["b", "a"], json!({}))], vec![node("n", "", &["a"], json!({}))]);
    assert_eq!(world.look(), Ok(vec![LINK.into(), ANNOTATE.into()]));
}

// N08
#[test]
fn a_node_that_is_being_deleted_changes_nothing() {
    let deleting =
        || node("n", "c:///1", &[], json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    for extra in [json!({}), linked()] {
        assert_eq!(World::of(vec![machine("m", "c:///1", &[], extra)], vec![deleting()]).look(), Ok(vec![]));
    }
}

// N09
#[test]
fn a_flip_of_readiness_writes_nothing_because_whoever_counts_it_watches_nodes() {
    for status in ["True", "False", "Unknown"] {
        let mut extra = annotated();
        merge(&mut extra, json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}));
        let world =
            World::of(vec![machine("m", "c:///1", &[], linked())], vec![node("n", "c:///1", &[], extra)]);
        assert_eq!(world.look(), Ok(vec![]), "{status}");
    }
}

// N10
#[test]
fn a_machine_that_lost_its_reference_gets_it_back() {
    let world =
        World::of(vec![machine("m", "c:///1", &[], json!({}))], vec![node("n", "c:///1", &[], annotated())]);
    assert_eq!(world.look(), Ok(vec![LINK.into()]));
}

// N11
#[test]
fn a_node_of_the_same_name_with_a_new_identity_renews_the_reference() {
    let stale = json!({"status": {"nodeRef": {"kind": "Node", "name": "n", "uid": "uid-of-the-first-n"}}});
    let world =
        World::of(vec![machine("m", "c:///1", &[], stale)], vec![node("n", "c:///1", &[], annotated())]);
    assert_eq!(world.look(), Ok(vec![LINK.into()]));
}

// N12, N13, N19
#[test]
fn the_wishes_of_the_machine_win_and_nothing_is_taken_away() {
    let extra = json!({
        "metadata": {"labels": {"own": "not copied"}},
        "spec": {"metadata": {
            "labels": {"zone": "a", "same": "1"},
            "annotations": {"note": "new", "machine.openshift.io/machine": "overridden"}}},
        "status": linked()["status"].clone()});
    let present = json!({"metadata": {
        "labels": {"zone": "b", "same": "1", "dropped-by-the-machine": "kept"}, "annotations": {"note": "old"}}});
    let world = World::of(vec![machine("m", "c:///1", &[], extra)], vec![node("n", "c:///1", &[], present)]);
    let patch = concat!(
        r#"node n main {"metadata":{"annotations":{"machine.openshift.io/machine":"overridden","note":"new"},"#,
        r#""labels":{"zone":"a"}}}"#
    );
    assert_eq!(world.look(), Ok(vec![patch.into()]));
}

// N14, N15
#[test]
fn taints_are_added_by_key_and_effect_behind_those_that_are_there() {
    let taint = |key: &str, value: &str, effect: &str| json!({"key": key, "value": value, "effect": effect});
    let look = |present: Vec<Value>, wanted: Vec<Value>| {
        let mut node_extra = annotated();
        merge(&mut node_extra, json!({"spec": {"taints": present}}));
        let mut machine_extra = linked();
        merge(&mut machine_extra, json!({"spec": {"taints": wanted}}));
        let machines = vec![machine("m", "c:///1", &[], machine_extra)];
        World::of(machines, vec![node("n", "c:///1", &[], node_extra)]).look().expect("no error")
    };
    let other = || taint("other", "o", "NoExecute");
    let line = |taints: Value| vec![format!("node n main {}", json!({"spec": {"taints": taints}}))];
    let wanted = || taint("k", "v", "NoSchedule");
    assert_eq!(look(vec![other()], vec![wanted()]), line(json!([other(), wanted()])), "missing");
    assert!(look(vec![wanted(), other()], vec![wanted()]).is_empty(), "present");
    assert!(look(vec![taint("k", "x", "NoSchedule")], vec![wanted()]).is_empty(), "the node's value stays");
    let effect = taint("k", "v", "NoExecute");
    assert_eq!(look(vec![effect.clone()], vec![wanted()]), line(json!([effect, wanted()])), "another effect");
    assert_eq!(
        look(vec![], vec![wanted(), wanted()]),
        line(json!([wanted()])),
        "asked for twice, added once"
    );
}

// N17
#[test]
fn what_is_written_is_not_written_again() {
    // The Machine's write went through, the Node's was refused: the next look writes the Node alone.
    let world =
        World::of(vec![machine("m", "c:///1", &[], linked())], vec![node("n", "c:///1", &[], json!({}))]);
    assert_eq!(world.look(), Ok(vec![ANNOTATE.into()]));
    let world =
        World::of(vec![machine("m", "c:///1", &[], linked())], vec![node("n", "c:///1", &[], annotated())]);
    assert_eq!(world.look(), Ok(vec![]));
}

#[test]
fn a_machine_that_is_being_deleted_is_linked_as_well() {
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let world =
        World::of(vec![machine("m", "c:///1", &[], deleting)], vec![node("n", "c:///1", &[], json!({}))]);
    assert_eq!(world.look(), Ok(vec![LINK.into(), ANNOTATE.into()]));
}

#[test]
fn a_machine_that_cluster_api_owns_is_left_alone_with_its_node() {
    let theirs = json!({"status": {"authoritativeAPI": "ClusterAPI"}});
    let mut world =
        World::of(vec![machine("m", "c:///1", &[], theirs)], vec![node("n", "c:///1", &[], json!({}))]);
    world.is_migration_on = true;
    assert_eq!(world.look(), Ok(vec![]));
}
