//! Which Machines are drained, and what is said where there is nothing to drain.

use e2e::{Machine, Node, Ns, Object, Options, World};
use mapi_api::{
    Conditions, Time, Timestamp,
    condition::whole_seconds,
    names::{annotation, condition},
};
use serde_json::{Value, json};

use crate::{
    FINISHED, SKIPPED, bind_running, hold, let_others_drain, running, said, said_in_words, told,
    wait_cordoned, was_cordoned, world,
};

fn pre_drain() -> Value {
    json!({"lifecycleHooks": {"preDrain": [{"name": "wait", "owner": "e2e"}]}})
}

async fn delete(ns: &Ns, machine: &Machine) {
    ns.delete::<Machine>(machine.name()).await;
}

// D01, D02: here the drain is alone, so that a Machine stays in the phase that the test gives it.
#[tokio::test]
async fn only_a_machine_that_is_being_deleted_and_whose_phase_says_so_is_drained() {
    let world = World::own(Options { arguments: vec!["--only=drain".into()], ..Options::default() }).await;
    let ns = world.namespace("phases").await;
    let make = async |phase: Option<&str>, is_deleted: bool| {
        let short = format!("{}-{is_deleted}", phase.unwrap_or("none").to_lowercase());
        let held = json!({"metadata": {"finalizers": ["e2e.test/held"]}});
        let machine = ns.machine(&short).with(held).create().await;
        ns.patch_status::<Machine>(machine.name(), json!({ "phase": phase })).await;
        if is_deleted {
            delete(&ns, &machine).await;
        }
        machine
    };
    let mut others = vec![];
    let phases = [None, Some("Provisioning"), Some("Provisioned"), Some("Running"), Some("Failed")];
    for phase in phases {
        others.push((make(phase, false).await, false));
        others.push((make(phase, true).await, true));
    }
    others.push((make(Some("Deleting"), false).await, false));

    let is_skipped = |machine: &Machine| {
        let drained = machine.status.conditions.find(condition::DRAINED);
        drained.is_some_and(|drained| drained.is_true() && drained.message == SKIPPED)
    };
    let drained = make(Some("Deleting"), true).await;
    ns.wait_machine(drained.name(), is_skipped).await;
    for (machine, _) in &others {
        let machine = ns.get::<Machine>(machine.name()).await;
        assert!(machine.status.conditions.is_empty(), "{}: {:?}", machine.name(), machine.status.conditions);
        assert!(ns.events(machine.name()).await.is_empty(), "{}", machine.name());
    }
    for (machine, is_deleted) in &others {
        if *is_deleted {
            ns.patch_status::<Machine>(machine.name(), json!({"phase": "Deleting"})).await;
            ns.wait_machine(machine.name(), is_skipped).await;
        }
    }
}

// D01, D03
#[tokio::test]
async fn a_pre_drain_hook_holds_the_drain_until_it_is_removed() {
    let ns = world().await.namespace("hook").await;
    let (machines, nodes) = (ns.record::<Machine>().await, ns.world().cluster().record::<Node>().await);
    let machine = running(&ns, ns.machine("m").machine_spec(pre_drain())).await;
    bind_running(&ns, &machine, "pod").await;
    delete(&ns, &machine).await;
    assert_eq!(told(&ns, &machine, "DrainBlocked").await, ["DrainBlocked"]);
    ns.wait_machine(machine.name(), |machine| machine.status.conditions.is_false(condition::DRAINABLE)).await;

    let other = let_others_drain(&ns).await;
    assert!(!was_cordoned(&nodes, &machine, &other).await);
    let held = ns.get::<Machine>(machine.name()).await;
    assert_eq!(held.status.conditions.find(condition::DRAINED), None);

    ns.patch::<Machine>(machine.name(), json!({"spec": {"lifecycleHooks": null}})).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    let events = told(&ns, &machine, "DrainSucceeded").await;
    assert_eq!(events, ["DrainBlocked", "DrainProceeds", "Deleted", "DrainSucceeded"]);
}

// D04, D05
#[tokio::test]
async fn a_machine_without_a_node_is_not_drained_and_no_hook_holds_it() {
    let ns = world().await.namespace("no-node").await;
    let machines = ns.record::<Machine>().await;
    let draft = |short: &str| ns.machine(short).faults(json!([{"kind": "NeverJoin"}]));
    let drafts = [draft("plain"), draft("hooked").machine_spec(pre_drain())];
    for draft in drafts {
        let machine = draft.create().await;
        ns.wait_machine(machine.name(), |machine| machine.phase() == "Provisioned").await;
        delete(&ns, &machine).await;
        ns.wait_gone::<Machine>(machine.name()).await;
        assert_eq!(said_in_words(&machines, &machine).await, [format!("True {SKIPPED}")]);
        assert_eq!(told(&ns, &machine, "DrainSkipped").await, ["DrainSkipped"]);
    }
}

// D06, D07
#[tokio::test]
async fn a_machine_that_is_excluded_is_not_drained_and_no_hook_holds_it() {
    let ns = world().await.namespace("excluded").await;
    let (machines, nodes) = (ns.record::<Machine>().await, ns.world().cluster().record::<Node>().await);
    let draft = |short: &str, value: &str| ns.machine(short).annotation(annotation::EXCLUDE_DRAIN, value);
    let drafts = [draft("plain", ""), draft("hooked", "false").machine_spec(pre_drain())];
    for (number, draft) in drafts.into_iter().enumerate() {
        let machine = running(&ns, draft).await;
        bind_running(&ns, &machine, &format!("pod-{number}")).await;
        delete(&ns, &machine).await;
        ns.wait_gone::<Machine>(machine.name()).await;
        assert_eq!(said_in_words(&machines, &machine).await, [format!("True {SKIPPED}")]);
        assert_eq!(told(&ns, &machine, "DrainSkipped").await, ["DrainSkipped"]);
        assert!(!was_cordoned(&nodes, &machine, &machine).await);
    }
}

// D08
#[tokio::test]
async fn a_machine_that_somebody_else_has_drained_is_not_drained_again() {
    let ns = world().await.namespace("done").await;
    let (machines, nodes) = (ns.record::<Machine>().await, ns.world().cluster().record::<Node>().await);
    let machine = running(&ns, ns.machine("m")).await;
    bind_running(&ns, &machine, "pod").await;
    let mut conditions = json!(machine.status.conditions);
    let theirs = json!({
        "type": condition::DRAINED, "status": "True", "message": "by hand",
        "lastTransitionTime": Time(whole_seconds(Timestamp::now())),
    });
    conditions.as_array_mut().unwrap().push(theirs);
    ns.patch_status::<Machine>(machine.name(), json!({ "conditions": conditions })).await;
    delete(&ns, &machine).await;
    ns.wait_gone::<Machine>(machine.name()).await;

    assert_eq!(said(&machines, &machine).await.len(), 1, "neither text nor time changed");
    assert!(!was_cordoned(&nodes, &machine, &machine).await);
    let_others_drain(&ns).await;
    let events = ns.events(machine.name()).await;
    let reasons: Vec<_> = events.iter().filter_map(|event| event.reason.as_deref()).collect();
    assert!(!reasons.iter().any(|reason| reason.starts_with("Drain")), "{reasons:?}");
}

// D09
#[tokio::test]
async fn a_machine_whose_node_an_admin_removed_counts_as_drained() {
    let ns = world().await.namespace("node-gone").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    let faults = json!([{"kind": "NodeDeleted", "args": {"reRegister": false}}]).to_string();
    ns.patch::<Machine>(machine.name(), json!({"metadata": {"annotations": {annotation::FAULTS: faults}}}))
        .await;
    ns.world().cluster().wait_gone::<Node>(machine.name()).await;
    delete(&ns, &machine).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(said_in_words(&machines, &machine).await, [format!("True {FINISHED}")]);
    assert_eq!(told(&ns, &machine, "DrainSucceeded").await, ["DrainProceeds", "DrainSucceeded"]);
}

// D06: in the midst of it.
#[tokio::test]
async fn a_drain_that_waits_ends_when_its_machine_is_taken_out_of_it() {
    let ns = world().await.namespace("way-out").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    hold(&ns, &machine, "held").await;
    delete(&ns, &machine).await;
    wait_cordoned(&ns, &machine).await;
    let out = json!({"metadata": {"annotations": {annotation::EXCLUDE_DRAIN: ""}}});
    ns.patch::<Machine>(machine.name(), out).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    let said = said_in_words(&machines, &machine).await;
    assert_eq!(said.last(), Some(&format!("True {SKIPPED}")));
}
