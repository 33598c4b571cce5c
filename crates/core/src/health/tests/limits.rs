//! How many may be unhealthy, and what happens when there are more.

use serde_json::{Value, json};

use super::{State, World, again, ago, check, machine, node};

/// A check over so many machines, of which the first so many are silent for longer than allowed.
fn silent(limit: Value, total: usize, silent: usize) -> World {
    let mut world = check(json!({"spec": {"maxUnhealthy": limit}}));
    for i in 0..total {
        let state = if i < silent { node("Unknown", 400) } else { node("True", 400) };
        world = world.with(machine(&format!("m{i}"), json!({})), state);
    }
    world
}

fn deletions(world: &World) -> usize {
    world.pass().lines.iter().filter(|line| line.starts_with("delete ")).count()
}

// H08
#[test]
fn a_check_without_machines_allows_nothing_and_says_so() {
    let seen = check(json!({})).pass();
    assert_eq!(seen.counts(), (0, 0, 0));
    assert!(seen.condition("RemediationAllowed").expect("is written").is_true());
    assert!(seen.lines[0] == "covered 0" && seen.has(r#""expectedMachines":0"#));
}

// H18
#[test]
fn a_limit_below_zero_allows_while_nothing_is_unhealthy() {
    let seen = silent(json!(-1), 1, 0).pass();
    assert_eq!(seen.counts(), (1, 1, 0));
    assert!(seen.condition("RemediationAllowed").expect("is written").is_true());

    let seen = silent(json!(-1), 1, 1).pass();
    assert_eq!(
        seen.told(),
        [
            "Warning RemediationRestricted Remediate on MachineHealthCheck ns/mhc: Remediation restricted due to exceeded \
          number of unhealthy machines (total: 1, unhealthy: 1, maxUnhealthy: -1)"
        ]
    );
    let condition = seen.condition("RemediationAllowed").expect("is written");
    assert_eq!(
        (&*condition.status.0, &*condition.severity, &*condition.reason),
        ("False", "Warning", "TooManyUnhealthy")
    );
    assert_eq!(
        condition.message,
        "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy \
         (total: 1, unhealthy: 1, maxUnhealthy: -1)"
    );
}

// H19
#[test]
fn two_of_five_may_be_unhealthy_however_the_limit_is_written() {
    for limit in [json!("40%"), json!("2"), json!(2)] {
        assert_eq!(deletions(&silent(limit.clone(), 5, 2)), 2, "{limit}");
        assert_eq!(deletions(&silent(limit.clone(), 5, 3)), 0, "{limit}");
    }
}

// H22
#[test]
fn remediations_allowed_is_what_is_left_of_the_limit() {
    for (limit, total, unhealthy, allowed) in [
        (json!("60%"), 7, 0, 4),
        (Value::Null, 7, 0, 7),
        (json!("40%"), 10, 5, 0),
        (json!("40%"), 10, 3, 1),
        (json!("40%"), 2, 0, 0),
        (json!(3), 2, 0, 3),
    ] {
        let seen = silent(limit.clone(), total, unhealthy).pass();
        assert_eq!(seen.counts().2, allowed, "{limit} of {total}, {unhealthy} unhealthy");
    }
}

// H23
#[test]
fn while_restricted_nothing_is_touched_and_the_restriction_is_told_once() {
    let world = silent(json!("40%"), 4, 2);
    let seen = world.pass();
    assert!(seen.has("short-circuit true") && !seen.has("delete"));
    assert_eq!(seen.counts(), (4, 2, 0));
    assert_eq!(seen.told().len(), 1);
    assert!((30..=60).contains(&seen.seconds().expect("a second look")));
    let second = again(&world, &seen);
    assert!(second.told().is_empty() && !second.has("patch"), "{:?}", second.lines);
    assert!((30..=60).contains(&second.seconds().expect("a second look")));
}

// H23
#[test]
fn the_second_look_of_a_restricted_check_is_never_hot() {
    for age in [299, 250, 0] {
        let world =
            check(json!({"spec": {"maxUnhealthy": 0}})).with(machine("a", json!({})), node("Unknown", age));
        assert!((30..=60).contains(&world.pass().seconds().expect("a second look")), "{age}");
    }
}

// H24
#[test]
fn when_the_restriction_ends_repairs_go_on() {
    let mut world = silent(json!("40%"), 5, 2);
    world.check["status"] = json!({"conditions": [{"type": "RemediationAllowed", "status": "False",
        "severity": "Warning", "reason": "TooManyUnhealthy", "lastTransitionTime": ago(100)}]});
    let seen = world.pass();
    assert!(seen.has("short-circuit false") && seen.has("delete ns/m0"));
    let condition = seen.condition("RemediationAllowed").expect("is written");
    assert!(condition.is_true() && condition.reason.is_empty() && condition.message.is_empty());
}

// H37
#[test]
fn the_status_is_written_before_the_first_repair() {
    let seen = silent(json!("40%"), 5, 2).pass();
    let position =
        |start: &str| seen.lines.iter().position(|line| line.starts_with(start)).expect("is there");
    assert!(position("patch check status") < position("delete ns/m0"));
}

#[test]
fn half_silent_at_forty_percent_deletes_nothing_and_at_the_default_repairs_all() {
    assert_eq!(deletions(&silent(json!("40%"), 10, 5)), 0);
    assert_eq!(deletions(&silent(Value::Null, 10, 5)), 5);
    assert_eq!(deletions(&silent(json!("100%"), 10, 5)), 5);
}

/// I11, I12: over every mix of five machines, what a pass deletes and what is unhealthy already stay within the limit.
#[test]
fn no_mix_of_states_deletes_beyond_the_limit() {
    let state = |i: usize, kind: usize| -> (Value, State) {
        let name = format!("m{i}");
        let deleting = json!({"metadata": {"deletionTimestamp": ago(5)}});
        match kind {
            0 => (machine(&name, json!({})), node("True", 10)),
            1 => (
                machine(
                    &name,
                    json!({"status": {"nodeRef": null}, "metadata": {"creationTimestamp": ago(5)}}),
                ),
                State::Absent,
            ),
            2 => (machine(&name, deleting), node("True", 10)),
            3 => (machine(&name, json!({})), node("Unknown", 10)),
            4 => (machine(&name, json!({})), node("Unknown", 400)),
            _ => (machine(&name, json!({})), State::Gone),
        }
    };
    for mix in 0..6_usize.pow(4) {
        let kinds: Vec<usize> = (0..4).map(|i| mix / 6_usize.pow(i) % 6).collect();
        for limit in [0, 1, 2] {
            let mut world = check(json!({"spec": {"maxUnhealthy": limit}}));
            for (i, kind) in kinds.iter().enumerate() {
                let (machine, node) = state(i, *kind);
                world = world.with(machine, node);
            }
            let unhealthy = kinds.iter().filter(|kind| **kind != 0).count();
            let sick = kinds.iter().filter(|kind| **kind >= 4).count();
            let expected = if unhealthy <= limit { sick } else { 0 };
            assert_eq!(deletions(&world), expected, "{kinds:?} limit {limit}");
        }
    }
}
