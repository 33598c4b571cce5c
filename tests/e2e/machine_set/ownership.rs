//! Which Machines belong to a set.

use e2e::{Draft, Machine, MachineSet, Ns, Object};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use mapi_api::{OwnerReference, names};
use serde_json::{Value, json};

use crate::{ever, let_others_work, of, resize, uids, world};

/// The reference that a set's Machines have to it.
fn reference(set: &MachineSet) -> OwnerReference {
    OwnerReference {
        api_version: names::API_VERSION.into(),
        kind: names::KIND_MACHINE_SET.into(),
        name: set.name().into(),
        uid: set.uid().into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// A patch with the label by which a set of that short name selects.
fn label_of(ns: &Ns, set: &str) -> Value {
    json!({"metadata": {"labels": {(names::label::MACHINE_SET): ns.full(set)}}})
}

fn owners(machine: &Machine) -> Vec<OwnerReference> {
    machine.metadata.owner_references.clone().unwrap_or_default()
}

// S06, S07
#[tokio::test]
async fn machines_are_made_from_the_template_and_belong_to_the_set() {
    let ns = world().await.namespace("template").await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "ignored", "uid": "ignored"});
    let ignored = json!({"name": "ignored", "generateName": "ignored-", "namespace": "ignored",
        "ownerReferences": [owner]});
    let set = ns
        .machine_set("a")
        .replicas(2)
        .with(json!({"spec": {"template": {"metadata": ignored}}}))
        .machine_label("example.com/rack", "r7")
        .machine_annotation("example.com/note", "kept")
        .machine_spec(json!({"taints": [{"key": "example.com/new", "effect": "NoExecute"}]}))
        .provider(json!({"nodeAnnotations": {"example.com/unit": "12"}}))
        .create()
        .await;
    let spec = set.spec.template.machine_spec().unwrap();
    for machine in ns.wait_running(2).await {
        let suffix = machine.name().strip_prefix(&format!("{}-", set.name()));
        assert_eq!(suffix.map(str::len), Some(5), "name `{}`", machine.name());
        assert_eq!(machine.metadata.generate_name, Some(format!("{}-", set.name())));
        assert_eq!(owners(&machine), [reference(&set)]);
        assert_eq!(machine.label("example.com/rack"), Some("r7"));
        assert_eq!(machine.annotation("example.com/note"), Some("kept"));
        assert_eq!(machine.spec.taints, spec.taints);
        let value =
            |spec: &mapi_api::machine::MachineSpec| spec.provider_spec.value.as_ref().unwrap().value();
        assert_eq!(value(&machine.spec), value(&spec));
    }
}

// S09
#[tokio::test]
async fn a_matching_machine_without_owner_is_taken_over_and_counted() {
    let ns = world().await.namespace("adopt").await;
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "friend"}});
    ns.apply(other).await;
    let friend = ns.get::<ConfigMap>("friend").await;
    let plain = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "friend".into(),
        uid: friend.metadata.uid.unwrap(),
        ..OwnerReference::default()
    };
    let orphan = ns
        .machine("lone")
        .with(label_of(&ns, "a"))
        .with(json!({"metadata": {"ownerReferences": [plain]}}))
        .create()
        .await;
    ns.wait_running(1).await;
    let record = ns.record::<Machine>().await;
    let set = ns.machine_set("a").replicas(2).create().await;
    let machines = ns.wait_running(2).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(2)).await;

    assert_eq!(of(&set, &machines).len(), 2);
    let adopted = machines.iter().find(|machine| machine.uid() == orphan.uid()).expect("the orphan stays");
    assert_eq!(owners(adopted), [plain, reference(&set)]);
    assert_eq!(ever(&record.changes()), uids(&machines));
}

// S09
#[tokio::test]
async fn a_set_that_is_made_again_takes_its_machines_back() {
    let ns = world().await.namespace("again").await;
    let draft = ns.machine_set("a").replicas(3);
    let set = draft.clone().create().await;
    let before = ns.wait_running(3).await;
    let record = ns.record::<Machine>().await;

    ns.delete_with::<MachineSet>(set.name(), DeleteParams::orphan()).await;
    ns.wait_gone::<MachineSet>(set.name()).await;
    ns.wait_machines(|all| all.iter().all(|machine| owners(machine).is_empty())).await;

    let set = draft.create().await;
    let taken = |machine: &&Machine| owners(machine) == [reference(&set)];
    let after = ns.wait_machines(|all| all.len() == 3 && all.iter().all(taken)).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(3)).await;
    assert_eq!(uids(&after), uids(&before));
    assert_eq!(ever(&record.changes()), uids(&before));
}

// S10
#[tokio::test]
async fn a_machine_that_others_write_while_it_is_taken_over_is_not_made_up_for() {
    let ns = world().await.namespace("contended").await;
    let orphans: Vec<String> = (0..10).map(|number| format!("lone-{number}")).collect();
    for short in &orphans {
        ns.machine(short).with(label_of(&ns, "a")).create().await;
    }
    // What the controllers have told about a Machine they have seen.
    ns.wait_running(orphans.len()).await;
    let record = ns.record::<Machine>().await;

    let writes = async {
        for round in 0..12 {
            for short in &orphans {
                let note = json!({"metadata": {"annotations": {"example.com/round": round.to_string()}}});
                ns.patch::<Machine>(&ns.full(short), note).await;
            }
        }
    };
    let (set, ()) = tokio::join!(ns.machine_set("a").replicas(10).create(), writes);
    let taken = |machine: &&Machine| owners(machine) == [reference(&set)];
    ns.wait_machines(|all| all.iter().all(taken)).await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(10)).await;
    assert_eq!(ever(&record.changes()).len(), 10, "none was made, and none removed");
    assert_eq!(ns.list::<Machine>().await.len(), 10);
}

// S11, S13
#[tokio::test]
async fn only_matching_machines_of_the_namespace_without_owner_are_taken_over() {
    let world = world().await;
    let (ns, elsewhere) = (world.namespace("choosy").await, world.namespace("elsewhere").await);
    // Owned by something that is called as the set is.
    ns.apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ns.full("a")}})).await;
    let uid = ns.get::<ConfigMap>(&ns.full("a")).await.metadata.uid.unwrap();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": ns.full("a"), "uid": uid,
        "controller": true});
    let owned = json!({"metadata": {"ownerReferences": [owner]}});
    ns.machine("owned")
        .with(label_of(&ns, "a"))
        .with(owned)
        .machine_label("example.com/marked", "yes")
        .create()
        .await;
    ns.machine("unlabelled").without("/metadata/labels").create().await;
    ns.machine("different").with(label_of(&ns, "b")).create().await;
    elsewhere.machine("matching").with(label_of(&ns, "a")).create().await;
    ns.wait_machine(&ns.full("owned"), |machine| machine.phase() == "Running").await;
    ns.wait_machine(&ns.full("different"), |machine| machine.phase() == "Running").await;
    elsewhere.wait_running(1).await;

    // A Machine without labels is nobody's, even for a selector that it meets.
    let absent = json!([{"key": "example.com/marked", "operator": "DoesNotExist"}]);
    let anything = ns.machine_set("b").without("/spec/selector/matchLabels");
    anything.with(json!({"spec": {"selector": {"matchExpressions": absent}}})).create().await;
    let marked = |machine: Draft<Machine>| machine.machine_label("example.com/marked", "yes");
    marked(ns.machine("matching").with(label_of(&ns, "a"))).create().await;
    // Machines and sets are watched apart: the set must not be seen before the Machine.
    ns.wait_machine(&ns.full("matching"), |machine| machine.phase() == "Running").await;
    let set = ns.machine_set("a").replicas(1).machine_label("example.com/marked", "yes").create().await;
    ns.wait_set(set.name(), |set| set.status.ready_replicas == Some(1)).await;
    // The set `b` wants none, so what it took over is gone: everything that it may have.
    ns.wait_gone::<Machine>(&ns.full("different")).await;

    let machines = ns.list::<Machine>().await;
    let ours: Vec<&str> = of(&set, &machines).iter().map(|machine| machine.name()).collect();
    assert_eq!(ours, [ns.full("matching")]);
    assert_eq!(machines.len(), 3);
    assert_eq!(owners(&ns.get::<Machine>(&ns.full("unlabelled")).await), []);
    assert_eq!(owners(&ns.get::<Machine>(&ns.full("owned")).await)[0].uid, uid);
    assert_eq!(owners(&elsewhere.list::<Machine>().await[0]), []);
}

// S12
#[tokio::test]
async fn a_machine_that_no_longer_matches_is_let_go_and_replaced() {
    let ns = world().await.namespace("release").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    let name = ns.wait_running(2).await[0].name().to_owned();
    ns.patch::<Machine>(&name, label_of(&ns, "quarantine")).await;
    let machines = ns.wait_running(3).await;
    let freed = ns.wait_machine(&name, |machine| owners(machine).is_empty()).await;
    assert_eq!(freed.phase(), "Running");
    assert_eq!(of(&set, &machines).len(), 2);
    ns.wait_set(set.name(), |set| (set.status.replicas, set.status.ready_replicas) == (Some(2), Some(2)))
        .await;

    // What was let go does not go with the set.
    ns.delete::<MachineSet>(set.name()).await;
    let left = ns.wait_machines(|all| all.len() == 1).await;
    assert_eq!((left[0].name(), left[0].phase()), (name.as_str(), "Running"));
}

// S08
#[tokio::test]
async fn a_machine_that_is_going_is_replaced_at_once_and_counts_no_more() {
    let ns = world().await.namespace("replace").await;
    let set = ns.machine_set("a").replicas(2).create().await;
    let victim = ns.wait_running(2).await.remove(0);
    let hold = json!([{"name": "example.com/hold", "owner": "test"}]);
    ns.patch::<Machine>(victim.name(), json!({"spec": {"lifecycleHooks": {"preDrain": hold}}})).await;
    let counts = ns.record::<MachineSet>().await;
    ns.delete::<Machine>(victim.name()).await;

    let running = |all: &[&Machine]| all.iter().filter(|machine| machine.phase() == "Running").count();
    let machines = ns.wait_machines(|all| all.len() == 3 && running(all) == 2).await;
    let going = machines.iter().find(|machine| machine.is_deleting()).expect("it is held");
    assert_eq!(going.name(), victim.name());
    ns.wait_set(set.name(), |set| set.status.available_replicas == Some(2)).await;
    let counts = counts.changes();
    assert!(counts.iter().all(|change| change.object().status.replicas <= Some(2)), "{counts:?}");

    ns.patch::<Machine>(victim.name(), json!({"spec": {"lifecycleHooks": {"preDrain": null}}})).await;
    ns.wait_gone::<Machine>(victim.name()).await;
    assert_eq!(ns.list::<Machine>().await.len(), 2);
}

// S01
#[tokio::test]
async fn a_set_that_is_going_does_nothing_any_more() {
    let ns = world().await.namespace("going").await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    let set = ns.machine_set("a").replicas(2).with(hold).create().await;
    let name = ns.wait_running(2).await[0].name().to_owned();
    ns.wait_set(set.name(), |set| set.status.available_replicas == Some(2)).await;
    let record = ns.record::<Machine>().await;

    ns.delete::<MachineSet>(set.name()).await;
    ns.wait_set(set.name(), MachineSet::is_deleting).await;
    resize(&ns, &set, 3).await;
    ns.delete::<Machine>(&name).await;
    ns.wait_gone::<Machine>(&name).await;
    let_others_work(&ns).await;
    let machines = ns.list::<Machine>().await;
    assert_eq!(of(&set, &machines).len(), 1);
    assert_eq!(ns.get::<MachineSet>(set.name()).await.status.replicas, Some(2), "it tells nothing either");

    // The garbage collector does the rest.
    ns.patch::<MachineSet>(set.name(), json!({"metadata": {"finalizers": null}})).await;
    let left = ns.wait_machines(|all| all.len() == 1).await;
    assert!(left[0].name().starts_with(&ns.full("other")), "{}", left[0].name());
    assert_eq!(ever(&record.changes()).len(), 3, "two of the set's, one of the other's");
}
