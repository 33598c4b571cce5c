//! Growing: what is created, how much at once, under which names.

use std::collections::BTreeSet;

use serde_json::json;

use super::{World, batches, created, deleting, machine, running};
use crate::Requeue;
use crate::machine_set::Template;
use crate::machine_set::scale::{BATCH_MAX, PASS_MAX, sizes};

// S06
#[test]
fn missing_machines_are_made_from_the_template() {
    let template = json!({
        "metadata": {"labels": {"set": "s", "l": "1"}, "annotations": {"a": "2"}},
        "spec": {"providerSpec": {"value": {"kind": "K", "z": 1}}, "fieldOfTomorrow": {"deep": [1, 2]}},
    });
    let plan = World::new(json!({"template": template}), vec![]).decide();
    let machines = created(&plan);
    assert_eq!(machines.len(), 2);
    assert_ne!(machines[0]["metadata"]["name"], machines[1]["metadata"]["name"]);
    let mut first = machines[0].clone();
    let name = first["metadata"]["name"].take();
    assert!(name.as_str().expect("a name").starts_with("s-"));
    assert_eq!(
        first,
        json!({
            "apiVersion": "machine.openshift.io/v1beta1",
            "kind": "Machine",
            "metadata": {
                "name": null, "generateName": "s-", "namespace": "ns",
                "labels": {"set": "s", "l": "1"}, "annotations": {"a": "2"},
                "finalizers": ["machine.machine.openshift.io"],
                "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "s",
                    "uid": "set-uid", "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {"providerSpec": {"value": {"kind": "K", "z": 1}}, "fieldOfTomorrow": {"deep": [1, 2]}},
        })
    );
}

// S07
#[test]
fn name_and_owner_in_the_template_are_ignored() {
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"}]);
    let metadata = json!({"labels": {"set": "s"}, "name": "fixed", "generateName": "g-", "namespace": "elsewhere",
        "ownerReferences": owner});
    let plan = World::new(json!({"replicas": 1, "template": {"metadata": metadata}}), vec![]).decide();
    let machine = &created(&plan)[0];
    assert!(machine["metadata"]["name"].as_str().expect("a name").starts_with("s-"));
    assert_eq!(machine["metadata"]["generateName"], "s-");
    assert_eq!(machine["metadata"]["namespace"], "ns");
    assert_eq!(machine["metadata"]["ownerReferences"][0]["uid"], "set-uid");
    assert_eq!(machine["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    assert_eq!(machine["spec"], json!({}));
}

// S08
#[test]
fn a_deleting_machine_is_replaced_at_once_and_does_not_count() {
    let world = World::new(json!({"replicas": 2}), vec![running("a"), deleting("b")]);
    assert_eq!(world.work(), ["[create s-]"]);
    assert_eq!(world.report()["status"]["replicas"], 1);
}

// S41
#[test]
fn five_hundred_machines_are_made_in_batches_that_double_and_number_five_hundred() {
    let mut world = World::new(json!({"replicas": 500}), vec![]);
    let sizes_of =
        |world: &World| batches(&world.decide()).iter().map(|batch| batch.len()).collect::<Vec<_>>();
    assert_eq!(sizes_of(&world), [1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64, 53]);
    let plan = world.decide();
    let names: BTreeSet<_> = created(&plan).iter().map(|m| m["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 500);
    assert_eq!(plan.requeue, Requeue::Never);
    world.owned = (0..500).map(|i| machine(&format!("s-{i}"), json!({}))).collect();
    assert!(world.work().is_empty());
}

#[test]
fn a_pass_makes_a_bounded_number_and_asks_for_the_next() {
    let world = World::new(json!({"replicas": 5000}), vec![]);
    let plan = world.decide();
    assert_eq!(created(&plan).len(), PASS_MAX);
    assert_eq!(plan.requeue, Requeue::After(std::time::Duration::ZERO));
}

#[test]
fn batches_double_up_to_a_limit_and_add_up() {
    assert_eq!(sizes(0), Vec::<usize>::new());
    assert_eq!(sizes(1), [1]);
    assert_eq!(sizes(5), [1, 2, 2]);
    assert!(sizes(5000).iter().all(|size| *size <= BATCH_MAX));
}

// S14
#[test]
fn a_creation_without_an_answer_is_repeated_under_its_name_and_nothing_else_is_made() {
    let mut world = World::new(json!({"replicas": 2}), vec![]);
    let names: Vec<_> = created(&world.decide()).iter().map(|m| m["metadata"]["name"].clone()).collect();
    // The second went through and is seen; the first got no answer.
    world.owned = vec![machine(names[1].as_str().expect("a name"), json!({}))];
    world.pending = vec![names[0].as_str().expect("a name").into()];
    world.entropy += 1;
    let again: Vec<_> = created(&world.decide()).iter().map(|m| m["metadata"]["name"].clone()).collect();
    assert_eq!(again, [names[0].clone()]);
}

#[test]
fn a_pending_creation_that_is_no_longer_wanted_is_not_repeated() {
    let mut world = World::new(json!({"replicas": 1}), vec![running("a")]);
    world.pending = vec!["s-lost".into()];
    assert!(world.work().is_empty());
}

#[test]
fn a_pending_creation_that_turned_up_is_not_repeated() {
    let mut world = World::new(json!({"replicas": 2}), vec![deleting("s-lost")]);
    world.pending = vec!["s-lost".into()];
    assert!(created(&world.decide()).iter().all(|machine| machine["metadata"]["name"] != "s-lost"));
}

// S14
#[test]
fn a_failed_pass_is_told_in_a_condition_and_an_event_once() {
    let mut world = World::settled(json!({"replicas": 1}), vec![]);
    world.last_error = Some(r#"machines "s-bcdfg" is forbidden: quota exceeded"#.into());
    let text = r#"machines "s-*" is forbidden: quota exceeded"#;
    assert_eq!(
        world.plan(),
        [
            "status conditions",
            &format!("Warning ReconcileError failed to sync machines: {text}"),
            "[create s-]",
            "after 500ms"
        ]
    );
    assert_eq!(world.told("MachinesCreated"), format!("False SyncError: {text}"));
    world.apply_status(&world.report());
    // The same refusal, for another name.
    world.last_error = Some(r#"machines "s-zzzzz" is forbidden: quota exceeded"#.into());
    assert_eq!(world.plan(), ["[create s-]", "after 500ms"]);
}

#[test]
fn a_pass_that_goes_through_takes_the_condition_back_once_nothing_is_left_to_do() {
    let mut world = World::settled(json!({"replicas": 1}), vec![]);
    world.last_error = Some("refused".into());
    world.apply_status(&world.report());
    world.last_error = None;
    // After a restart nothing is known of the error, and the work is still to be done.
    assert_eq!(world.plan(), ["[create s-]"]);
    world.owned = vec![running("a")];
    assert_eq!(world.told("MachinesCreated"), "True : ");
    world.apply_status(&world.report());
    assert_eq!(world.plan(), Vec::<String>::new());
}

#[test]
fn an_error_is_taken_back_when_what_failed_is_no_longer_wanted_but_not_while_it_is_blocked() {
    let mut world = World::settled(json!({"replicas": 1}), vec![]);
    world.last_error = Some("refused".into());
    world.apply_status(&world.report());
    world.template = Template::Missing;
    assert!(world.told("MachinesCreated").starts_with("False SyncError"));
    world.template = Template::Unjudged;
    world.set.spec.replicas = Some(0);
    assert_eq!(world.told("MachinesCreated"), "True : ");
}
