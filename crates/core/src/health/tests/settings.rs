//! What a check asks for, and what happens when it cannot be used.

use mapi_api::{Machine, MachineHealthCheck};
use serde_json::{Value, json};

use super::super::settings::{Limit, Settings, concerns};
use super::{again, ago, check, machine, node};
use crate::Requeue;

fn limit(value: Value) -> Result<Limit, String> {
    let check = check(json!({"spec": {"maxUnhealthy": value}})).check;
    let check: MachineHealthCheck = serde_json::from_value(check).expect("check");
    Settings::parse(&check).map(|settings| settings.limit).map_err(|complaint| complaint.message)
}

// H20
#[test]
fn a_limit_that_is_none_is_a_condition_and_stops_everything() {
    let world = check(json!({"spec": {"maxUnhealthy": "foo%50"}}))
        .with(machine("a", json!({})), node("Unknown", 400));
    let seen = world.pass();
    assert_eq!(seen.lines.len(), 1, "nothing but the condition is written: {:?}", seen.lines);
    let condition = seen.condition("SpecValid").expect("is written");
    assert_eq!(
        (&*condition.status.0, &*condition.severity, &*condition.reason),
        ("False", "Error", "InvalidField")
    );
    assert_eq!(
        condition.message,
        r#"spec.maxUnhealthy: invalid value "foo%50": a whole number, or a percentage such as 40%"#
    );
    assert_eq!(seen.requeue, Requeue::Never, "only an edit helps");
    assert!(again(&world, &seen).lines.is_empty());
}

// H21
#[test]
fn limits_are_whole_numbers_or_percentages() {
    for (value, parsed) in [
        (json!("20%"), Limit::Percent(20)),
        (json!("30"), Limit::Count(30)),
        (json!(30), Limit::Count(30)),
        (json!(-1), Limit::Count(-1)),
        (json!("100%"), Limit::Percent(100)),
        (Value::Null, Limit::All),
    ] {
        assert_eq!(limit(value.clone()), Ok(parsed), "{value}");
    }
    for value in [json!("1%0"), json!("a"), json!("a%"), json!("%"), json!(""), json!(1.5), json!(true)] {
        let message = limit(value.clone()).expect_err("no limit");
        assert!(message.starts_with("spec.maxUnhealthy: invalid value"), "{value}: {message}");
    }
}

// H22
#[test]
fn percentages_round_down() {
    for (limit, total, of) in [
        (Limit::Percent(60), 7, 4),
        (Limit::Percent(40), 5, 2),
        (Limit::Percent(40), 2, 0),
        (Limit::All, 7, 7),
        (Limit::Count(3), 2, 3),
        (Limit::Percent(100), 0, 0),
    ] {
        assert_eq!(limit.of(total), of, "{limit:?} of {total}");
    }
}

#[test]
fn durations_that_the_published_pattern_lets_through_are_told_and_repair_nothing() {
    let spec = json!({"spec": {"nodeStartupTimeout": "0abc",
        "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "5"}]}});
    let seen = check(spec).with(machine("a", json!({})), node("Unknown", 400)).pass();
    let condition = seen.condition("SpecValid").expect("is written");
    assert_eq!(
        condition.message,
        "spec.nodeStartupTimeout: invalid value \"0abc\": a duration such as 300s, 5m or 1h30m; 0 turns the check off; \
         spec.unhealthyConditions[0].timeout: invalid value \"5\": a duration such as 300s, 5m or 1h30m"
    );
    assert!(!seen.has("delete"));
}

#[test]
fn a_template_reference_without_a_name_is_told() {
    let template = json!({"apiVersion": "x/v1", "kind": "FooTemplate"});
    let seen = check(json!({"spec": {"remediationTemplate": template}})).pass();
    let condition = seen.condition("SpecValid").expect("is written");
    assert!(
        condition.message.starts_with("spec.remediationTemplate.name: invalid value \"\""),
        "{condition:?}"
    );
}

#[test]
fn a_check_that_was_put_right_says_so() {
    let mut world = check(json!({})).with(machine("a", json!({})), node("True", 10));
    world.check["status"] = json!({"conditions": [{"type": "SpecValid", "status": "False", "severity": "Error",
        "reason": "InvalidField", "message": "m", "lastTransitionTime": ago(9)}]});
    let seen = world.pass();
    assert!(seen.condition("SpecValid").expect("is kept").is_true());
    assert!(!again(&world, &seen).has("patch"));
}

// H34
#[test]
fn an_empty_or_absent_selector_covers_every_machine_of_the_namespace() {
    for selector in [json!({}), Value::Null, json!({"matchLabels": {}})] {
        let world = check(json!({"spec": {"selector": selector}}));
        let world = world.with(machine("a", json!({})), node("True", 1));
        let seen = world.with(machine("b", json!({"metadata": {"labels": null}})), node("True", 1)).pass();
        assert_eq!(seen.counts().0, 2, "{selector}");
    }
}

// H34
#[test]
fn a_bad_selector_is_a_condition_and_covers_nothing() {
    let selector = json!({"matchExpressions": [{"key": "role", "operator": "Near"}]});
    let seen = check(json!({"spec": {"selector": selector}}))
        .with(machine("a", json!({})), node("Unknown", 400))
        .pass();
    let condition = seen.condition("SpecValid").expect("is written");
    assert_eq!(condition.reason, "InvalidSelector");
    assert_eq!(
        condition.message,
        r#"spec.selector.matchExpressions[0].operator: invalid value "Near": In, NotIn, Exists or DoesNotExist"#
    );
    assert_eq!(seen.lines.len(), 1);
}

// H35
#[test]
fn a_check_is_about_the_matching_machines_of_its_own_namespace() {
    let about = |selector: Value, machine_extra: Value| {
        let check: MachineHealthCheck =
            serde_json::from_value(check(json!({"spec": {"selector": selector}})).check).expect("check");
        let machine: Machine = serde_json::from_value(machine("a", machine_extra)).expect("machine");
        concerns(&check, &machine)
    };
    let worker = || json!({"matchLabels": {"role": "worker"}});
    assert!(about(worker(), json!({})));
    assert!(about(json!({}), json!({})));
    assert!(about(worker(), json!({"metadata": {"deletionTimestamp": ago(1)}})), "deletions are counted too");
    assert!(!about(worker(), json!({"metadata": {"labels": {"role": "infra"}}})));
    assert!(!about(worker(), json!({"metadata": {"namespace": "other"}})));
    assert!(!about(json!({"matchExpressions": [{"key": "role", "operator": "Near"}]}), json!({})));
}
