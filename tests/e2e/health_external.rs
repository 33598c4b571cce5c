//! Remediation by somebody else: requests made from templates of a kind that the product does not know.

use e2e::{Machine, MachineHealthCheck, Ns, Object};
use mapi_api::{
    Conditions, ObjectMeta,
    names::{annotation, condition, reason},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{break_node, check, counted, heal_node, owned, world};

/// A pair of kinds as a remediation provider ships it, with the role by which the controllers may use it.
pub(crate) const SAMPLE: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sampleremediations.remediation.e2e.test}
spec:
  group: remediation.e2e.test
  scope: Namespaced
  names: {kind: SampleRemediation, plural: sampleremediations, singular: sampleremediation}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sampleremediationtemplates.remediation.e2e.test}
spec:
  group: remediation.e2e.test
  scope: Namespaced
  names: {kind: SampleRemediationTemplate, plural: sampleremediationtemplates, singular: sampleremediationtemplate}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: sample-remediation
  labels: {rbac.ext-remediation/aggregate-to-ext-remediation: "true"}
rules:
- {apiGroups: [remediation.e2e.test], resources: [sampleremediationtemplates], verbs: [get]}
- {apiGroups: [remediation.e2e.test], resources: [sampleremediations], verbs: [get, list, watch, create, delete]}
"#;

const VERSION: &str = "remediation.e2e.test/v1";
const TEMPLATE: &str = "SampleRemediationTemplate";

/// A remediation request.
#[derive(Debug, Clone, Deserialize)]
struct Request {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Value,
}

mapi_api::resource!(
    Request,
    NamespaceResourceScope,
    "remediation.e2e.test",
    "v1",
    "SampleRemediation",
    "sampleremediations"
);

/// Makes or changes the template of the namespace.
async fn template(ns: &Ns, spec: Value) {
    template_of(ns, VERSION, spec).await;
}

async fn template_of(ns: &Ns, api_version: &str, spec: Value) {
    let metadata = json!({"name": "reboot"});
    ns.apply(json!({"apiVersion": api_version, "kind": TEMPLATE, "metadata": metadata, "spec": spec})).await;
}

fn content() -> Value {
    let metadata = json!({
        "name": "ignored",
        "labels": {"e2e.test/label": "kept"},
        "annotations": {"e2e.test/annotation": "kept"},
        "finalizers": ["e2e.test/dropped"],
    });
    json!({"template": {"metadata": metadata, "spec": {"strategy": {"type": "Reboot", "retryLimit": 1}}}})
}

/// A check that asks for a remediation in place of deleting.
async fn asking(ns: &Ns, api_version: &str) -> MachineHealthCheck {
    let reference = json!({"apiVersion": api_version, "kind": TEMPLATE, "name": "reboot"});
    let check = check(ns).with(json!({"spec": {"remediationTemplate": reference}}));
    // Both would have a say without a template: the strategy, and that the Machines have no controller.
    let strategy = annotation::STRATEGY_EXTERNAL_BAREMETAL;
    check.annotation(annotation::REMEDIATION_STRATEGY, strategy).create().await
}

/// A namespace with Machines that nobody controls, and a check of them with a template.
async fn asked(claim: &str, shorts: &[&str]) -> (Ns, MachineHealthCheck) {
    let ns = world().await.namespace(claim).await;
    template(&ns, content()).await;
    for short in shorts {
        ns.machine(short).create().await;
    }
    ns.wait_running(shorts.len()).await;
    let check = asking(&ns, VERSION).await;
    let count = i64::try_from(shorts.len()).expect("a small number");
    counted(&ns, check.name(), count, count).await;
    (ns, check)
}

/// Breaks the Node of a Machine and waits for the request.
async fn requested(ns: &Ns, short: &str) -> Request {
    break_node(ns, &ns.full(short)).await;
    ns.wait::<Request>(&ns.full(short), |_| true).await
}

/// Waits until a condition of a check has a status.
async fn told(ns: &Ns, check: &str, type_: &str, is_true: bool) -> (String, String) {
    let is_told = |check: &MachineHealthCheck| {
        check.status.conditions.find(type_).is_some_and(|condition| condition.is_true() == is_true)
    };
    let check = ns.wait_check(check, is_told).await;
    let condition = check.status.conditions.find(type_).expect("that was waited for");
    (condition.reason.clone(), condition.message.clone())
}

// H28
#[tokio::test]
async fn a_sick_machine_gets_a_request_made_from_the_template() {
    let (ns, check) = asked("request", &["m"]).await;
    let request = requested(&ns, "m").await;
    let machine = ns.get::<Machine>(&ns.full("m")).await;

    assert_eq!(request.spec, content()["template"]["spec"]);
    assert_eq!(request.label("e2e.test/label"), Some("kept"));
    for (key, value) in [
        ("e2e.test/annotation", "kept"),
        (annotation::CLONED_FROM_NAME, "reboot"),
        (annotation::CLONED_FROM_GROUP_KIND, "SampleRemediationTemplate.remediation.e2e.test"),
    ] {
        assert_eq!(request.annotation(key), Some(value), "{key}");
    }
    assert_eq!(request.metadata.finalizers, None);
    let owners = request.metadata.owner_references.clone().unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!((owners[0].kind.as_str(), owners[0].uid.as_str()), ("Machine", machine.uid()));
    assert_eq!((owners[0].controller, owners[0].block_owner_deletion), (None, None));

    for type_ in [condition::TEMPLATE_AVAILABLE, condition::REQUEST_AVAILABLE] {
        told(&ns, check.name(), type_, true).await;
    }
    assert!(!machine.is_deleting());
    assert_eq!(machine.annotation(annotation::EXTERNAL_REMEDIATION), None);
}

// H29, H30
#[tokio::test]
async fn a_request_goes_when_the_machine_is_well_and_is_made_anew_only_when_it_is_gone() {
    let (ns, check) = asked("again", &["m", "other"]).await;
    let first = requested(&ns, "m").await;
    let held = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    ns.patch::<Request>(first.name(), held(json!(["e2e.test/held"]))).await;
    heal_node(&ns, &ns.full("m")).await;
    ns.wait::<Request>(first.name(), Object::is_deleting).await;
    counted(&ns, check.name(), 2, 2).await;

    break_node(&ns, &ns.full("m")).await;
    requested(&ns, "other").await;
    counted(&ns, check.name(), 2, 0).await;
    assert_eq!(ns.get::<Request>(first.name()).await.uid(), first.uid());
    ns.patch::<Request>(first.name(), held(json!(null))).await;
    ns.wait::<Request>(first.name(), |request| request.uid() != first.uid()).await;
}

// H29, H30
#[tokio::test]
async fn a_request_that_somebody_else_made_is_neither_repeated_nor_deleted() {
    let (ns, check) = asked("foreign", &["m", "other"]).await;
    let name = ns.full("m");
    let foreign = json!({"apiVersion": VERSION, "kind": "SampleRemediation", "metadata": {"name": name}});
    ns.apply(foreign).await;
    let foreign = ns.get::<Request>(&name).await;
    break_node(&ns, &name).await;
    requested(&ns, "other").await;
    counted(&ns, check.name(), 2, 0).await;
    for short in ["m", "other"] {
        heal_node(&ns, &ns.full(short)).await;
    }
    ns.wait_gone::<Request>(&ns.full("other")).await;
    counted(&ns, check.name(), 2, 2).await;
    let left = ns.get::<Request>(&name).await;
    assert_eq!((left.uid(), left.version()), (foreign.uid(), foreign.version()));
}

// H28: the owner reference is one that the garbage collector follows.
#[tokio::test]
async fn a_request_goes_with_its_machine() {
    let (ns, check) = asked("collected", &["m"]).await;
    let request = requested(&ns, "m").await;
    ns.delete::<Machine>(request.name()).await;
    ns.wait_gone::<Request>(request.name()).await;
    counted(&ns, check.name(), 0, 0).await;
}

// H31
#[tokio::test]
async fn a_missing_template_is_told_before_anybody_is_sick_and_found_when_it_comes() {
    let ns = world().await.namespace("no-template").await;
    owned(&ns, "m").await.create().await;
    ns.wait_running(1).await;
    let check = asking(&ns, VERSION).await;
    let (why, message) = told(&ns, check.name(), condition::TEMPLATE_AVAILABLE, false).await;
    assert_eq!(why, reason::TEMPLATE_NOT_FOUND);
    assert!(message.contains(&format!("{}/reboot", ns.name())), "{message}");
    counted(&ns, check.name(), 1, 1).await;

    break_node(&ns, &ns.full("m")).await;
    counted(&ns, check.name(), 1, 0).await;
    assert!(!ns.get::<Machine>(&ns.full("m")).await.is_deleting());
    template(&ns, content()).await;
    ns.wait::<Request>(&ns.full("m"), |_| true).await;
    told(&ns, check.name(), condition::TEMPLATE_AVAILABLE, true).await;
    told(&ns, check.name(), condition::REQUEST_AVAILABLE, true).await;
}

// H31
#[tokio::test]
async fn a_kind_that_nobody_serves_is_told_and_used_when_somebody_does() {
    let ns = world().await.namespace("late-kind").await;
    let check = asking(&ns, "late.e2e.test/v1").await;
    let (why, message) = told(&ns, check.name(), condition::TEMPLATE_AVAILABLE, false).await;
    assert_eq!(why, reason::TEMPLATE_NOT_FOUND);
    assert!(message.contains("`SampleRemediationTemplate` does not exist"), "{message}");
    let (_, message) = told(&ns, check.name(), condition::REQUEST_AVAILABLE, false).await;
    assert!(message.contains("`SampleRemediation`"), "{message}");

    let late = SAMPLE.replace("remediation.e2e.test", "late.e2e.test").replace("sample-remediation", "late");
    ns.world().apply(&late).await;
    template_of(&ns, "late.e2e.test/v1", content()).await;
    told(&ns, check.name(), condition::TEMPLATE_AVAILABLE, true).await;
    ns.machine("m").create().await;
    counted(&ns, check.name(), 1, 1).await;
    break_node(&ns, &ns.full("m")).await;
    told(&ns, check.name(), condition::REQUEST_AVAILABLE, true).await;
}

/// A condition and an event, and the Machine waits.
#[tokio::test]
async fn a_request_that_the_server_refuses_is_told_and_made_when_it_can_be() {
    let (ns, check) = asked("refused", &["m"]).await;
    let invalid = json!({"metadata": {"labels": {"e2e.test/label": "not a value"}}, "spec": {}});
    template(&ns, json!({ "template": invalid })).await;
    break_node(&ns, &ns.full("m")).await;
    let (why, message) = told(&ns, check.name(), condition::REQUEST_AVAILABLE, false).await;
    assert_eq!(why, reason::REQUEST_FAILED);
    assert!(message.contains(&format!("`{}`", ns.full("m"))), "{message}");
    ns.wait_event(check.name(), reason::REQUEST_FAILED).await;
    assert!(!ns.get::<Machine>(&ns.full("m")).await.is_deleting());

    template(&ns, content()).await;
    ns.wait::<Request>(&ns.full("m"), |_| true).await;
    told(&ns, check.name(), condition::REQUEST_AVAILABLE, true).await;
}

// H32
#[tokio::test]
async fn a_template_without_content_is_told_and_used_when_it_has_some() {
    let ns = world().await.namespace("no-content").await;
    template(&ns, json!({})).await;
    ns.machine("m").create().await;
    ns.wait_running(1).await;
    let check = asking(&ns, VERSION).await;
    let (_, message) = told(&ns, check.name(), condition::TEMPLATE_AVAILABLE, false).await;
    assert!(message.contains("has no spec.template"), "{message}");
    break_node(&ns, &ns.full("m")).await;
    counted(&ns, check.name(), 1, 0).await;
    template(&ns, content()).await;
    let request = ns.wait::<Request>(&ns.full("m"), |_| true).await;
    assert_eq!(request.spec, content()["template"]["spec"]);
}
