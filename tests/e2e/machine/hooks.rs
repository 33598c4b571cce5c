//! Hooks, and the drain that a removal waits for.

use e2e::{Machine, Ns, Object, SimulatedInstance};
use mapi_api::{
    Condition, Time, Timestamp,
    condition::{ConditionStatus, whole_seconds},
    names::condition,
};
use serde_json::{Value, json};

use crate::{condition, instance, is_held, let_others_work, life, running, version, world};

fn hooks(point: &str, hooks: &[(&str, &str)]) -> Value {
    let list: Vec<Value> = hooks.iter().map(|(name, owner)| json!({"name": name, "owner": owner})).collect();
    json!({"lifecycleHooks": {point: list}})
}

/// Sets condition Drained as another controller does.
async fn say_drained(ns: &Ns, name: &str, status: ConditionStatus) {
    let mut conditions = ns.get::<Machine>(name).await.status.conditions;
    conditions.retain(|condition| condition.type_ != condition::DRAINED);
    conditions.push(Condition {
        status,
        last_transition_time: Some(Time(whole_seconds(Timestamp::now()))),
        ..Condition::no(condition::DRAINED, "", "Said", "by a test")
    });
    ns.patch_status::<Machine>(name, json!({ "conditions": conditions })).await;
}

// M23, M24, M31
#[tokio::test]
async fn an_instance_is_let_be_until_the_drain_is_said_to_be_done() {
    let ns = world().await.namespace("drained").await;
    let machines = ns.record::<Machine>().await;
    let machine =
        running(&ns, ns.machine("m").machine_spec(hooks("preDrain", &[("migrate", "storage")]))).await;
    let name = machine.name();
    ns.delete::<Machine>(name).await;
    ns.wait_machine(name, |machine| machine.phase() == "Deleting").await;
    let_others_work(&ns, "first").await;
    assert_eq!(condition(&ns.get::<Machine>(name).await, condition::DRAINED), "");

    say_drained(&ns, name, ConditionStatus::FALSE).await;
    let_others_work(&ns, "second").await;
    let held = ns.get::<Machine>(name).await;
    assert_eq!((held.phase(), is_held(&held)), ("Deleting", true));
    assert_eq!(condition(&held, condition::DRAINED), "False Said by a test");
    let alive = instance(&ns, &machine).await;
    assert!(!alive.is_deleting());

    // The hook is still there, and comes too late.
    say_drained(&ns, name, ConditionStatus::TRUE).await;
    ns.wait_nothing_left().await;
    let (states, _) = life(&machines, &machine).await;
    let text =
        "False Warning HookPresent Drain operation currently blocked by: [{Name:migrate Owner:storage}]";
    assert!(states.iter().filter(|m| m.is_deleting()).all(|m| condition(m, condition::DRAINABLE) == text));
}

// M30, M52, M53
#[tokio::test]
async fn hooks_are_listed_waited_for_and_forgotten_when_they_go() {
    let ns = world().await.namespace("hooked").await;
    let two = [("migrate", "storage"), ("backup", "archive")];
    let draft =
        ns.machine("m").machine_spec(hooks("preDrain", &two)).machine_spec(hooks("preTerminate", &two));
    let machine = running(&ns, draft).await;
    let name = machine.name();
    let list = "[{Name:migrate Owner:storage} {Name:backup Owner:archive}]";
    let blocked = |operation: &str| {
        format!("False Warning HookPresent {operation} operation currently blocked by: {list}")
    };
    assert_eq!(condition(&machine, condition::DRAINABLE), blocked("Drain"));
    assert_eq!(condition(&machine, condition::TERMINABLE), blocked("Terminate"));

    ns.delete::<Machine>(name).await;
    ns.patch::<Machine>(name, json!({ "spec": hooks("preDrain", &[]) })).await;
    let is_drained = |machine: &Machine| {
        condition(machine, condition::DRAINED).starts_with("True")
            && condition(machine, condition::DRAINABLE) == "True"
    };
    ns.wait_machine(name, is_drained).await;
    let_others_work(&ns, "other").await;
    let held = ns.get::<Machine>(name).await;
    assert_eq!(condition(&held, condition::TERMINABLE), blocked("Terminate"));
    assert!(is_held(&held) && !instance(&ns, &machine).await.is_deleting());

    let ledger = ns.record::<SimulatedInstance>().await;
    let freed = ns.patch::<Machine>(name, json!({ "spec": hooks("preTerminate", &[]) })).await;
    ns.wait_nothing_left().await;
    let spans = crate::instances_of(&ledger, &machine).await;
    assert!(spans.len() == 1 && spans[0].1 > version(&freed), "{spans:?}");
}
