//! Drains: which Machines are drained, which pods go, what holds them, and what the Machine says meanwhile.

mod budgets;
mod causes;
mod control_plane;
mod evicting;
mod gating;
mod refused;

use std::collections::BTreeMap;

use e2e::{Change, Draft, Machine, Node, Ns, Object, Options, Recording, World, pod_phase};
use k8s_openapi::api::{
    core::v1::{Pod, ServiceAccount},
    policy::v1::PodDisruptionBudget,
};
use mapi_api::{
    Condition, Conditions, Timestamp,
    names::{condition, reporter},
};
use serde_json::{Value, json};

const FINISHED: &str = "Drain finished successfully";
const SKIPPED: &str = "Node drain skipped";

/// Annotation of Nodes that must not be cordoned, and of Machines that must not be said to be drained.
const FORBIDDEN: &str = "e2e.test/forbidden";

/// What the API server refuses for an object with the annotation.
const POLICIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: cordon}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes]}]
  matchConditions:
  - name: annotated
    expression: has(oldObject.metadata.annotations) && 'e2e.test/forbidden' in oldObject.metadata.annotations
  validations:
  - expression: "!has(object.spec.unschedulable) || !object.spec.unschedulable"
    message: no cordon today
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: cordon}
spec: {policyName: cordon, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: drained}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [machine.openshift.io], apiVersions: [v1beta1], operations: [UPDATE], resources: [machines/status]}
  matchConditions:
  - name: annotated
    expression: has(oldObject.metadata.annotations) && 'e2e.test/forbidden' in oldObject.metadata.annotations
  validations:
  - expression: "!object.status.conditions.exists(c, c.type == 'Drained' && c.status == 'True')"
    message: no news today
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: drained}
spec: {policyName: drained, validationActions: [Deny]}
"#;

/// The audit log tells when evictions were refused.
async fn world() -> World {
    World::shared(Options {
        scheduler: true,
        audit: true,
        manifests: vec![POLICIES.into()],
        ..Options::default()
    })
    .await
}

/// Makes a Machine and waits until it runs.
async fn running(ns: &Ns, draft: Draft<Machine>) -> Machine {
    let machine = draft.create().await;
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await
}

/// Makes a pod of the app `name` on the Node of a Machine, changed by `change`.
async fn bind(ns: &Ns, machine: &Machine, name: &str, change: impl FnOnce(&mut Value)) {
    // A namespace that was just made has none yet, and takes no pods until then.
    ns.wait::<ServiceAccount>("default", |_| true).await;
    let mut pod = ns.pod_template(name);
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod["spec"]["nodeName"] = json!(machine.node_name());
    change(&mut pod);
    ns.apply(pod).await;
}

/// The same for a pod with nothing special that runs.
async fn bind_running(ns: &Ns, machine: &Machine, name: &str) {
    bind(ns, machine, name, |_| {}).await;
    ns.wait::<Pod>(name, |pod| pod_phase(pod) == "Running").await;
}

/// The same under a budget of its own, which does not let it go.
async fn hold(ns: &Ns, machine: &Machine, name: &str) {
    bind_running(ns, machine, name).await;
    ns.budget(name, json!({"minAvailable": 1})).await;
}

/// Lets go what [`hold`] holds.
async fn release(ns: &Ns, name: &str) {
    ns.delete::<PodDisruptionBudget>(name).await;
}

/// Drains another Node: whatever the controllers had to do before is done by then.
async fn let_others_drain(ns: &Ns) -> Machine {
    let other = running(ns, ns.machine("other")).await;
    ns.delete::<Machine>(other.name()).await;
    ns.wait_gone::<Machine>(other.name()).await;
    other
}

/// What is said of a drain that does not get through.
fn blocked(machine: &Machine) -> Option<&str> {
    let drained = machine.status.conditions.find(condition::DRAINED)?;
    (!drained.is_true()).then_some(&*drained.message)
}

/// Waits until a Machine says why its drain does not get through.
async fn wait_blocked(ns: &Ns, machine: &Machine) -> Machine {
    ns.wait_machine(machine.name(), |machine| blocked(machine).is_some()).await
}

/// Waits until a Node is cordoned.
async fn wait_cordoned(ns: &Ns, machine: &Machine) {
    ns.wait_node(machine.node_name().expect("it has a Node"), |node| node.spec.unschedulable).await;
}

/// All that a Machine said of its drain until it was gone, one after the other.
async fn said(machines: &Recording<Machine>, machine: &Machine) -> Vec<Condition> {
    let mut said: Vec<Condition> = life(machines, machine)
        .await
        .iter()
        .filter_map(|change| change.object().status.conditions.find(condition::DRAINED).cloned())
        .collect();
    said.dedup();
    said
}

/// Status and message alone.
async fn said_in_words(machines: &Recording<Machine>, machine: &Machine) -> Vec<String> {
    let said = said(machines, machine).await;
    said.iter().map(|drained| format!("{} {}", drained.status.0, drained.message)).collect()
}

/// The version of the cluster's state in which a Machine, which is gone now, was said to be drained.
async fn drained_at(machines: &Recording<Machine>, machine: &Machine) -> u64 {
    let life = life(machines, machine).await;
    let drained =
        life.iter().map(Change::object).find(|machine| machine.status.conditions.is_true(condition::DRAINED));
    version(Some(drained.expect("it was drained").version()))
}

/// All states of a Machine until it was gone.
async fn life(machines: &Recording<Machine>, machine: &Machine) -> Vec<Change<Machine>> {
    let is_it = |change: &Change<Machine>| change.object().uid() == machine.uid();
    let is_gone =
        |changes: &[Change<Machine>]| changes.iter().any(|change| is_it(change) && change.now().is_none());
    machines.until(is_gone).await.into_iter().filter(is_it).collect()
}

/// Versions are numbers, which grow over all kinds.
fn version(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).expect("the server gave it a version")
}

/// The version in which a pod was first marked for deletion; `None` if it lives.
async fn marked_at(ns: &Ns, pods: &Recording<Pod>, name: &str) -> Option<u64> {
    // A recording may lag, but has everything that came before what it has.
    let mut last = ns.pod_template("last");
    last["apiVersion"] = json!("v1");
    last["kind"] = json!("Pod");
    last["metadata"]["name"] = json!("last");
    ns.apply(last).await;
    let is = |change: &Change<Pod>, name: &str| change.object().metadata.name.as_deref() == Some(name);
    let changes = pods.until(|all| all.iter().any(|change| is(change, "last"))).await;
    let mut pods = changes.iter().filter(|change| is(change, name)).map(Change::object);
    pods.find(|pod| is_marked(pod)).map(pod_version)
}

fn is_marked(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

fn pod_version(pod: &Pod) -> u64 {
    version(pod.metadata.resource_version.as_deref())
}

/// Reasons of the drain's events about a Machine, oldest first, once one of reason `last` is there.
async fn told(ns: &Ns, machine: &Machine, last: &str) -> Vec<String> {
    ns.wait_event(machine.name(), last).await;
    let mut events = ns.events(machine.name()).await;
    events.retain(|event| event.reporting_controller.as_deref() == Some(reporter::DRAIN));
    events.sort_by(|a, b| a.event_time.cmp(&b.event_time));
    events.into_iter().filter_map(|event| event.reason).collect()
}

/// Whether the Node of a Machine was cordoned at any time before that of `other` was gone.
async fn was_cordoned(nodes: &Recording<Node>, machine: &Machine, other: &Machine) -> bool {
    let is_of = |change: &Change<Node>, machine: &Machine| change.object().name() == machine.name();
    let is_over = |all: &[Change<Node>]| all.iter().any(|one| is_of(one, other) && one.now().is_none());
    let changes = nodes.until(is_over).await;
    changes.iter().any(|change| is_of(change, machine) && change.object().spec.unschedulable)
}

/// A write that the server refused.
struct Refusal {
    received: Timestamp,
    answered: Timestamp,
}

/// The refused writes to a resource in a namespace, by name of the object.
fn refusals(ns: &Ns, resource: &str, subresource: &str) -> BTreeMap<String, Vec<Refusal>> {
    let log = std::fs::read_to_string(ns.world().audit_log()).expect("the world has an audit log");
    // The last line may be half written.
    let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let time = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).expect("a time");
    let mut all = BTreeMap::<String, Vec<Refusal>>::new();
    for entry in entries {
        let object = &entry["objectRef"];
        let is_ours = object["namespace"] == ns.name()
            && object["resource"] == resource
            && object["subresource"] == subresource;
        if !is_ours || entry["responseStatus"]["code"].as_u64().is_none_or(|code| code < 400) {
            continue;
        }
        let (received, answered) = (time(&entry["requestReceivedTimestamp"]), time(&entry["stageTimestamp"]));
        let name = object["name"].as_str().unwrap_or_default().to_owned();
        all.entry(name).or_default().push(Refusal { received, answered });
    }
    all
}
