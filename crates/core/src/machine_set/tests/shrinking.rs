//! Shrinking: who goes first.

use serde_json::{Value, json};

use super::{DAY, Member, NOW, World, at, deleting, machine, running, with_node};
use crate::machine_set::victims::{Policy, pick, priority};

fn aged(name: &str, days: i64) -> Member {
    machine(name, json!({"metadata": {"creationTimestamp": at(NOW - days * DAY).to_string()}}))
}

fn with(member: Member, metadata: Value) -> Member {
    let name = member.machine.metadata.name.clone().expect("a name");
    let created = member.machine.metadata.creation_timestamp.as_ref().map(|t| t.0.to_string());
    let mut fields = json!({"metadata": metadata});
    if let Some(created) = created {
        fields["metadata"]["creationTimestamp"] = created.into();
    }
    Member { node: member.node, ..machine(&name, fields) }
}

fn marked(member: Member) -> Member {
    with(member, json!({"annotations": {"machine.openshift.io/delete-machine": "false"}}))
}

fn failed(name: &str, days: i64) -> Member {
    let created = at(NOW - days * DAY).to_string();
    machine(
        name,
        json!({"metadata": {"creationTimestamp": created}, "status": {"errorReason": "CreateError"}}),
    )
}

/// Names of the victims among members, which come sorted by name.
fn victims(policy: Policy, members: &[Member], count: usize) -> Vec<String> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|member| member.machine.metadata.name.clone());
    let picked = pick(policy, &members, count, at(NOW));
    picked.into_iter().map(|member| member.machine.metadata.name.clone().expect("a name")).collect()
}

// S16, S17
#[test]
fn the_surplus_is_deleted_by_uid_in_one_batch() {
    // An object that is gone already counts as deleted: `Action::Delete` says so. The wait is a hold of the caches.
    let world = World::new(json!({"replicas": 1}), vec![running("a"), running("b"), running("c")]);
    assert_eq!(world.work(), ["[delete a uid-a, delete b uid-b]"]);
}

// S18
#[test]
fn as_many_go_as_are_too_many() {
    let members = [running("a"), running("b")];
    assert!(victims(Policy::Random, &members, 0).is_empty());
    assert_eq!(victims(Policy::Random, &members, 2), ["a", "b"]);
    assert_eq!(victims(Policy::Random, &members, 3), ["a", "b"]);
}

// S19
#[test]
fn random_takes_a_failed_machine_first() {
    assert_eq!(victims(Policy::Random, &[running("a"), failed("b", 1), running("c")], 2), ["b", "a"]);
}

// S20
#[test]
fn random_takes_deleting_before_marked_and_failed_before_those_without_a_node_before_running() {
    let members =
        [running("a"), machine("b", json!({})), failed("c", 1), marked(running("d")), deleting("e")];
    assert_eq!(victims(Policy::Random, &members, 5), ["e", "d", "c", "b", "a"]);
    let priority = |member: &Member| priority(Policy::Random, &member.machine, at(NOW));
    assert_eq!(members.iter().map(priority).collect::<Vec<_>>(), [20.0, 40.0, 50.0, 50.0, 100.0]);
}

// S21
#[test]
fn random_takes_a_machine_with_the_older_mark_before_one_without_a_node() {
    let legacy = with(
        running("b"),
        json!({"annotations": {"machine.openshift.io/cluster-api-delete-machine": "yes"}}),
    );
    assert_eq!(victims(Policy::Random, &[machine("a", json!({})), legacy], 1), ["b"]);
}

// S22
#[test]
fn a_mark_with_an_empty_value_has_no_effect() {
    let empty = json!({"annotations": {
        "machine.openshift.io/delete-machine": "", "machine.openshift.io/cluster-api-delete-machine": ""}});
    for policy in [Policy::Random, Policy::Newest, Policy::Oldest] {
        let members = [aged("a", 5), with(aged("b", 5), empty.clone())];
        assert_eq!(victims(policy, &members, 1), ["a"], "{policy:?}");
    }
}

// S23
#[test]
fn newest_takes_deleting_then_the_youngest() {
    let members = [aged("a", 1), aged("b", 5), aged("c", 10), aged("d", 10), deleting("e")];
    assert_eq!(victims(Policy::Newest, &members, 3), ["e", "a", "b"]);
}

// S24
#[test]
fn newest_takes_a_marked_or_failed_machine_before_a_younger_one() {
    let legacy = json!({"annotations": {"machine.openshift.io/cluster-api-delete-machine": "yes"}});
    for old in [marked(aged("z", 10)), with(aged("z", 10), legacy), failed("z", 10)] {
        assert_eq!(victims(Policy::Newest, &[aged("a", 1), aged("b", 5), old], 1), ["z"]);
    }
    // One without a creation time scores as high as a marked one: the mark decides.
    assert_eq!(victims(Policy::Newest, &[machine("a", json!({})), marked(aged("z", 10))], 1), ["z"]);
}

// S25
#[test]
fn oldest_takes_the_oldest_and_the_one_without_a_creation_time_last() {
    let members = [aged("a", 1), aged("b", 5), aged("c", 10), aged("d", 10), machine("e", json!({}))];
    assert_eq!(victims(Policy::Oldest, &members, 5), ["c", "d", "b", "a", "e"]);
}

// S26
#[test]
fn oldest_tells_ages_of_years_apart_and_lets_a_mark_win() {
    let mut members = vec![aged("a", 5), aged("b", 500), aged("c", 1000), aged("d", 3750)];
    assert_eq!(victims(Policy::Oldest, &members, 3), ["d", "c", "b"]);
    members.push(marked(aged("e", 1)));
    assert_eq!(victims(Policy::Oldest, &members, 3), ["e", "d", "c"]);
}

// S27
#[test]
fn an_unknown_policy_matters_only_when_somebody_must_go() {
    let mut world = World::settled(json!({"replicas": 1, "deletePolicy": "Foo"}), vec![running("a")]);
    assert_eq!(world.plan(), Vec::<String>::new());
    world.owned.push(running("b"));
    assert!(world.work().is_empty());
    assert_eq!(
        world.told("SpecValid"),
        "False InvalidField: spec.deletePolicy: unsupported delete policy Foo, must be one of 'Random', 'Newest', or \
         'Oldest'"
    );
}

// S28
#[test]
fn the_same_members_give_the_same_victims_in_whatever_order_they_come() {
    let names: Vec<_> = (0..20).map(|i| format!("m{i:02}")).collect();
    let forth: Vec<_> = names.iter().map(|name| running(name)).collect();
    let back: Vec<_> = names.iter().rev().map(|name| running(name)).collect();
    assert_eq!(victims(Policy::Random, &forth, 7), names[..7]);
    assert_eq!(victims(Policy::Random, &back, 7), names[..7]);
}

#[test]
fn among_equals_a_machine_whose_node_is_not_ready_goes_first() {
    let members = [running("a"), with_node("b", "Unknown", NOW - DAY), running("c")];
    assert_eq!(victims(Policy::Random, &members, 1), ["b"]);
}

#[test]
fn scaling_down_spares_the_machines_that_nobody_marked() {
    let world = World::new(json!({"replicas": 2}), vec![running("a"), marked(running("b")), running("c")]);
    assert_eq!(world.work(), ["[delete b uid-b]"]);
}
