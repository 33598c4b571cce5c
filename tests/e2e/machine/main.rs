//! Machines: what comes before what while one is made and removed, what a failing cloud does to it, and what its status
//! says meanwhile.

mod crashes;
mod creating;
mod deleting;
mod failing;
mod hooks;
mod nodes;
mod refused;
mod settling;
mod writing;

use e2e::{Change, Draft, Machine, Ns, Object, Options, Recording, SimulatedInstance, World};
use mapi_api::{
    Conditions,
    names::{annotation, finalizer},
};
use serde_json::{Value, json};

/// Annotation of instances that the API server lets nobody change or terminate, with the word for it: `forbidden` or
/// `invalid`. Of Nodes that nobody may delete. Of Machines whose provider id nobody may record.
const REFUSE: &str = "e2e.test/refuse";

/// What the API server refuses for an object with the annotation.
const POLICIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: instances}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [simulation.machine.openshift.io]
      apiVersions: [v1alpha1]
      operations: [UPDATE, DELETE]
      resources: [simulatedinstances]
  matchConditions:
  - name: annotated
    expression: has(oldObject.metadata.annotations) && 'e2e.test/refuse' in oldObject.metadata.annotations
  variables:
  - name: word
    expression: oldObject.metadata.annotations['e2e.test/refuse']
  - name: isKept
    expression: "request.operation == 'UPDATE' && object.spec == oldObject.spec"
  validations:
  - expression: variables.word != 'forbidden' || variables.isKept
    reason: Forbidden
    message: not today
  - expression: variables.word != 'invalid' || variables.isKept
    reason: Invalid
    message: not like that
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: instances}
spec: {policyName: instances, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nodes}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [nodes]}]
  matchConditions:
  - name: annotated
    expression: has(oldObject.metadata.annotations) && 'e2e.test/refuse' in oldObject.metadata.annotations
  validations: [{expression: "false", message: not this one}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: nodes}
spec: {policyName: nodes, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: machines}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [machine.openshift.io], apiVersions: [v1beta1], operations: [UPDATE], resources: [machines]}
  matchConditions:
  - name: annotated
    expression: has(oldObject.metadata.annotations) && 'e2e.test/refuse' in oldObject.metadata.annotations
  validations: [{expression: "!has(object.spec.providerID)", message: no record today}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: machines}
spec: {policyName: machines, validationActions: [Deny]}
"#;

fn options() -> Options {
    Options { manifests: vec![POLICIES.into()], ..Options::default() }
}

async fn world() -> World {
    World::shared(options()).await
}

/// A patch that makes the server refuse what the annotation is for, or let it through again.
fn refuse(word: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {REFUSE: word}}})
}

/// A patch that gives a live Machine faults, or takes them away.
fn live_faults(faults: Option<Value>) -> Value {
    let text = faults.map(|list| list.to_string());
    json!({"metadata": {"annotations": {annotation::FAULTS: text}}})
}

/// Makes a Machine and waits until it runs.
async fn running(ns: &Ns, draft: Draft<Machine>) -> Machine {
    let machine = draft.create().await;
    ns.wait_machine(machine.name(), |machine| machine.phase() == "Running").await
}

/// The same, until all that is to be told of its start is told: details come with patience.
async fn settled(ns: &Ns, draft: Draft<Machine>) -> Machine {
    let machine = running(ns, draft).await;
    let is_told = |machine: &Machine| {
        let status = machine.status.provider_status.as_ref().map(|status| status.value());
        status.is_some_and(|status| status["instanceState"] == "Running")
    };
    ns.wait_machine(machine.name(), is_told).await
}

/// Makes a Machine and waits until it has an instance with addresses that will not become a Node.
async fn provisioned(ns: &Ns, draft: Draft<Machine>) -> Machine {
    let machine = draft.faults(json!([{"kind": "NeverJoin"}])).create().await;
    ns.wait_machine(machine.name(), |machine| {
        machine.phase() == "Provisioned" && !machine.status.addresses.is_empty()
    })
    .await
}

/// Makes a Machine that nobody acts upon yet, gives it a status as a restored one has it, and lets it go on.
async fn restored(ns: &Ns, draft: Draft<Machine>, status: Value) -> Machine {
    let labels = draft.json()["metadata"]["labels"].clone();
    let machine = draft.without("/metadata/labels").create().await;
    ns.patch_status::<Machine>(machine.name(), status).await;
    ns.patch::<Machine>(machine.name(), json!({"metadata": {"labels": labels}})).await
}

/// Makes a Machine that runs and goes again: whatever the controllers had to do before is done by then.
async fn let_others_work(ns: &Ns, short: &str) {
    let other = running(ns, ns.machine(short)).await;
    ns.delete::<Machine>(other.name()).await;
    ns.wait_gone::<Machine>(other.name()).await;
}

/// The instance of a Machine, once there is one.
async fn instance(ns: &Ns, machine: &Machine) -> SimulatedInstance {
    let is_its = |one: &SimulatedInstance| one.spec.machine_ref.uid == machine.uid();
    let all = ns.wait_all::<SimulatedInstance>(|all| all.iter().any(|one| is_its(one))).await;
    all.into_iter().find(is_its).expect("it was waited for")
}

/// Status, severity, reason and message of a condition, as far as there are any.
fn condition(machine: &Machine, type_: &str) -> String {
    let Some(found) = machine.status.conditions.find(type_) else { return String::new() };
    let words = [&*found.status.0, &found.severity, &found.reason, &found.message];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What the column STATE shows.
fn state(machine: &Machine) -> &str {
    machine.annotation(annotation::INSTANCE_STATE).unwrap_or_default()
}

/// Error reason and message.
fn error(machine: &Machine) -> [Option<&str>; 2] {
    [machine.status.error_reason.as_deref(), machine.status.error_message.as_deref()]
}

fn is_held(machine: &Machine) -> bool {
    machine.has_finalizer(finalizer::MACHINE)
}

fn finalizers(machine: &Machine) -> Vec<&str> {
    machine.metadata.finalizers.iter().flatten().map(String::as_str).collect()
}

/// Versions are numbers, which grow over all kinds.
fn version(object: &impl Object) -> u64 {
    object.version().parse().expect("the server gives every object a version")
}

/// The states of one Machine that were recorded, the one before it was gone among them.
async fn states(
    machines: &Recording<Machine>,
    machine: &Machine,
    is_last: impl Fn(&Machine) -> bool,
) -> Vec<Machine> {
    let is_it = |change: &Change<Machine>| change.object().uid() == machine.uid();
    let is_over = |change: &Change<Machine>| is_it(change) && change.now().is_some_and(&is_last);
    let changes = machines.until(|changes| changes.iter().any(is_over)).await;
    changes.iter().filter(|change| is_it(change)).map(|change| change.object().clone()).collect()
}

/// All states of one Machine until it was gone, and the version in which it went.
async fn life(machines: &Recording<Machine>, machine: &Machine) -> (Vec<Machine>, u64) {
    let is_it = |change: &Change<Machine>| change.object().uid() == machine.uid();
    let is_end = |change: &Change<Machine>| is_it(change) && change.now().is_none();
    let changes = machines.until(|changes| changes.iter().any(is_end)).await;
    let states: Vec<Machine> = changes.iter().filter(|c| is_it(c)).map(|c| c.object().clone()).collect();
    let end = version(states.last().expect("its end was recorded"));
    (states, end)
}

/// The versions in which the instances of one Machine were made and gone, once all are gone.
async fn instances_of(ledger: &Recording<SimulatedInstance>, machine: &Machine) -> Vec<(u64, u64)> {
    let is_its = |change: &&Change<SimulatedInstance>| change.object().spec.machine_ref.uid == machine.uid();
    let ends = |changes: &[Change<SimulatedInstance>]| {
        let mut spans: Vec<(String, u64, u64)> = Vec::new();
        for change in changes.iter().filter(is_its) {
            let (uid, at) = (change.object().uid(), version(change.object()));
            match spans.iter_mut().find(|(known, ..)| known == uid) {
                Some((_, _, end)) if change.now().is_none() => *end = at,
                Some(_) => {}
                None => spans.push((uid.to_owned(), at, if change.now().is_none() { at } else { 0 })),
            }
        }
        spans
    };
    let is_over = |changes: &[Change<SimulatedInstance>]| ends(changes).iter().all(|(_, _, end)| *end > 0);
    let changes = ledger.until(is_over).await;
    ends(&changes).into_iter().map(|(_, start, end)| (start, end)).collect()
}
