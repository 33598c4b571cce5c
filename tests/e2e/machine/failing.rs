//! What a failing cloud does to a Machine, and what it does not.

use std::time::Instant;

use e2e::{Change, Machine, MachineSet, Object, SimulatedInstance};
use mapi_api::{Conditions, names::condition};
use serde_json::json;

use crate::{
    condition, error, instance, let_others_work, life, live_faults, restored, running, state, states, world,
};

const MISSING: &str = "False Warning InstanceMissing Instance not found on provider";
const LOST: [Option<&str>; 2] = [None, Some("can't find created instance")];
const REFUSED: &str = "the configuration was refused";

// M08, M12, M37
#[tokio::test]
async fn a_machine_whose_instance_was_taken_away_fails_after_a_second_look_and_is_not_made_again() {
    let ns = world().await.namespace("taken").await;
    let (machines, ledger) = (ns.record::<Machine>().await, ns.record::<SimulatedInstance>().await);
    let machine = running(&ns, ns.machine("m")).await;
    let first = instance(&ns, &machine).await;
    ns.delete::<SimulatedInstance>(first.name()).await;

    let failed = ns.wait_machine(machine.name(), |machine| machine.phase() == "Failed").await;
    assert_eq!((error(&failed), state(&failed)), (LOST, "Unknown"));
    assert_eq!(condition(&failed, condition::INSTANCE_EXISTS), MISSING);
    let states = states(&machines, &machine, |machine| machine.phase() == "Failed").await;
    let missed = states.iter().find(|m| condition(m, condition::INSTANCE_EXISTS) == MISSING).unwrap();
    assert_eq!(missed.phase(), "Running", "one look is not enough");
    let since = missed.status.conditions.find(condition::INSTANCE_EXISTS).unwrap();
    let waited = failed.status.last_updated.as_ref().unwrap().0.as_second()
        - since.last_transition_time.as_ref().unwrap().0.as_second();
    assert!(waited >= 10, "{waited} s");

    // Failed is for good: whatever happens to it, it is left alone.
    let poke = json!({"metadata": {"annotations": {"e2e.test/poke": "1"}}, "spec": {"taints": []}});
    ns.patch::<Machine>(machine.name(), poke).await;
    let_others_work(&ns, "other").await;
    assert_eq!(ns.get::<Machine>(machine.name()).await.status, failed.status);
    let is_second = |change: &Change<SimulatedInstance>| {
        let one = change.object();
        one.spec.machine_ref.uid == machine.uid() && one.uid() != first.uid()
    };
    assert!(!ledger.changes().iter().any(is_second), "there was a second instance");

    ns.delete::<Machine>(machine.name()).await;
    ns.wait_nothing_left().await;
    let (states, _) = life(&machines, &machine).await;
    let deleting: Vec<_> = states.iter().filter(|machine| machine.phase() == "Deleting").collect();
    assert!(!deleting.is_empty() && deleting.iter().all(|machine| !machine.has_error()));
}

// M09, M10, M50, M51
#[tokio::test]
async fn a_record_of_an_instance_is_enough_to_fail_without_it() {
    let ns = world().await.namespace("recorded").await;
    let ledger = ns.record::<SimulatedInstance>().await;
    let addresses = json!([{"type": "InternalIP", "address": "192.0.2.77"}]);
    let states = json!({"vmState": "Running", "state": "Running"});
    let only_addresses = json!({"addresses": addresses, "providerStatus": states});
    let by_addresses = restored(&ns, ns.machine("addresses"), only_addresses).await;
    let with_id = ns.machine("id").machine_spec(json!({"providerID": "kubemark:///somewhere/i"}));
    let by_id = restored(&ns, with_id, json!({})).await;

    let failed = |name: String| {
        let ns = &ns;
        async move {
            let machine = ns.wait_machine(&name, |machine| machine.phase() == "Failed").await;
            assert_eq!((error(&machine), state(&machine)), (LOST, "Unknown"), "{name}");
            assert_eq!(condition(&machine, condition::INSTANCE_EXISTS), MISSING, "{name}");
            machine.status.provider_status.map(|status| status.value())
        }
    };
    let unknown = json!({"vmState": "Unknown", "state": "Running"});
    assert_eq!(failed(by_addresses.name().to_owned()).await, Some(unknown));
    assert_eq!(failed(by_id.name().to_owned()).await, None);
    assert_eq!(ledger.changes().len(), 0, "nothing is made in place of what is lost");
}

// M12
#[tokio::test]
async fn a_machine_that_is_restored_as_failed_is_left_alone() {
    let ns = world().await.namespace("failed").await;
    let failed =
        json!({"phase": "Failed", "errorReason": "InsufficientResources", "errorMessage": "no host"});
    let machine = restored(&ns, ns.machine("m"), failed).await;
    let before = ns.wait_machine(machine.name(), crate::is_held).await;
    let_others_work(&ns, "other").await;
    let after = ns.get::<Machine>(machine.name()).await;
    assert_eq!(after.status, before.status);
    assert_eq!((after.phase(), error(&after)), ("Failed", [Some("InsufficientResources"), Some("no host")]));
    assert_eq!(ns.list::<SimulatedInstance>().await.len(), 0);
}

// B12.23
// M13, M35
#[tokio::test]
async fn an_outage_is_a_condition_fails_nothing_and_lets_nothing_go() {
    let ns = world().await.namespace("outage").await;
    let machine = running(&ns, ns.machine("m")).await;
    ns.patch::<Machine>(machine.name(), live_faults(Some(json!([{"kind": "ApiOutage"}])))).await;
    let text = "Unknown ErrorCheckingProvider Failed to check if machine exists: cannot find simulated instance: the \
                cloud does not answer";
    let is_out = |machine: &Machine| condition(machine, condition::INSTANCE_EXISTS) == text;
    let out = ns.wait_machine(machine.name(), is_out).await;
    assert_eq!((out.phase(), error(&out)), ("Running", [None, None]));
    ns.patch::<Machine>(machine.name(), live_faults(None)).await;
    ns.wait_machine(machine.name(), |m| condition(m, condition::INSTANCE_EXISTS) == "True").await;

    // Somebody wants it gone while the cloud is out again.
    ns.patch::<Machine>(machine.name(), live_faults(Some(json!([{"kind": "ApiOutage"}])))).await;
    ns.wait_machine(machine.name(), is_out).await;
    ns.delete::<Machine>(machine.name()).await;
    ns.wait_machine(machine.name(), |m| m.status.conditions.is_true(condition::DRAINED)).await;
    let_others_work(&ns, "other").await;
    let held = ns.get::<Machine>(machine.name()).await;
    assert!(crate::is_held(&held) && is_out(&held), "{:?}", held.status.conditions);
    assert!(!instance(&ns, &machine).await.is_deleting());
    ns.patch::<Machine>(machine.name(), live_faults(None)).await;
    ns.wait_nothing_left().await;
}

// B12.16
// M18, M19, M32
#[tokio::test]
async fn a_machine_whose_create_is_refused_fails_once_is_kept_by_its_set_and_goes_without_delay() {
    let ns = world().await.namespace("refused").await;
    let ledger = ns.record::<SimulatedInstance>().await;
    let fault = json!([{"kind": "CreateError", "args": {"class": "InvalidConfiguration"}}]);
    let set = ns.machine_set("a").replicas(1).faults(fault).create().await;
    let is_failed = |all: &[&Machine]| all.iter().any(|machine| machine.phase() == "Failed");
    let failed = ns.wait_machines(is_failed).await.remove(0);
    assert_eq!(error(&failed), [Some("InvalidConfiguration"), Some(REFUSED)]);
    assert_eq!(
        condition(&failed, condition::INSTANCE_EXISTS),
        format!("False Warning InstanceNotCreated Instance has not been created: {REFUSED}")
    );
    assert_eq!(
        condition(&failed, condition::SPEC_VALID),
        format!("False Error InvalidProviderSpec spec.providerSpec.value: {REFUSED}")
    );
    let event = ns.wait_event(failed.name(), "FailedCreate").await.remove(0);
    assert_eq!((event.type_.as_deref(), event.action.as_deref()), (Some("Warning"), Some("Create")));

    let elsewhere = ns.world().namespace("elsewhere").await;
    let_others_work(&elsewhere, "other").await;
    let all = ns.list::<Machine>().await;
    assert_eq!((all.len(), all[0].uid()), (1, failed.uid()), "it is not replaced");

    // Nothing was made, and this process knows it: there is no time to wait for.
    let began = Instant::now();
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": 0}})).await;
    ns.wait_nothing_left().await;
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(ledger.changes().len(), 0);
}

// B12.15
// M20
#[tokio::test]
async fn a_machine_that_meets_a_quota_says_so_and_runs_once_there_is_room() {
    let ns = world().await.namespace("quota").await;
    let machines = ns.record::<Machine>().await;
    let fault = json!([{"kind": "CreateError", "count": 3, "args": {"class": "Quota"}}]);
    let machine = ns.machine("m").faults(fault).create().await;
    for count in 1..=3 {
        let is_met = |machine: &Machine| {
            let status = machine.status.provider_status.as_ref().map(|status| status.value());
            status.is_some_and(|status| status["createFailures"] == count)
        };
        let waiting = ns.wait_machine(machine.name(), is_met).await;
        assert_eq!((waiting.phase(), error(&waiting)), ("Provisioning", [None, None]));
        assert_eq!(
            condition(&waiting, condition::INSTANCE_EXISTS),
            "False Warning InstanceNotCreated Instance has not been created: the quota is used up"
        );
        // A quota is asked about every few minutes, but at once after somebody changed the Machine.
        let poke = json!({"metadata": {"annotations": {"e2e.test/poke": count.to_string()}}});
        ns.patch::<Machine>(machine.name(), poke).await;
    }
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
    let states = states(&machines, &machine, |machine| machine.phase() == "Running").await;
    assert!(states.iter().all(|machine| machine.phase() != "Failed" && !machine.has_error()));
    let note = ns.wait_event(machine.name(), "FailedCreate").await.remove(0).note;
    assert_eq!(note.as_deref(), Some("cannot launch simulated instance: the quota is used up"));
}

// M21, M22
#[tokio::test]
async fn the_delay_that_a_cloud_asks_for_is_kept_and_none_is_not_at_once() {
    let ns = world().await.namespace("throttled").await;
    let machines = ns.record::<Machine>().await;
    let throttle = |delay: &str| json!([{"kind": "CreateError", "count": 1, "args": {"class": "Throttle", "retryAfter": delay}}]);
    // By itself the table of delays says ten seconds. Times are whole seconds.
    let rows = [("asked", "14s", 13), ("zero", "0s", 9)];
    for (short, asked, _) in rows {
        ns.machine(short).faults(throttle(asked)).create().await;
    }
    let is_running = |machine: &Machine| machine.phase() == "Running";
    for (short, _, least) in rows {
        let machine = ns.wait_machine(&ns.full(short), is_running).await;
        let states = states(&machines, &machine, is_running).await;
        let is_told = |m: &&Machine| condition(m, condition::INSTANCE_EXISTS).ends_with("too many calls");
        let told = states.iter().find(is_told).and_then(|told| told.status.last_updated.as_ref()).unwrap();
        let made = instance(&ns, &machine).await.metadata.creation_timestamp.unwrap();
        let waited = made.0.as_second() - told.0.as_second();
        assert!(waited >= least, "{short}: {waited} s");
    }
}
