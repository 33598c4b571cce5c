//! MachineSets that cannot be acted upon.

use e2e::{Draft, Machine, MachineSet, Ns, Object};
use k8s_openapi::api::events::v1::Event;
use mapi_api::names::label;
use serde_json::{Value, json};

use crate::{check_quiet, check_says, complaint, world};

/// A bad set, and what is said about it.
pub struct Bad {
    pub draft: Draft<MachineSet>,
    reason: &'static str,
    says: Vec<&'static str>,
}

/// Sets whose selector cannot be used.
pub fn unusable(ns: &Ns) -> Vec<Bad> {
    let labelled = |short: &str, key: &str, value: &str| {
        ns.machine_set(short).with(json!({"spec": {"selector": {"matchLabels": {(key): value}}}}))
    };
    let expression = |short: &str, expression: Value| {
        ns.machine_set(short).with(json!({"spec": {"selector": {"matchExpressions": [expression]}}}))
    };
    let bad = |draft, reason, says: &[&'static str]| Bad { draft, reason, says: says.to_vec() };
    let selector = "InvalidSelector";
    let mismatch = ["spec.template.metadata.labels: `selector` does not match template `labels`", "other=x"];
    vec![
        bad(
            labelled("key", "-x", "y"),
            selector,
            &["spec.selector.matchLabels[-x]: ", "\"-x\"", "beginning and ending with a letter or digit"],
        ),
        bad(
            labelled("value", "x", "a b"),
            selector,
            &["spec.selector.matchLabels[x]: ", "\"a b\"", "at most 63 letters"],
        ),
        bad(
            expression("operator", json!({"key": "x", "operator": "Near"})),
            selector,
            &[
                "spec.selector.matchExpressions[0].operator: ",
                "\"Near\"",
                "In, NotIn, Exists or DoesNotExist",
            ],
        ),
        bad(
            expression("values", json!({"key": "x", "operator": "In"})),
            selector,
            &["spec.selector.matchExpressions[0].values: ", "at least one value for operator In or NotIn"],
        ),
        bad(
            ns.machine_set("empty").without("/spec/selector/matchLabels"),
            selector,
            &["spec.selector: empty selector is not valid for MachineSet."],
        ),
        bad(labelled("mismatch", "other", "x"), selector, &mismatch),
    ]
}

/// Sets whose Machines would be of no use.
pub fn useless(ns: &Ns) -> Vec<Bad> {
    let template = "/spec/template/spec/providerSpec";
    let path = "spec.template.spec.providerSpec.value: ";
    vec![
        Bad {
            draft: ns.machine_set("no-spec").without(template),
            reason: "MissingProviderSpec",
            says: vec![path, "an object with `apiVersion` and `kind` of a cloud is needed"],
        },
        Bad {
            draft: ns.machine_set("no-kind").without(&format!("{template}/value/kind")),
            reason: "MissingProviderSpec",
            says: vec![path, "an object with `apiVersion` and `kind` of a cloud is needed"],
        },
        Bad {
            draft: ns.machine_set("number").provider(json!({"zone": 5})),
            reason: "InvalidProviderSpec",
            says: vec![path, "zone: `5`: must be a text"],
        },
        Bad {
            draft: ns.machine_set("word").provider(json!({"instanceType": "big"})),
            reason: "InvalidProviderSpec",
            says: vec![path, "instanceType: `big`: must be one of sim.small, "],
        },
    ]
}

async fn check_bad(ns: &Ns, all: Vec<Bad>) {
    let mut names = Vec::new();
    for Bad { draft, reason, says } in all {
        let name = draft.replicas(2).create().await.name().to_owned();
        let set = ns.wait_set(&name, |set| complaint(&set.status.conditions, reason).is_some()).await;
        check_says(&name, complaint(&set.status.conditions, reason).unwrap_or_default(), &says);
        let is_told = |event: &&Event| {
            let note = event.note.as_deref().unwrap_or_default();
            note.starts_with(&format!("\"{name}\" machineset validation failed: "))
                && says.iter().all(|part| note.contains(part))
        };
        ns.wait_all(|events: &[&Event]| events.iter().any(is_told)).await;
        assert_eq!(set.status.observed_generation, set.metadata.generation, "{name}");
        assert_eq!(set.status.replicas, Some(0), "{name}");
        names.push(name);
    }
    assert_eq!(ns.list::<Machine>().await.len(), 0);

    // A good one among them works.
    let good = ns.machine_set("good").replicas(2).create().await;
    ns.wait_running(2).await;
    ns.patch::<MachineSet>(good.name(), json!({"spec": {"replicas": 1}})).await;
    ns.wait_set(good.name(), |set| set.status.replicas == Some(1)).await;
    ns.wait_running(1).await;
    check_quiet(ns).await;

    for name in &names {
        ns.kubectl(&["delete", "machineset", name, "--cascade=foreground", "--timeout=60s"]).await;
    }
    assert_eq!(ns.list::<MachineSet>().await.len(), 1);
    ns.wait_running(1).await;
}

// S02, S03, S04
#[tokio::test]
async fn a_set_that_cannot_be_acted_upon_says_why_and_makes_nothing() {
    let ns = world().await.namespace("unusable").await;
    check_bad(&ns, unusable(&ns)).await;
}

#[tokio::test]
async fn a_set_whose_machines_would_be_of_no_use_says_why_and_makes_none() {
    let ns = world().await.namespace("useless").await;
    check_bad(&ns, useless(&ns)).await;
}

#[tokio::test]
async fn a_kind_that_nobody_here_serves_is_told_by_the_set_and_its_machines() {
    let ns = world().await.namespace("nobody").await;
    let set = ns.machine_set("a").replicas(2).provider(json!({"kind": "NobodyServesThis"})).create().await;
    let reason = "UnknownProviderKind";
    let told = ns.wait_set(set.name(), |set| complaint(&set.status.conditions, reason).is_some()).await;
    let message = complaint(&told.status.conditions, reason).unwrap_or_default();
    let path = "spec.template.spec.providerSpec.value.kind: `NobodyServesThis.";
    check_says("the set", message, &[path, "allowed: `KubemarkMachineProviderSpec."]);
    let is_told = |machine: &&Machine| complaint(&machine.status.conditions, reason).is_some();
    ns.wait_machines(|machines| machines.len() == 2 && machines.iter().all(is_told)).await;
    ns.wait_set(set.name(), |set| set.status.replicas == Some(2)).await;
    check_quiet(&ns).await;
    ns.delete::<MachineSet>(set.name()).await;
    ns.wait_nothing_left().await;
}

/// An edit of the selector that keeps the template in step.
fn reselect(value: &str) -> Value {
    let labels = json!({(label::MACHINE_SET): value});
    json!({"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}})
}

#[tokio::test]
async fn an_edited_selector_stops_the_set_until_it_is_set_back() {
    let ns = world().await.namespace("reselect").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    let name = set.name();
    ns.wait_running(2).await;
    let before = ns.wait_set(name, |set| set.status.ready_replicas == Some(2)).await;
    // What the new selector would take over.
    ns.machine("lone").machine_label(label::MACHINE_SET, "different").create().await;
    let machines = ns.wait_running(3).await;

    ns.patch::<MachineSet>(name, reselect("different")).await;
    let reason = "SelectorChanged";
    let edited = ns.wait_set(name, |set| complaint(&set.status.conditions, reason).is_some()).await;
    let old = before.status.label_selector.clone().unwrap();
    let new = format!("`{}=different`", label::MACHINE_SET);
    let message = complaint(&edited.status.conditions, reason).unwrap_or_default();
    check_says(name, message, &["spec.selector: ", &new, "cannot be changed", &format!("back to `{old}`")]);
    assert_eq!(edited.status.label_selector, before.status.label_selector, "the evidence stays");
    ns.patch::<MachineSet>(name, json!({"spec": {"replicas": 4}})).await;
    ns.wait_set(name, |set| set.status.observed_generation == set.metadata.generation).await;
    check_quiet(&ns).await;
    let after = ns.list::<Machine>().await;
    let identity = |machine: &Machine| (machine.uid().to_owned(), machine.metadata.owner_references.clone());
    assert!(after.iter().map(identity).eq(machines.iter().map(identity)), "nothing was done to any Machine");

    ns.patch::<MachineSet>(name, reselect(name)).await;
    ns.wait_set(name, |set| set.status.ready_replicas == Some(4)).await;
    // Edited again, it can be deleted all the same, with its Machines.
    ns.patch::<MachineSet>(name, reselect("different")).await;
    ns.wait_set(name, |set| complaint(&set.status.conditions, reason).is_some()).await;
    ns.delete::<MachineSet>(name).await;
    let left = ns.wait_machines(|machines| machines.len() == 1).await;
    assert_eq!(left[0].name(), ns.full("lone"));
}

#[tokio::test]
async fn a_negative_number_is_refused_at_once() {
    let ns = world().await.namespace("negative").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    ns.wait_running(2).await;
    let allowed = "should be a non-negative integer";
    let error = ns.machine_set("b").replicas(-1).try_create().await.unwrap_err().to_string();
    check_says("creation", &error, &[&ns.full("b"), "spec.replicas", "-1", allowed]);
    let answer = ns.try_kubectl(&[
        "patch",
        "machineset",
        set.name(),
        "--type=merge",
        "-p",
        r#"{"spec": {"replicas": -3}}"#,
    ]);
    let answer = answer.await;
    assert!(!answer.is_ok);
    check_says("edit", &answer.stderr, &[set.name(), "spec.replicas", "-3", allowed]);
    ns.wait_running(2).await;
}
