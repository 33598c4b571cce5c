//! The status: what counts, and when it is written.

use std::time::Duration;

use serde_json::{Value, json};

use super::{DAY, NOW, World, at, machine, running, with_node};
use crate::Requeue;

fn counts(world: &World) -> [Value; 4] {
    let status = &world.report()["status"];
    ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"]
        .map(|field| status[field].clone())
}

// S29
#[test]
fn only_machines_whose_node_is_ready_count_as_ready() {
    let members = vec![
        machine("a", json!({"status": {"nodeRef": {"name": "gone"}}})),
        with_node("b", "False", NOW - DAY),
        with_node("c", "Unknown", NOW - DAY),
        running("d"),
        machine("e", json!({})),
    ];
    assert_eq!(counts(&World::new(json!({"replicas": 5}), members)), [5, 5, 1, 1]);
}

// S30
#[test]
fn a_node_that_just_became_ready_is_available_without_a_minimum() {
    let world = World::settled(json!({"replicas": 1}), vec![with_node("a", "True", NOW)]);
    assert_eq!(world.set.status.available_replicas, Some(1));
    assert_eq!(world.plan(), Vec::<String>::new());
}

// S31
#[test]
fn a_node_is_available_strictly_after_its_minimum_and_looked_at_then() {
    let spec = json!({"replicas": 1, "minReadySeconds": 300});
    let check = |since: i64, available: i32, requeue: Requeue| {
        let world = World::settled(spec.clone(), vec![with_node("a", "True", since)]);
        assert_eq!(world.set.status.ready_replicas, Some(1));
        assert_eq!((world.set.status.available_replicas, world.decide().requeue), (Some(available), requeue));
    };
    check(NOW, 0, Requeue::After(Duration::from_millis(300_001)));
    check(NOW - 299, 0, Requeue::After(Duration::from_millis(1001)));
    check(NOW - 300, 0, Requeue::After(Duration::from_millis(1)));
    check(NOW - 301, 1, Requeue::Never);
    check(NOW - 700, 1, Requeue::Never);
}

#[test]
fn the_first_of_several_nodes_to_become_available_decides_when_to_look() {
    let members =
        vec![with_node("a", "True", NOW - 10), with_node("b", "True", NOW - 200), machine("c", json!({}))];
    let world = World::settled(json!({"replicas": 3, "minReadySeconds": 300}), members);
    assert_eq!(world.decide().requeue, Requeue::After(Duration::from_millis(100_001)));
}

#[test]
fn an_absurd_minimum_is_never_reached_and_does_no_harm() {
    let spec = json!({"replicas": 1, "minReadySeconds": i64::MAX});
    let world = World::settled(spec, vec![running("a")]);
    assert_eq!((world.set.status.available_replicas, world.decide().requeue), (Some(0), Requeue::Never));
}

// S32
#[test]
fn a_machine_that_lacks_a_label_of_the_template_is_not_fully_labelled() {
    let template = json!({"metadata": {"labels": {"set": "s", "b": "1"}}});
    let world = World::new(json!({"replicas": 1, "template": template}), vec![running("a")]);
    assert_eq!(counts(&world), [1, 0, 1, 1]);
}

// S33
#[test]
fn the_selector_is_reported_as_the_server_would_print_it() {
    let selector =
        json!({"matchExpressions": [{"key": "role", "operator": "In", "values": ["worker", "infra"]}]});
    let template = json!({"metadata": {"labels": {"role": "infra"}}});
    let world = World::new(json!({"replicas": 0, "selector": selector, "template": template}), vec![]);
    assert_eq!(world.report()["status"]["labelSelector"], "role in (infra,worker)");
}

// S34
#[test]
fn a_missing_selector_text_alone_is_written() {
    let mut world = World::settled(json!({"replicas": 1}), vec![running("a")]);
    world.set.status.label_selector = None;
    assert_eq!(world.report(), json!({"status": {"labelSelector": "set=s"}}));
}

// S35
#[test]
fn a_generation_alone_is_written() {
    let mut world = World::settled(json!({"replicas": 1}), vec![running("a")]);
    world.set.metadata.generation = Some(4);
    assert_eq!(world.report(), json!({"status": {"observedGeneration": 4}}));
}

// S36
#[test]
fn nothing_is_written_when_nothing_changed() {
    let world = World::settled(json!({"replicas": 1}), vec![running("a")]);
    assert_eq!(world.plan(), Vec::<String>::new());
}

// S37
#[test]
fn a_status_that_was_refused_is_written_by_the_next_round() {
    let mut world = World::settled(json!({"replicas": 1}), vec![running("a")]);
    world.owned[0] = machine("a", json!({}));
    let refused = world.report();
    world.set.metadata.resource_version = Some("8".into());
    assert_eq!(world.report(), refused);
    assert_eq!(refused, json!({"status": {"readyReplicas": 0, "availableReplicas": 0}}));
}

#[test]
fn conditions_of_other_writers_stay_in_the_list() {
    let mut world = World::new(json!({"replicas": 0}), vec![]);
    world.set.status.conditions =
        serde_json::from_value(json!([{"type": "Foreign", "status": "True", "lastTransitionTime": null}]))
            .expect("list");
    let conditions = world.report()["status"]["conditions"].clone();
    let types: Vec<_> = conditions.as_array().expect("a list").iter().map(|c| c["type"].clone()).collect();
    assert_eq!(types, ["Foreign", "SpecValid"]);
}

#[test]
fn a_moving_count_is_written_twice_a_second_and_the_last_one_always() {
    let mut world = World::settled(json!({"replicas": 1}), vec![machine("a", json!({}))]);
    world.owned[0] = running("a");
    world.last_status_write = Some(at(NOW) - Duration::from_millis(100));
    assert_eq!(world.plan(), ["after 400ms"]);
    world.now += Duration::from_millis(400);
    assert_eq!(world.plan(), ["status availableReplicas readyReplicas"]);
}

#[test]
fn a_clock_that_was_set_back_does_not_hold_the_status_up() {
    let mut world = World::new(json!({"replicas": 0}), vec![]);
    world.last_status_write = Some(at(NOW + DAY));
    assert_ne!(world.report(), Value::Null);
}

#[test]
fn the_report_comes_before_the_work() {
    let world = World::new(json!({"replicas": 1}), vec![]);
    let report = "status availableReplicas conditions fullyLabeledReplicas labelSelector observedGeneration \
                  readyReplicas replicas";
    assert_eq!(world.plan(), [report, "[create s-]"]);
}
