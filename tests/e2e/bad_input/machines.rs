//! Machines that cannot be acted upon.

use e2e::{Draft, Machine, Ns, Object, SimulatedInstance};
use mapi_api::{
    Conditions,
    names::{condition, finalizer, label},
};
use serde_json::{Value, json};

use crate::{check_quiet, check_says, complaint, world};

/// Kinds of providerSpec that are served here.
const SERVED: [&str; 2] = [
    "`KubemarkMachineProviderSpec.kubemarkproviderconfig.machine.openshift.io`",
    "`KubemarkMachineProviderConfig.kubemarkproviderconfig.k8s.io`",
];

/// A bad Machine, and what is said about it.
pub struct Bad {
    pub draft: Draft<Machine>,
    reason: &'static str,
    says: Vec<&'static str>,
}

/// Machines that no cloud is asked about.
pub fn incomplete(ns: &Ns) -> Vec<Bad> {
    let no_label = vec!["metadata.labels: missing ", label::CLUSTER, "must be the id of the cluster"];
    let no_spec = vec!["spec.providerSpec.value: ", "must be set", SERVED[0], SERVED[1]];
    let no_kind =
        ["spec.providerSpec.value.kind: `NobodyServesThis.", "must be one of", SERVED[0], SERVED[1]];
    let unknown = json!({"kind": "NobodyServesThis"});
    let bad = |draft, reason, says: &[&'static str]| Bad { draft, reason, says: says.to_vec() };
    vec![
        bad(ns.machine("no-label").without("/metadata/labels"), "MissingLabel", &no_label),
        bad(ns.machine("empty-label").machine_label(label::CLUSTER, ""), "MissingLabel", &no_label),
        bad(ns.machine("no-spec").without("/spec/providerSpec"), "MissingProviderSpec", &no_spec),
        bad(ns.machine("no-value").without("/spec/providerSpec/value"), "MissingProviderSpec", &no_spec),
        bad(ns.machine("no-kind").without("/spec/providerSpec/value/kind"), "MissingProviderSpec", &no_spec),
        bad(ns.machine("nobody").provider(unknown.clone()), "UnknownProviderKind", &no_kind),
        bad(
            ns.machine("both").without("/metadata/labels").provider(unknown),
            "MissingLabel",
            &[no_label.as_slice(), &no_kind].concat(),
        ),
    ]
}

/// Machines whose cloud refuses the providerSpec.
pub fn malformed(ns: &Ns) -> Vec<Bad> {
    let specs: [(&str, Value, &[&'static str]); 6] = [
        ("number", json!({"zone": 5}), &["zone: `5`: must be a text"]),
        ("text", json!({"capacity": "all"}), &["capacity: `all`: must be an object"]),
        ("deep", json!({"timing": {"boot": "soon"}}), &["timing.boot", "`soon`", "must be a duration"]),
        ("list", json!({"faults": [{"kind": "Nope"}]}), &["faults[0].kind", "`Nope`", "NeverJoin"]),
        ("word", json!({"instanceType": "big"}), &["instanceType: `big`: must be one of sim.small, "]),
        ("range", json!({"network": {"cidr": ["10.245.0.0/16"]}}), &["network.cidr[0]", "10.240.0.0/12"]),
    ];
    let bad = |(short, value, says): (&str, Value, &[&'static str])| Bad {
        draft: ns.machine(short).provider(value),
        reason: "InvalidProviderSpec",
        says: [&["spec.providerSpec.value: "], says].concat(),
    };
    specs.into_iter().map(bad).collect()
}

// M38, M39
#[tokio::test]
async fn a_machine_that_lacks_something_says_what_and_gets_nothing() {
    let ns = world().await.namespace("incomplete").await;
    let mut names = Vec::new();
    for Bad { draft, reason, says } in incomplete(&ns) {
        let name = draft.create().await.name().to_owned();
        let machine = ns.wait_machine(&name, |m| complaint(&m.status.conditions, reason).is_some()).await;
        check_says(&name, complaint(&machine.status.conditions, reason).unwrap_or_default(), &says);
        let event = ns.wait_event(&name, "FailedValidate").await.remove(0);
        check_says(&name, event.note.as_deref().unwrap_or_default(), &says);
        assert_eq!((machine.phase(), machine.has_error()), ("", false), "`{name}` can be repaired");
        assert!(!machine.has_finalizer(finalizer::MACHINE), "nothing holds `{name}`");
        names.push(name);
    }
    let good = ns.machine("good").create().await;
    ns.wait_machine(good.name(), |machine| machine.phase() == "Running").await;
    assert_eq!(ns.list::<SimulatedInstance>().await.len(), 1);
    check_quiet(&ns).await;

    for name in &names {
        ns.delete::<Machine>(name).await;
    }
    ns.wait_running(1).await;
    ns.delete::<Machine>(good.name()).await;
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn a_machine_whose_spec_the_cloud_refuses_fails_and_says_why() {
    let ns = world().await.namespace("malformed").await;
    let mut names = Vec::new();
    for Bad { draft, reason, says } in malformed(&ns) {
        let name = draft.create().await.name().to_owned();
        let machine = ns.wait_machine(&name, |machine| machine.phase() == "Failed").await;
        check_says(&name, complaint(&machine.status.conditions, reason).unwrap_or_default(), &says);
        assert_eq!(machine.status.error_reason.as_deref(), Some("InvalidConfiguration"));
        check_says(&name, machine.status.error_message.as_deref().unwrap_or_default(), &says[1..]);
        names.push(name);
    }
    let good = ns.machine("good").create().await;
    ns.wait_machine(good.name(), |machine| machine.phase() == "Running").await;
    assert_eq!(ns.list::<SimulatedInstance>().await.len(), 1);
    check_quiet(&ns).await;

    for name in names.iter().map(String::as_str).chain([good.name()]) {
        ns.delete::<Machine>(name).await;
    }
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn a_machine_that_is_completed_goes_on() {
    let ns = world().await.namespace("completed").await;
    let good = ns.machine("a").json().clone();
    for Bad { draft, reason, says: _ } in incomplete(&ns) {
        let name = draft.create().await.name().to_owned();
        ns.wait_machine(&name, |m| complaint(&m.status.conditions, reason).is_some()).await;
        let patch = json!({"metadata": {"labels": good["metadata"]["labels"]}, "spec": good["spec"]});
        ns.patch::<Machine>(&name, patch).await;
        let machine = ns.wait_machine(&name, |machine| machine.phase() == "Running").await;
        assert!(machine.status.conditions.is_true(condition::SPEC_VALID), "{name}");
        assert!(machine.has_finalizer(finalizer::MACHINE), "{name}");
    }
}

/// A machine that runs, and whose Machine is then edited.
async fn spoiled(ns: &Ns, short: &str, patch: Value, reason: &str) -> Machine {
    let before = ns.machine(short).create().await;
    ns.wait_machine(before.name(), |machine| machine.phase() == "Running").await;
    ns.patch::<Machine>(before.name(), patch).await;
    let machine = ns.wait_machine(before.name(), |m| complaint(&m.status.conditions, reason).is_some()).await;
    assert_eq!((machine.phase(), machine.has_error()), ("Running", false), "{short}");
    machine
}

// M40
#[tokio::test]
async fn an_edit_that_makes_a_machine_bad_leaves_the_instance_and_the_way_out() {
    let ns = world().await.namespace("spoiled").await;
    let no_label = json!({"metadata": {"labels": {(label::CLUSTER): null}}});
    let malformed = json!({"spec": {"providerSpec": {"value": {"zone": 5}}}});
    let machines = [
        spoiled(&ns, "no-label", no_label, "MissingLabel").await,
        spoiled(&ns, "malformed", malformed, "InvalidProviderSpec").await,
    ];
    assert_eq!(ns.list::<SimulatedInstance>().await.len(), 2);
    check_quiet(&ns).await;
    ns.wait_nodes(|nodes| nodes.len() == 2 && nodes.iter().all(|node| node.is_ready())).await;
    for machine in machines {
        ns.delete::<Machine>(machine.name()).await;
    }
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn a_machine_whose_cloud_is_unknown_is_not_let_go_before_its_instance() {
    let ns = world().await.namespace("lost").await;
    let good = ns.machine("a").json()["spec"]["providerSpec"]["value"].clone();
    let spec = |value: Value| json!({"spec": {"providerSpec": {"value": value}}});
    let unknown = spec(json!({"kind": "NobodyServesThis"}));
    for (short, patch, reason) in
        [("no-value", spec(json!(null)), "MissingProviderSpec"), ("nobody", unknown, "UnknownProviderKind")]
    {
        let machine = spoiled(&ns, short, patch, reason).await;
        ns.delete::<Machine>(machine.name()).await;
        let held = ns
            .wait_machine(machine.name(), |machine| {
                let complaint = complaint(&machine.status.conditions, reason);
                complaint.is_some_and(|message| message.contains("the instance cannot be removed before"))
            })
            .await;
        assert!(held.is_deleting() && held.has_finalizer(finalizer::MACHINE));
        assert_eq!(ns.list::<SimulatedInstance>().await.len(), 1);
        check_quiet(&ns).await;
        ns.patch::<Machine>(machine.name(), spec(good.clone())).await;
        ns.wait_nothing_left().await;
    }
}
