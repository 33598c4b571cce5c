//! How a status is written: what moves its time, what Failed does to other fields, and what is measured.

use super::*;

fn last_updated(world: &World) -> Value {
    world.machine["status"]["lastUpdated"].clone()
}

// M48, M49
#[test]
fn last_updated_moves_if_and_only_if_something_else_changes() {
    let mut world = World::provisioning(recorded());
    world.round(present(up()));
    let before = last_updated(&world);
    world.pass(50).round(present(up()));
    assert_eq!(last_updated(&world), before);
    world.machine["spec"]["lifecycleHooks"] = json!({"preDrain": [{"name": "a", "owner": "b"}]});
    world.round(present(up()));
    assert_ne!(last_updated(&world), before);
}

// M50
#[test]
fn states_in_the_provider_status_of_a_failed_machine_are_unknown() {
    let rows = [
        (json!({"instanceState": "Running", "x": 1}), json!({"instanceState": "Unknown", "x": 1})),
        (json!({"vmState": "Running"}), json!({"vmState": "Unknown"})),
        (json!({"state": "Running"}), json!({"state": "Running"})),
        (json!({"instanceState": {"a": 1}}), json!({"instanceState": {"a": 1}})),
    ];
    for (before, after) in rows {
        let mut world = World::provisioning(recorded());
        world.machine["status"]["providerStatus"] = before;
        world.round(absent());
        world.pass(10).round(absent());
        assert_eq!((world.phase().as_str(), &world.machine["status"]["providerStatus"]), ("Failed", &after));
    }
}

// M51
#[test]
fn a_machine_without_provider_status_can_fail() {
    let mut world = World::provisioning(json!({"spec": {"providerID": "x"}}));
    world.round(absent());
    world.pass(10).round(absent());
    assert_eq!(world.phase(), "Failed");
    assert!(world.machine["status"].get("providerStatus").is_none());
}

// M52, M53
#[test]
fn hooks_are_listed_byte_for_byte_and_forgotten_when_they_go() {
    let hooks = json!([{"name": "a", "owner": "b"}, {"name": "c", "owner": "d"}]);
    let mut world =
        World::new(json!({"spec": {"lifecycleHooks": {"preDrain": hooks, "preTerminate": hooks}}}));
    world.round(absent());
    for (type_, operation) in [("Drainable", "Drain"), ("Terminable", "Terminate")] {
        assert_eq!(
            world.condition(type_),
            format!(
                "False Warning HookPresent {operation} operation currently blocked by: [{{Name:a Owner:b}} {{Name:c \
                 Owner:d}}]"
            )
        );
    }
    world.machine["spec"]["lifecycleHooks"] = json!({});
    world.round(absent());
    assert_eq!(
        (world.condition("Drainable").as_str(), world.condition("Terminable").as_str()),
        ("True", "True")
    );
}

// M54
#[test]
fn a_new_phase_is_measured_once_it_is_written_and_deleting_never() {
    let measured = |round: &Round| {
        round
            .measures
            .iter()
            .filter(|m| matches!(m, Measure::PhaseTransition { .. }))
            .cloned()
            .collect::<Vec<_>>()
    };
    let mut world = World::provisioning(recorded());
    let (refused, is_failed) = world.round_until(present(up()), 0);
    assert!(is_failed && measured(&refused).is_empty());
    let written = world.round(present(up()));
    assert_eq!(
        measured(&written),
        [Measure::PhaseTransition { phase: "Provisioned".into(), seconds: 100.0 }]
    );
    assert_eq!(measured(&world.round(present(up()))), []);
    world.mark();
    let deleting = world.round(absent());
    assert_eq!((world.phase().as_str(), measured(&deleting)), ("Deleting", vec![]));
}

#[test]
fn a_provider_status_that_only_differs_in_the_order_of_its_keys_is_not_written() {
    let mut world = World::provisioning(recorded());
    world.round(present(up()));
    let said = |text: &str| {
        let provider_status = serde_json::from_str(text).expect("json");
        Answer { provider_status: Some(provider_status), ..present(up()) }
    };
    assert_eq!(world.pass(10).round(said(r#"{"b":{"x":1,"gone":2},"a":1}"#)).writes, ["status"]);
    assert_eq!(world.pass(10).round(said(r#"{"a":1,"b":{"gone":2,"x":1}}"#)).writes, [""; 0]);
    assert_eq!(world.pass(10).round(said(r#"{"a":1,"b":{"x":1}}"#)).writes, ["status"]);
    assert_eq!(world.machine["status"]["providerStatus"], json!({"a": 1, "b": {"x": 1}}));
}

#[test]
fn conditions_of_other_writers_survive() {
    let mut world = World::provisioning(recorded());
    world.put_condition(
        json!({"type": "Foreign", "status": "Unknown", "reason": "R", "lastTransitionTime": null}),
    );
    world.round(present(up()));
    assert_eq!(world.condition("Foreign"), "Unknown R", "I20");
}

#[test]
fn details_in_the_provider_status_are_written_with_other_news_or_after_ten_seconds() {
    let said =
        |detail: u32| Answer { provider_status: Some(json!({"detail": detail}).into()), ..present(up()) };
    let mut world = World::provisioning(recorded());
    assert_eq!(world.round(said(1)).writes, ["status"]);
    let early = world.pass(4).round(said(2));
    assert_eq!((early.writes, early.requeue), (vec![], seconds(6)));
    world.machine["status"]["nodeRef"] = json!({"name": "n", "uid": "nu"});
    assert_eq!(world.pass(1).round(said(3)).writes, ["status"]);
    assert_eq!(
        (world.phase().as_str(), &world.machine["status"]["providerStatus"]["detail"]),
        ("Running", &json!(3))
    );
    assert_eq!(world.pass(10).round(said(4)).writes, ["status"]);
}
