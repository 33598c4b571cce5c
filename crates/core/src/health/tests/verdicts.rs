//! The health of one machine, by what it and its Node say.

use serde_json::{Value, json};

use super::{State, again, ago, check, condition, machine, node};
use crate::Requeue;

const REPAIRED: [&str; 3] = [
    "delete ns/a uid-a",
    "Normal MachineDeleted Remediate on Machine ns/a: Machine ns/mhc/a/a has been remediated by requesting to delete \
     Machine object",
    "remediated by ns/mhc",
];

/// A Machine that has no Node yet, made so many seconds ago.
fn starting(seconds: i64, extra: Value) -> Value {
    let mut value =
        machine("a", json!({"metadata": {"creationTimestamp": ago(seconds)}, "status": {"nodeRef": null}}));
    super::merge(&mut value, extra);
    value
}

/// An instance that came to exist so many seconds ago.
fn instance(seconds: i64) -> Value {
    json!({"status": {"conditions": [
        {"type": "InstanceExists", "status": "True", "lastTransitionTime": ago(seconds)}]}})
}

// H03
#[test]
fn a_node_silent_for_too_long_is_repaired_and_the_status_tells() {
    let seen = check(json!({})).with(machine("a", json!({})), node("Unknown", 301)).pass();
    let mut expected = REPAIRED.to_vec();
    expected.push("else Warning MachineDeletionFailed Remediate on Machine ns/a: Machine ns/mhc/a/a could not be deleted");
    assert_eq!(seen.told(), expected);
    assert_eq!(seen.counts(), (1, 0, 0));
    assert!(seen.condition("RemediationAllowed").expect("is written").is_true());
    assert_eq!(seen.requeue, Requeue::Never);
    let repairs = seen.outcome.expect("examined").repairs;
    assert_eq!(repairs[0].1.to_string(), "condition `Ready` of the node has been `Unknown` for too long");
}

// H03
#[test]
fn a_timeout_is_over_only_once_it_lies_strictly_in_the_past() {
    let seen = check(json!({})).with(machine("a", json!({})), node("Unknown", 300)).pass();
    assert_eq!((seen.told().len(), seen.seconds()), (0, Some(1)));
}

// H04
#[test]
fn a_healthy_machine_needs_nothing() {
    let seen = check(json!({})).with(machine("a", json!({})), node("True", 400)).pass();
    assert_eq!(seen.counts(), (1, 1, 1));
    assert_eq!((seen.told().len(), seen.requeue), (0, Requeue::Never));
}

// H05
#[test]
fn a_machine_under_external_repair_is_not_healthy() {
    let annotated = json!({"metadata": {"annotations": {"host.metal3.io/external-remediation": ""}}});
    let seen = check(json!({})).with(machine("a", annotated), node("True", 400)).pass();
    assert_eq!(seen.counts(), (1, 0, 0));
    assert!(seen.told().is_empty());
}

// H06
#[test]
fn a_healthy_machine_that_turns_unhealthy_is_told_once_and_looked_at_when_its_time_is_over() {
    let mut world = check(json!({})).with(machine("a", json!({})), node("Unknown", 0));
    world.memory.healthy.insert("uid-a".into());
    let seen = world.pass();
    let told =
        "Normal DetectedUnhealthy HealthCheck on Machine ns/a: Machine ns/mhc/a/a has unhealthy node a";
    assert_eq!(seen.told(), [told]);
    assert_eq!(seen.seconds(), Some(301));
    let second = again(&world, &seen);
    assert!(second.told().is_empty(), "the transition is over: {:?}", second.told());
}

// H06
#[test]
fn a_machine_that_never_was_healthy_turns_unhealthy_without_an_event() {
    let world = check(json!({})).with(starting(60, json!({})), State::Absent);
    let seen = world.with(machine("b", json!({})), node("False", 5)).pass();
    assert!(seen.told().is_empty(), "{:?}", seen.told());
}

#[test]
fn an_event_of_a_machine_of_the_same_name_is_not_taken_for_its_own() {
    let mut world = check(json!({})).with(machine("a", json!({})), node("Unknown", 0));
    world.memory.healthy.insert("uid-of-an-earlier-a".into());
    assert!(world.pass().told().is_empty());
}

// H07
#[test]
fn the_machine_whose_time_is_over_first_sets_the_next_look() {
    let world = check(json!({})).with(machine("a", json!({})), node("Unknown", 100));
    assert_eq!(world.with(machine("b", json!({})), node("False", 250)).pass().seconds(), Some(51));
    let days =
        json!({"spec": {"unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "72h"}]}});
    assert_eq!(check(days).with(machine("a", json!({})), node("Unknown", 0)).pass().seconds(), Some(3600));
}

// H10, H11
#[test]
fn a_machine_has_one_timeout_to_get_an_instance_and_one_more_to_become_a_node() {
    let lately = json!({"status": {"lastUpdated": ago(1)}});
    let none = json!({});
    let flapping = {
        let mut value = instance(5);
        super::merge(&mut value, lately.clone());
        value
    };
    for (why, machine, left) in [
        ("just made", starting(0, none.clone()), Some(901)),
        ("no instance, still in time", starting(900, none.clone()), Some(1)),
        ("no instance, too late", starting(901, none), None),
        ("a change of the status does not restart the clock", starting(901, lately), None),
        ("the instance came late", starting(1000, instance(200)), Some(701)),
        ("the instance is as old as the machine", starting(901, instance(901)), None),
        ("the instance never became a node", starting(2000, instance(1200)), None),
        ("an instance that comes and goes postpones once", starting(1801, flapping), None),
    ] {
        let seen = check(json!({"spec": {"nodeStartupTimeout": "15m"}})).with(machine, State::Absent).pass();
        assert_eq!(seen.seconds(), left, "{why}");
        assert_eq!(seen.has("delete ns/a"), left.is_none(), "{why}");
    }
}

#[test]
fn without_a_startup_timeout_a_machine_has_ten_minutes() {
    let seen = check(json!({})).with(starting(0, json!({})), State::Absent).pass();
    assert_eq!(seen.seconds(), Some(601));
}

// H12
#[test]
fn with_startup_timeout_zero_a_machine_without_node_is_neither_repaired_nor_healthy() {
    for zero in ["0", "0s", "0m"] {
        let world = check(json!({"spec": {"nodeStartupTimeout": zero}}));
        let seen = world.with(starting(100_000, json!({})), State::Absent).pass();
        assert_eq!(
            (seen.told().len(), seen.counts(), seen.requeue),
            (0, (1, 0, 0), Requeue::Never),
            "{zero}"
        );
    }
}

#[test]
fn a_machine_whose_node_is_there_but_not_linked_is_not_deleted() {
    let seen = check(json!({})).with(starting(100_000, json!({})), State::Unlinked).pass();
    assert_eq!((seen.told().len(), seen.counts(), seen.requeue), (0, (1, 0, 0), Requeue::Never));
}

// H13
#[test]
fn a_machine_whose_node_is_gone_is_repaired_at_once() {
    let seen =
        check(json!({"spec": {"nodeStartupTimeout": "0"}})).with(machine("a", json!({})), State::Gone).pass();
    assert_eq!(seen.told()[..3], REPAIRED);
}

// H14
#[test]
fn a_failed_machine_is_repaired_whatever_its_node_says() {
    let failed = || json!({"status": {"phase": "Failed"}});
    let off = || check(json!({"spec": {"nodeStartupTimeout": "0"}}));
    for (machine, state) in [
        (machine("a", failed()), node("True", 10)),
        (starting(1, failed()), State::Absent),
        (starting(1, failed()), State::Unlinked),
    ] {
        assert!(off().with(machine, state).pass().has("delete ns/a uid-a"));
    }
}

// H15
#[test]
fn a_condition_that_the_node_does_not_have_is_not_unhealthy() {
    for state in [State::Node(json!({"metadata": {"name": "n"}})), condition("Other", "Unknown", 1000)] {
        let seen = check(json!({})).with(machine("a", json!({})), state).pass();
        assert_eq!(seen.counts(), (1, 1, 1));
    }
}

#[test]
fn a_condition_without_a_time_counts_from_the_birth_of_its_node() {
    let state = |age| {
        State::Node(json!({"metadata": {"name": "n", "creationTimestamp": ago(age)},
            "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}))
    };
    assert_eq!(check(json!({})).with(machine("a", json!({})), state(100)).pass().seconds(), Some(201));
    assert!(check(json!({})).with(machine("a", json!({})), state(400)).pass().has("delete ns/a"));
}

// H16
#[test]
fn a_machine_that_is_being_deleted_counts_as_unhealthy_and_is_left_alone() {
    for (state, phase) in
        [(node("Unknown", 400), "Deleting"), (node("True", 400), "Deleting"), (State::Gone, "Failed")]
    {
        let deleting = json!({"metadata": {"deletionTimestamp": ago(5)}, "status": {"phase": phase}});
        let mut world = check(json!({})).with(machine("a", deleting), state);
        world.memory.healthy.insert("uid-a".into());
        let seen = world.pass();
        assert_eq!((seen.told().len(), seen.counts(), seen.requeue), (0, (1, 0, 0), Requeue::Never));
    }
}

// H38
#[test]
fn the_shipped_termination_check_deletes_at_once_and_never_for_a_missing_node() {
    let shipped = || {
        let mut world = check(json!({"spec": {"maxUnhealthy": "100%", "nodeStartupTimeout": "0",
            "selector": {"matchLabels": {"machine.openshift.io/interruptible-instance": ""}}}}));
        world.check["spec"]["unhealthyConditions"] =
            json!([{"type": "Terminating", "status": "True", "timeout": "0s"}]);
        world
    };
    let spot = || json!({"metadata": {"labels": {"machine.openshift.io/interruptible-instance": ""}}});
    let seen = shipped().with(machine("a", spot()), condition("Terminating", "True", 1)).pass();
    assert!(seen.has("delete ns/a"));
    assert!(!shipped().with(starting(100_000, spot()), State::Absent).pass().has("delete"));
    let other = shipped().with(machine("a", json!({})), condition("Terminating", "True", 1)).pass();
    assert_eq!(other.counts(), (0, 0, 0), "the selector leaves other machines out");
}
