//! Objects that a looser schema let in: what cannot be read is told and left alone, and what can be read and is not valid
//! is told as everything else.

use std::sync::LazyLock;

use e2e::{
    Machine, MachineHealthCheck, MachineSet, Ns, Object, Options, SimulatedInstance, World, free_port,
};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams};
use mapi_api::{Condition, Conditions, names};
use serde_json::{Value, json};

/// Where the controllers show their metrics.
static PORT: LazyLock<u16> = LazyLock::new(free_port);

/// Our kinds under schemas that let everything in.
async fn world() -> World {
    let kinds = [("Machine", "machines"), ("MachineSet", "machinesets")];
    let kinds = kinds.into_iter().chain([("MachineHealthCheck", "machinehealthchecks")]);
    World::shared(Options {
        arguments: vec![format!("--metrics-bind-address=127.0.0.1:{}", *PORT)],
        manifests: kinds.map(|(kind, plural)| loose(kind, plural).to_string()).collect(),
        ..Options::default()
    })
    .await
}

fn loose(kind: &str, plural: &str) -> Value {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{}", names::GROUP)},
        "spec": {
            "group": names::GROUP,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase()},
            "scope": "Namespaced",
            "versions": [{"name": names::VERSION, "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": anything}}],
        },
    })
}

/// An object that cannot be read because of `spec`.
fn poison(ns: &Ns, kind: &str, spec: Value) -> Value {
    json!({"apiVersion": names::API_VERSION, "kind": kind,
        "metadata": {"name": ns.full("poison"), "labels": {(names::label::CLUSTER): "e2e"}}, "spec": spec})
}

/// Waits for the event about the object that cannot be read, and checks that it says where and what.
async fn check_told(ns: &Ns, kind: &str, says: &[&str]) {
    let is_told = |event: &&Event| {
        let note = event.note.as_deref().unwrap_or_default();
        let regarding = event.regarding.as_ref().and_then(|regarding| regarding.kind.as_deref());
        event.reason.as_deref() == Some("Undecodable")
            && regarding == Some(kind)
            && note.starts_with(&format!("the stored {kind} cannot be decoded and is left alone: "))
            && says.iter().all(|part| note.contains(part))
    };
    ns.wait_all(|events: &[&Event]| events.iter().any(is_told)).await;
}

/// How many objects of a kind could not be read, by the controllers' metrics.
async fn undecodable(ns: &Ns, kind: &str) -> u64 {
    let line = format!("mapi_undecodable_objects_total{{kind=\"{kind}\"}} ");
    let text = ns.world().metrics(*PORT).await;
    text.lines().find_map(|text| text.strip_prefix(&line)).map_or(0, |count| count.parse().expect("a count"))
}

/// A set works: it grows and shrinks.
async fn check_works(ns: &Ns, set: &MachineSet) {
    for replicas in [2, 1] {
        ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": replicas}})).await;
        ns.wait_set(set.name(), |set| {
            (set.status.ready_replicas, set.status.replicas) == (Some(replicas), Some(replicas))
        })
        .await;
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_told_and_left_alone_and_can_be_deleted() {
    let ns = world().await.namespace("poison").await;
    let good = ns.machine_set("good").replicas(1).create().await;
    for (kind, spec, says) in [
        ("Machine", json!({"taints": "secret"}), ["spec.taints: ", "expected a sequence"]),
        ("MachineSet", json!({"replicas": "secret"}), ["spec.replicas: ", "expected i64"]),
        ("MachineHealthCheck", json!({"selector": "secret"}), ["spec.selector: ", "expected struct"]),
    ] {
        ns.apply(poison(&ns, kind, spec)).await;
        check_told(&ns, kind, &says).await;
        assert!(undecodable(&ns, kind).await > 0, "{kind}");
        check_works(&ns, &good).await;
    }
    // A value may be a secret, and one event about each object is enough.
    let events = ns.events(&ns.full("poison")).await;
    assert!(events.iter().all(|event| !event.note.as_deref().unwrap_or_default().contains("secret")));
    assert_eq!(events.len(), 3);
    let versions = async || {
        let name = ns.full("poison");
        let machine = ns.api::<Machine>().get(&name).await.unwrap();
        let set = ns.api::<MachineSet>().get(&name).await.unwrap();
        let check = ns.api::<MachineHealthCheck>().get(&name).await.unwrap();
        [machine, set, check].map(|object| object.metadata.generation.zip(object.metadata.resource_version))
    };
    let before = versions().await;
    // A restart finds them in its first list.
    ns.world().kill_controllers();
    ns.world().start_controllers(&[]);
    check_works(&ns, &good).await;
    assert_eq!(versions().await, before, "nothing was written to them");
    let name = ns.full("poison");
    ns.delete::<Machine>(&name).await;
    ns.wait_gone::<Machine>(&name).await;
    ns.delete::<MachineSet>(&name).await;
    ns.wait_gone::<MachineSet>(&name).await;
    ns.delete::<MachineHealthCheck>(&name).await;
    ns.wait_gone::<MachineHealthCheck>(&name).await;
    ns.delete::<MachineSet>(good.name()).await;
    ns.wait_nothing_left().await;
}

/// Changes the status of a Machine to whatever.
async fn spoil(ns: &Ns, machine: &Machine, status: Value) {
    let patch = Patch::Merge(json!({ "status": status }));
    ns.api::<Machine>()
        .patch_status(machine.name(), &PatchParams::default(), &patch)
        .await
        .expect("it is let in");
}

#[tokio::test]
async fn a_running_machine_that_cannot_be_read_any_more_keeps_its_instance_until_it_is_deleted() {
    let ns = world().await.namespace("spoiled").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    let machines = ns.wait_running(2).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(2)).await;
    let instances = ns.record::<SimulatedInstance>().await;

    spoil(&ns, &machines[0], json!({"addresses": "none"})).await;
    let version =
        async || ns.api::<Machine>().get(machines[0].name()).await.unwrap().metadata.resource_version;
    let spoiled = version().await;
    check_told(&ns, "Machine", &["status.addresses: ", "expected a sequence"]).await;
    // The set goes on with what it knew of it: nothing is made in its place.
    let other = ns.machine_set("other").create().await;
    check_works(&ns, &other).await;
    let status = ns.get::<MachineSet>(set.name()).await.status;
    assert_eq!((status.replicas, status.ready_replicas), (Some(2), Some(2)));
    assert_eq!(version().await, spoiled, "nothing is written to it");
    let gone = instances.changes().iter().filter(|change| change.now().is_none()).count();
    assert_eq!(gone, 1, "the instance that the other set gave up, and no other");

    // A removal needs nothing of what cannot be read.
    ns.delete::<Machine>(machines[0].name()).await;
    ns.wait_gone::<Machine>(machines[0].name()).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(2)).await;
    ns.delete::<MachineSet>(set.name()).await;
    ns.delete::<MachineSet>(other.name()).await;
    ns.wait_nothing_left().await;
}

fn complaint(conditions: &[Condition], reason: &str) -> Option<String> {
    let found = conditions.find(names::condition::SPEC_VALID)?;
    (found.status.0 == "False" && found.reason == reason).then(|| found.message.clone())
}

// S05, S27
#[tokio::test]
async fn values_that_the_schema_would_refuse_are_told_by_the_set() {
    let ns = world().await.namespace("values").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(2)).await;
    let machines: Vec<String> = ns.list::<Machine>().await.iter().map(|m| m.uid().to_owned()).collect();
    let range = "a number from 0 to 2147483647 is needed";
    let policies = "must be one of 'Random', 'Newest', or 'Oldest'";
    for (spec, reason, says) in [
        (json!({"replicas": -1}), "InvalidReplicas", ["spec.replicas: `-1`: ", range]),
        (json!({"replicas": 3_000_000_000_i64}), "InvalidReplicas", ["spec.replicas: `3000000000`: ", range]),
        (json!({"replicas": null}), "InvalidReplicas", ["spec.replicas: missing, ", range]),
        (
            json!({"replicas": 1, "deletePolicy": "Foo"}),
            "InvalidField",
            ["spec.deletePolicy: unsupported delete policy Foo, ", policies],
        ),
    ] {
        ns.patch::<MachineSet>(set.name(), json!({ "spec": spec })).await;
        let told = ns.wait_set(set.name(), |set| {
            complaint(&set.status.conditions, reason)
                .is_some_and(|message| says.iter().all(|part| message.contains(part)))
        });
        let told = told.await;
        assert_eq!(told.status.observed_generation, told.metadata.generation);
        assert_eq!((told.status.replicas, told.status.ready_replicas), (Some(2), Some(2)));
    }
    // A policy is needed only for shrinking.
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": 3}})).await;
    let grown = ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(3)).await;
    assert!(grown.status.conditions.is_true(names::condition::SPEC_VALID));
    let now: Vec<String> = ns.list::<Machine>().await.iter().map(|m| m.uid().to_owned()).collect();
    assert!(machines.iter().all(|uid| now.contains(uid)), "nothing was done to those that were there");
}
