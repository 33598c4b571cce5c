//! Changes and terminations of a live instance that the cloud refuses.

use e2e::{Machine, Node, Ns, Object, SimulatedInstance};
use mapi_api::names::condition;
use serde_json::json;

use crate::{condition, error, instance, is_held, let_others_work, live_faults, refuse, running, world};

/// A running machine whose instance answers with a refusal. Its key is woken by every change of the instance.
async fn stubborn(ns: &Ns, word: &str) -> (Machine, SimulatedInstance) {
    let machine = running(ns, ns.machine(word)).await;
    let instance = instance(ns, &machine).await;
    let instance = ns.patch::<SimulatedInstance>(instance.name(), refuse(Some(word))).await;
    (machine, instance)
}

/// Asks for a fault of a live machine, which the cloud has to be told, and waits for its refusal.
async fn change(ns: &Ns, machine: &Machine) -> String {
    ns.patch::<Machine>(machine.name(), live_faults(Some(json!([{"kind": "NodeNotReady"}])))).await;
    ns.wait_event(machine.name(), "FailedUpdate").await.remove(0).note.unwrap_or_default()
}

// M15
#[tokio::test]
async fn a_change_that_fails_leaves_the_machine_as_it_is_and_is_tried_again() {
    let ns = world().await.namespace("no-change").await;
    let (machine, instance) = stubborn(&ns, "forbidden").await;
    let note = change(&ns, &machine).await;
    assert!(note.starts_with("cannot adjust simulated instance: ") && note.contains("not today"), "{note}");
    let_others_work(&ns, "other").await;
    let after = ns.get::<Machine>(machine.name()).await;
    assert_eq!((after.phase(), error(&after)), ("Running", [None, None]));
    assert_eq!(condition(&after, condition::INSTANCE_EXISTS), "True");
    assert_eq!(condition(&after, condition::SPEC_VALID), "", "the spec is not what is wrong");

    ns.patch::<SimulatedInstance>(instance.name(), refuse(None)).await;
    ns.wait_node(machine.name(), |node| !node.is_ready()).await;
}

#[tokio::test]
async fn a_change_that_is_refused_is_told_and_the_machine_runs_on() {
    let ns = world().await.namespace("bad-change").await;
    let (machine, instance) = stubborn(&ns, "invalid").await;
    change(&ns, &machine).await;
    let is_told = |machine: &Machine| condition(machine, condition::SPEC_VALID).starts_with("False Error");
    let told = ns.wait_machine(machine.name(), is_told).await;
    let text = condition(&told, condition::SPEC_VALID);
    assert!(text.starts_with("False Error InvalidProviderSpec spec.providerSpec.value: "), "{text}");
    assert!(text.contains("not like that"), "{text}");
    let_others_work(&ns, "other").await;
    let after = ns.get::<Machine>(machine.name()).await;
    assert_eq!((after.phase(), error(&after)), ("Running", [None, None]));
    assert!(ns.wait_node(machine.name(), |_| true).await.is_ready());

    ns.patch::<SimulatedInstance>(instance.name(), refuse(None)).await;
    ns.wait_node(machine.name(), |node: &Node| !node.is_ready()).await;
    ns.wait_machine(machine.name(), |m| condition(m, condition::SPEC_VALID) == "True").await;
}

// M33
#[tokio::test]
async fn a_termination_that_is_refused_keeps_machine_and_instance_and_says_why() {
    let ns = world().await.namespace("no-end").await;
    for (word, says) in [("invalid", "not like that"), ("forbidden", "not today")] {
        let (machine, instance) = stubborn(&ns, word).await;
        ns.delete::<Machine>(machine.name()).await;
        let note = ns.wait_event(machine.name(), "FailedDelete").await.remove(0).note.unwrap_or_default();
        assert!(note.starts_with("cannot terminate simulated instance: ") && note.contains(says), "{note}");
        let_others_work(&ns, "other").await;
        let held = ns.get::<Machine>(machine.name()).await;
        assert!(is_held(&held) && held.phase() == "Deleting", "{word}");
        let text = condition(&held, condition::SPEC_VALID);
        assert_eq!(text.contains(says), word == "invalid", "{text}");
        assert!(!ns.get::<SimulatedInstance>(instance.name()).await.is_deleting());
        ns.patch::<SimulatedInstance>(instance.name(), refuse(None)).await;
        ns.wait_nothing_left().await;
    }
}
