//! Creates whose outcome the controllers do not get to know.

use e2e::{Machine, Object, SimulatedInstance, World};
use serde_json::json;

use crate::{instances_of, is_held, options, refuse, running, version, world};

// B12.13
#[tokio::test]
async fn a_kill_between_create_and_record_makes_no_second_instance_and_leaves_none() {
    let world = World::own(options()).await;
    let ns = world.namespace("killed").await;
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    // The finalizer is there and no id can be recorded: the first patch of the Machine is that of the id.
    let names = [ns.full("stays"), ns.full("goes")];
    for short in ["stays", "goes"] {
        ns.machine(short).with(refuse(Some("forbidden"))).create().await;
    }
    ns.wait_all::<SimulatedInstance>(|all| all.len() == 2).await;
    world.kill_controllers();
    for name in &names {
        let machine = ns.get::<Machine>(name).await;
        assert_eq!((machine.provider_id(), is_held(&machine)), (None, true), "{name}");
        ns.patch::<Machine>(name, refuse(None)).await;
    }
    let [stays, goes] = &names;
    ns.delete::<Machine>(goes).await;
    world.start_controllers(&[]);

    let stays = ns.wait_machine(stays, |machine| machine.phase() == "Running").await;
    ns.wait_gone::<Machine>(goes).await;
    ns.delete::<Machine>(stays.name()).await;
    ns.wait_nothing_left().await;
    for name in &names {
        let is_end = |change: &e2e::Change<Machine>| change.now().is_none() && change.object().name() == name;
        let changes = machines.until(|changes| changes.iter().any(is_end)).await;
        let end = changes.iter().find(|change| is_end(change)).unwrap().object();
        let spans = instances_of(&ledger, end).await;
        assert_eq!(spans.len(), 1, "`{name}` had other than one instance: {spans:?}");
        assert!(spans[0].1 < version(end), "`{name}` went before its instance");
    }
}

// B12.14
#[tokio::test]
async fn a_create_that_failed_only_in_words_is_taken_over() {
    let ns = world().await.namespace("in-words").await;
    let ledger = ns.record::<SimulatedInstance>().await;
    let machine = running(&ns, ns.machine("m").faults(json!([{"kind": "CreateErrorButCreated"}]))).await;
    ns.wait_event(machine.name(), "FailedCreate").await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
    assert_eq!(instances_of(&ledger, &machine).await.len(), 1);
}

#[tokio::test]
async fn a_create_without_an_answer_is_tried_again_and_makes_one_instance() {
    let ns = world().await.namespace("no-answer").await;
    let ledger = ns.record::<SimulatedInstance>().await;
    let fault = json!([{"kind": "CreateError", "count": 2, "args": {"class": "Timeout"}}]);
    let machine = running(&ns, ns.machine("m").faults(fault)).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
    assert_eq!(instances_of(&ledger, &machine).await.len(), 1);
}
