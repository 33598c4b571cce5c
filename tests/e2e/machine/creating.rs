//! From nothing to Running.

use e2e::{Change, Machine, Object, SimulatedInstance};
use mapi_api::names::{condition, finalizer, label};
use serde_json::json;

use crate::{
    condition, finalizers, instance, let_others_work, live_faults, running, settled, state, states, version,
    world,
};

// M02, M03
#[tokio::test]
async fn nothing_is_made_before_finalizer_and_status_are_written() {
    let ns = world().await.namespace("order").await;
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let others = json!({"metadata": {"finalizers": ["e2e.test/a", "e2e.test/b"]}});
    let machine = running(&ns, ns.machine("m").with(others)).await;

    let states = states(&machines, &machine, |machine| machine.phase() == "Running").await;
    let held = states.iter().find(|machine| machine.has_finalizer(finalizer::MACHINE)).unwrap();
    assert_eq!(finalizers(held), ["e2e.test/a", "e2e.test/b", finalizer::MACHINE]);
    assert_eq!((held.phase(), held.status.conditions.len()), ("", 0), "it comes first");
    let looked = states.iter().find(|machine| !machine.phase().is_empty()).unwrap();
    assert_eq!(
        (looked.phase(), condition(looked, condition::INSTANCE_EXISTS).as_str()),
        ("Provisioning", "False Warning InstanceNotCreated Instance has not been created")
    );
    let made = ledger.until(|changes| !changes.is_empty()).await;
    let order = [version(held), version(looked), version(made[0].object())];
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
}

// M04, M07
#[tokio::test]
async fn a_running_machine_says_all_that_is_known_of_its_one_instance() {
    let ns = world().await.namespace("facts").await;
    let ledger = ns.record::<SimulatedInstance>().await;
    let machine = settled(&ns, ns.machine("m").zone("sim-region-b")).await;
    let instance = instance(&ns, &machine).await;

    assert_eq!(machine.provider_id(), Some(instance.spec.node.provider_id.as_str()));
    assert_eq!(instance.spec.token, machine.uid());
    let kinds: Vec<&str> = machine.status.addresses.iter().map(|address| &*address.type_).collect();
    assert_eq!(kinds, ["InternalIP", "Hostname", "InternalDNS"]);
    for (key, value) in
        [(label::REGION, "sim-region"), (label::ZONE, "sim-region-b"), (label::INSTANCE_TYPE, "sim.medium")]
    {
        assert_eq!(machine.label(key), Some(value));
    }
    for type_ in [condition::INSTANCE_EXISTS, condition::DRAINABLE, condition::TERMINABLE] {
        assert_eq!(condition(&machine, type_), "True", "{type_}");
    }
    assert_eq!((state(&machine), machine.has_error()), ("Running", false));
    let status = machine.status.provider_status.as_ref().unwrap().value();
    assert_eq!(status["instanceId"], instance.name());
    let event = ns.wait_event(machine.name(), "Create").await.remove(0);
    assert_eq!((event.type_.as_deref(), event.action.as_deref()), (Some("Normal"), Some("Create")));
    assert_eq!(ns.events(machine.name()).await.len(), 1, "nothing else happened");
    assert!(ledger.changes().iter().map(Change::object).all(|one| one.uid() == instance.uid()));
}

// M05
#[tokio::test]
async fn a_machine_without_a_node_is_provisioned_until_it_has_one() {
    let ns = world().await.namespace("no-node").await;
    let draft = ns.machine("m").with(live_faults(Some(json!([{"kind": "NeverJoin"}]))));
    let machine = draft.create().await;
    let is_up = |machine: &Machine| !machine.status.addresses.is_empty();
    ns.wait_machine(machine.name(), is_up).await;
    let_others_work(&ns, "other").await;
    let waiting = ns.get::<Machine>(machine.name()).await;
    assert_eq!((waiting.phase(), waiting.node_name()), ("Provisioned", None));
    assert_eq!(condition(&waiting, condition::INSTANCE_EXISTS), "True");

    ns.patch::<Machine>(machine.name(), live_faults(None)).await;
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
}

#[tokio::test]
async fn an_instance_that_does_not_come_up_is_told_of_before_it_has_an_address() {
    let ns = world().await.namespace("slow").await;
    let stuck = json!([{"kind": "StuckProvisioning", "args": {"state": "Starting"}}]);
    let machine = ns.machine("m").with(live_faults(Some(stuck))).create().await;
    let waiting = ns.wait_machine(machine.name(), |machine| machine.phase() == "Provisioned").await;
    assert_eq!((waiting.status.addresses.len(), state(&waiting)), (0, "Starting"));
    assert_eq!(condition(&waiting, condition::INSTANCE_EXISTS), "True");
    assert!(waiting.provider_id().is_some());

    ns.patch::<Machine>(machine.name(), live_faults(None)).await;
    let machine = ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
    assert_eq!(state(&machine), "Running");
}

// M11
#[tokio::test]
async fn an_empty_provider_id_is_as_none() {
    let ns = world().await.namespace("empty-id").await;
    let machine = running(&ns, ns.machine("m").machine_spec(json!({"providerID": ""}))).await;
    assert_eq!(machine.provider_id(), Some(instance(&ns, &machine).await.spec.node.provider_id.as_str()));
}
