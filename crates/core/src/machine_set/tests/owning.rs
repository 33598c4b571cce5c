//! Who belongs to a set, and which sets a change concerns.

use mapi_api::{Key, MachineSet};
use serde_json::json;

use super::{World, deleting, labels, machine, orphan, parsed_machine, running, with_node};
use crate::Action;
use crate::machine_set::{Selectors, is_relevant, is_relevant_node, sets_of};

// S01
#[test]
fn a_set_that_is_going_is_left_to_the_garbage_collector() {
    let mut world = World::new(json!({}), vec![]);
    world.set.metadata.deletion_timestamp = Some(mapi_api::Time(world.now));
    assert_eq!(world.plan(), Vec::<String>::new());
}

// S09
#[test]
fn a_matching_orphan_is_adopted_with_a_full_reference_and_counted() {
    let mut world = World::new(json!({"replicas": 1}), vec![]);
    world.orphans = vec![orphan("a", json!({"set": "s", "more": "x"})), orphan("b", json!({"set": "other"}))];
    assert_eq!(world.work(), ["[owners of a: set-uid]"]);
    assert_eq!(world.report()["status"]["replicas"], 1);
    let Some(Action::Batch(moves)) = world.decide().actions.pop() else { panic!("a batch is last") };
    let Action::Patch { target, patch, .. } = &moves[0] else { panic!("a patch") };
    assert_eq!(target.owner_uid.as_deref(), Some("set-uid"), "the set waits for its own adoption");
    assert_eq!(
        patch["metadata"]["ownerReferences"],
        json!([{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "s", "uid": "set-uid",
            "controller": true, "blockOwnerDeletion": true}])
    );
}

#[test]
fn an_adopted_machine_keeps_its_other_owners() {
    let mut world = World::new(json!({"replicas": 1}), vec![]);
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "other"}]);
    world.orphans = vec![machine("a", json!({"metadata": {"ownerReferences": owner}}))];
    assert_eq!(world.work(), ["[owners of a: other set-uid]"]);
}

#[test]
fn adopting_waits_for_a_write_that_proves_the_set_unchanged() {
    let mut world = World::settled(json!({"replicas": 1}), vec![machine("a", json!({}))]);
    world.orphans = std::mem::take(&mut world.owned);
    world.orphans[0] = orphan("a", json!({"set": "s"}));
    world.last_status_write = Some(world.now);
    assert_eq!(world.plan(), ["status observedGeneration", "[owners of a: set-uid]"]);
}

// S10
#[test]
fn an_adoption_that_conflicts_leads_to_no_surplus_machine() {
    let mut world = World::new(json!({"replicas": 2}), vec![]);
    world.orphans = vec![orphan("a", json!({"set": "s"}))];
    // A refused adoption ends the plan before the creation; the orphan counts in the next round too.
    assert_eq!(world.work(), ["[owners of a: set-uid]", "[create s-]"]);
    world.orphans.push(orphan("b", json!({"set": "s"})));
    assert_eq!(world.work(), ["[owners of a: set-uid, owners of b: set-uid]"]);
}

#[test]
fn a_deleting_orphan_is_not_adopted() {
    let mut world = World::new(json!({"replicas": 0}), vec![]);
    world.orphans = vec![machine(
        "a",
        json!({"metadata": {"ownerReferences": null, "deletionTimestamp": "2025-06-15T00:00:00Z"}}),
    )];
    assert!(world.work().is_empty());
}

// S12
#[test]
fn a_machine_that_stops_matching_is_released_and_replaced() {
    let stray = machine("a", json!({"metadata": {"labels": {"set": "quarantine"}}}));
    let world = World::new(json!({"replicas": 1}), vec![stray]);
    assert_eq!(world.work(), ["[owners of a: ]", "[create s-]"]);
    assert_eq!(world.report()["status"]["replicas"], 0);
}

// S12
#[test]
fn a_released_machine_is_not_adopted_again() {
    let mut world = World::new(json!({"replicas": 0}), vec![]);
    world.orphans = vec![orphan("a", json!({"set": "quarantine"}))];
    assert!(world.work().is_empty());
}

#[test]
fn a_deleting_machine_that_stops_matching_is_left_alone() {
    let mut stray = deleting("a");
    let mut changed = (*stray.machine).clone();
    changed.metadata.labels = Some(labels(&[("set", "x")]));
    stray.machine = changed.into();
    assert!(World::new(json!({"replicas": 0}), vec![stray]).work().is_empty());
}

fn selectors() -> Selectors {
    let set = |namespace: &str, name: &str, selector: serde_json::Value| -> MachineSet {
        let metadata = json!({"namespace": namespace, "name": name});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"selector": selector}})).expect("a set")
    };
    let mut selectors = Selectors::default();
    for set in [
        set("ns", "one", json!({"matchLabels": {"cluster": "c", "set": "one"}})),
        set("ns", "two", json!({"matchLabels": {"cluster": "c", "set": "two"}})),
        set("ns", "all", json!({"matchExpressions": [{"key": "cluster", "operator": "Exists"}]})),
        set("ns", "empty", json!({})),
        set("ns", "broken", json!({"matchLabels": {"-": "x"}})),
        set("other", "one", json!({"matchLabels": {"cluster": "c", "set": "one"}})),
    ] {
        selectors.put(&set);
    }
    selectors
}

// S11, S13
#[test]
fn a_machine_concerns_its_owner_or_every_set_that_could_adopt_it() {
    let mut selectors = selectors();
    let of = |selectors: &Selectors, member: super::Member| {
        let keys = sets_of(parsed_machine(&member), selectors);
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(of(&selectors, machine("a", json!({}))), ["ns/s"]);
    let foreign =
        json!([{"apiVersion": "x/v1", "kind": "Pool", "name": "p", "uid": "u", "controller": true}]);
    let foreign = json!({"metadata": {"ownerReferences": foreign, "labels": {"cluster": "c", "set": "one"}}});
    assert!(of(&selectors, machine("a", foreign)).is_empty());
    assert!(of(&selectors, orphan("a", json!(null))).is_empty());
    assert!(of(&selectors, orphan("a", json!({}))).is_empty());
    assert!(of(&selectors, orphan("a", json!({"set": "one"}))).is_empty());
    assert_eq!(of(&selectors, orphan("a", json!({"cluster": "c", "set": "one"}))), ["ns/one", "ns/all"]);
    selectors.remove(&Key::new("ns", "one"));
    assert_eq!(
        selectors.matching("ns", &labels(&[("cluster", "c"), ("set", "one")])),
        [Key::new("ns", "all")]
    );
}

// S11
#[test]
fn a_set_made_anew_under_an_old_name_does_not_own_the_old_ones_machines() {
    // Facts hold Machines by the UID of their owner: one of another UID is neither owned nor an orphan.
    let world = World::new(json!({"replicas": 1}), vec![]);
    assert_eq!(world.work(), ["[create s-]"]);
}

#[test]
fn an_edited_selector_is_found_under_its_new_labels_only() {
    let mut selectors = selectors();
    let edited = json!({"metadata": {"namespace": "ns", "name": "one"}, "spec": {"selector": {"matchLabels": {"x": "y"}}}});
    selectors.put(&serde_json::from_value(edited).expect("a set"));
    assert_eq!(
        selectors.matching("ns", &labels(&[("set", "one"), ("cluster", "c")])),
        [Key::new("ns", "all")]
    );
    assert_eq!(selectors.matching("ns", &labels(&[("x", "y")])), [Key::new("ns", "one")]);
}

#[test]
fn only_what_a_set_counts_by_wakes_it() {
    let before = machine("a", json!({}));
    let check = |fields: serde_json::Value| {
        is_relevant(parsed_machine(&before), parsed_machine(&machine("a", fields)))
    };
    assert!(!check(
        json!({"status": {"phase": "Running", "addresses": []}, "metadata": {"annotations": {"x": "y"}}})
    ));
    assert!(check(json!({"status": {"nodeRef": {"name": "n"}}})));
    assert!(check(json!({"metadata": {"deletionTimestamp": "2025-06-15T00:00:00Z"}})));
    assert!(check(json!({"metadata": {"labels": {"set": "x"}}})));
    assert!(check(json!({"metadata": {"ownerReferences": null}})));
    assert!(check(json!({"metadata": {"uid": "made anew"}})));
    let node = |member: super::Member| member.node.expect("has a node");
    assert!(!is_relevant_node(&node(running("a")), &node(running("a"))));
    assert!(is_relevant_node(&node(running("a")), &node(with_node("a", "Unknown", 1))));
}
