//! What an autoscaler must know to grow a set from nothing: annotations on the set.

use e2e::{Draft, MachineSet, Object};
use k8s_openapi::api::events::v1::Event;
use mapi_api::names::annotation;
use serde_json::{Value, json};

use crate::{let_others_work, world};

/// Virtual CPUs, MiB of memory, GPUs and pods of one machine, and the labels of its Node.
fn size(set: &MachineSet) -> [&str; 5] {
    use annotation::{CAPACITY_LABELS, CPU, GPU, MAX_PODS, MEMORY};
    [CPU, MEMORY, GPU, MAX_PODS, CAPACITY_LABELS].map(|key| set.annotation(key).unwrap_or("-"))
}

#[tokio::test]
async fn a_set_without_machines_tells_how_large_they_would_be() {
    let ns = world().await.namespace("size").await;
    let legacy = json!({"apiVersion": "kubemarkproviderconfig.k8s.io/v1alpha1",
        "kind": "KubemarkMachineProviderConfig", "numCores": 8, "memoryCapacity": 17_179_869_184_u64});
    let given = json!({"capacity": {"cpu": "3", "memory": "1536Mi", "nvidia.com/gpu": "2", "pods": "17"},
        "architecture": "arm64"});
    let legacy_spec = json!({"spec": {"template": {"spec": {"providerSpec": {"value": null}}}}});
    let drafts: [(Draft<MachineSet>, [&str; 5]); 4] = [
        (ns.machine_set("usual"), ["4", "16384", "0", "110", "kubernetes.io/arch=amd64"]),
        (
            ns.machine_set("large").provider(json!({"instanceType": "sim.large"})),
            ["16", "65536", "0", "110", "kubernetes.io/arch=amd64"],
        ),
        (ns.machine_set("given").provider(given), ["3", "1536", "2", "17", "kubernetes.io/arch=arm64"]),
        (
            ns.machine_set("legacy").with(legacy_spec).provider(legacy),
            ["8", "16384", "0", "110", "kubernetes.io/arch=amd64"],
        ),
    ];
    for (draft, expected) in drafts {
        let set = draft.create().await;
        let set = ns.wait_set(set.name(), |set| set.annotation(annotation::CPU).is_some()).await;
        assert_eq!(size(&set), expected, "set `{}`", set.name());
    }
}

#[tokio::test]
async fn the_size_follows_the_template_and_corrects_what_somebody_else_wrote() {
    let ns = world().await.namespace("resize").await;
    let set = ns.machine_set("a").create().await;
    ns.wait_set(set.name(), |set| size(set)[..2] == ["4", "16384"]).await;
    let small = |value: Value| json!({"spec": {"template": {"spec": {"providerSpec": {"value": value}}}}});
    ns.patch::<MachineSet>(set.name(), small(json!({"instanceType": "sim.small"}))).await;
    ns.wait_set(set.name(), |set| size(set)[..2] == ["2", "4096"]).await;
    let wrong = json!({(annotation::CPU): "99", (annotation::MEMORY): null});
    ns.patch::<MachineSet>(set.name(), json!({"metadata": {"annotations": wrong}})).await;
    ns.wait_set(set.name(), |set| size(set)[..2] == ["2", "4096"]).await;
}

// S39
#[tokio::test]
async fn labels_that_a_user_gave_stay_and_nothing_is_written_twice() {
    let ns = world().await.namespace("user-labels").await;
    let draft = ns.machine_set("a").annotation(annotation::CAPACITY_LABELS, "foo=bar,zone=a=b");
    let set = draft.create().await;
    let merged = "foo=bar,kubernetes.io/arch=amd64,zone=a=b";
    ns.wait_set(set.name(), |set| size(set)[4] == merged).await;

    // A user's word about the architecture wins.
    let own = json!({(annotation::CAPACITY_LABELS): "kubernetes.io/arch=s390x,a=b"});
    ns.patch::<MachineSet>(set.name(), json!({"metadata": {"annotations": own}})).await;
    ns.wait_set(set.name(), |set| {
        set.status.observed_generation == set.metadata.generation && size(set)[0] == "4"
    })
    .await;
    let note = json!({"metadata": {"annotations": {"example.com/note": "x"}}});
    let written = ns.patch::<MachineSet>(set.name(), note).await;
    let_others_work(&ns).await;
    let set = ns.get::<MachineSet>(set.name()).await;
    assert_eq!(size(&set)[4], "kubernetes.io/arch=s390x,a=b");
    assert_eq!(set.version(), written.version());
}

#[tokio::test]
async fn a_size_that_cannot_be_read_is_an_event_and_keeps_what_was_known() {
    let ns = world().await.namespace("no-size").await;
    let set = ns.machine_set("a").create().await;
    ns.wait_set(set.name(), |set| size(set)[0] == "4").await;
    let value = json!({"instanceType": "sim.enormous"});
    let patch = json!({"spec": {"template": {"spec": {"providerSpec": {"value": value}}}}});
    ns.patch::<MachineSet>(set.name(), patch).await;
    let parts = ["instanceType", "`sim.enormous`", "sim.small, sim.medium, sim.large"];
    let is_told = |event: &&Event| {
        let note = event.note.as_deref().unwrap_or_default();
        note.starts_with("cannot read the provider spec of the template: ")
            && parts.iter().all(|part| note.contains(part))
    };
    ns.wait_all(|events: &[&Event]| events.iter().any(is_told)).await;
    let_others_work(&ns).await;
    assert_eq!(size(&ns.get::<MachineSet>(set.name()).await)[0], "4");
}
