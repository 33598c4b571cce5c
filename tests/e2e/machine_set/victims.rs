//! Which Machines go first when a set shrinks.

use std::collections::BTreeSet;

use e2e::{Machine, MachineSet, Ns, Object};
use mapi_api::names::{annotation, label};
use serde_json::{Value, json};

use crate::{resize, world};

/// A set that has taken over all Machines of the namespace.
async fn set_of_all(ns: &Ns, policy: &str) -> MachineSet {
    let count = ns.list::<Machine>().await.len();
    let replicas = i64::try_from(count).expect("a small number");
    let set = ns.machine_set("a").replicas(replicas).delete_policy(policy).create().await;
    ns.wait_machines(|all| all.len() == count && all.iter().all(|machine| machine.set_owner().is_some()))
        .await;
    set
}

/// A Machine that the set will take over.
fn for_set(ns: &Ns) -> Value {
    json!({"metadata": {"labels": {(label::MACHINE_SET): ns.full("a")}}})
}

/// Shrinks the set one by one. Who goes when is told by the short names.
async fn check_order(ns: &Ns, set: &MachineSet, expected: &[&str]) {
    let short = |machine: &Machine| machine.name().trim_start_matches(&ns.full("")).to_owned();
    let mut there: BTreeSet<String> = ns.list::<Machine>().await.iter().map(short).collect();
    let mut order = Vec::new();
    while there.len() > 1 {
        let left = there.len() - 1;
        resize(ns, set, left).await;
        let machines = ns.wait_machines(|all| all.len() == left).await;
        let now: BTreeSet<String> = machines.iter().map(short).collect();
        order.extend(there.difference(&now).cloned());
        there = now;
    }
    assert_eq!(order, expected);
}

// S19, S20, S21, S22
#[tokio::test]
async fn under_random_marked_failed_and_nodeless_machines_go_first() {
    let ns = world().await.namespace("random").await;
    let machine = |short: &str| ns.machine(short).with(for_set(&ns));
    machine("a-works").create().await;
    machine("b-works").annotation(annotation::DELETE_MACHINE, "").create().await;
    let refused = json!([{"kind": "CreateError", "args": {"class": "InvalidConfiguration"}}]);
    machine("c-failed").faults(refused).create().await;
    machine("d-nodeless").faults(json!([{"kind": "NeverJoin"}])).create().await;
    machine("e-marked").annotation(annotation::DELETE_MACHINE_LEGACY, "yes").create().await;
    machine("f-marked").annotation(annotation::DELETE_MACHINE, "yes").create().await;
    let phases = ["Running", "Running", "Failed", "Provisioned", "Running", "Running"];
    ns.wait_machines(|all| all.iter().map(|machine| machine.phase()).eq(phases)).await;

    let set = set_of_all(&ns, "Random").await;
    check_order(&ns, &set, &["e-marked", "f-marked", "c-failed", "d-nodeless", "a-works"]).await;
    let left = ns.list::<Machine>().await;
    assert_eq!(left[0].name(), ns.full("b-works"), "an empty mark marks nothing");
}

/// Makes Machines one after the other, so that each was created in a second of its own. A name with `marked` is that
/// of a marked one.
async fn born_in_this_order(ns: &Ns, names: &[&str]) {
    for name in names {
        let mark = if name.contains("marked") { "yes" } else { "" };
        let machine = ns
            .machine(name)
            .with(for_set(ns))
            .annotation(annotation::DELETE_MACHINE, mark)
            // Creation times have whole seconds: before this one runs, the next second has begun.
            .provider(json!({"timing": {"boot": "1100ms"}}))
            .create()
            .await;
        ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await;
    }
}

// S23, S24
#[tokio::test]
async fn under_newest_marked_machines_go_first_and_then_the_youngest() {
    let ns = world().await.namespace("newest").await;
    born_in_this_order(&ns, &["d-marked", "a-oldest", "b-older", "c-newest"]).await;
    let set = set_of_all(&ns, "Newest").await;
    check_order(&ns, &set, &["d-marked", "c-newest", "b-older"]).await;
}

// S25, S26
#[tokio::test]
async fn under_oldest_marked_machines_go_first_and_then_the_oldest() {
    let ns = world().await.namespace("oldest").await;
    born_in_this_order(&ns, &["c-oldest", "b-newer", "a-newest", "d-marked"]).await;
    let set = set_of_all(&ns, "Oldest").await;
    check_order(&ns, &set, &["d-marked", "c-oldest", "b-newer"]).await;
}
