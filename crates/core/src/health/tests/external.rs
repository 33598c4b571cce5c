//! Repairs by somebody else, through requests made from a template.

use serde_json::{Value, json};

use super::super::{Request, Template};
use super::{State, World, again, ago, check, machine, node};
use crate::Requeue;

fn templated() -> World {
    let mut world = check(json!({"spec": {"remediationTemplate": {
        "apiVersion": "infra.example.com/v1", "kind": "FooRemediationTemplate", "name": "foo", "namespace": "ignored"}}}));
    world.template = Template::Found(json!({"spec": {"template": {
        "metadata": {"labels": {"l": "1"}, "annotations": {"n": "2"}, "finalizers": ["f"], "uid": "u",
            "resourceVersion": "3", "ownerReferences": [{"name": "other"}]},
        "spec": {"strategy": {"type": "Reboot"}}}}}));
    world
}

fn request(owner: &str, is_deleting: bool) -> Request {
    Request { uid: "uid-request".into(), owners: vec![owner.into()], is_deleting }
}

fn sick(world: World) -> World {
    world.with(machine("a", json!({})), node("Unknown", 400))
}

fn with_request(mut world: World, request: Request) -> World {
    world.requests = Ok([("a".to_owned(), request)].into());
    world
}

// H28
#[test]
fn an_unhealthy_machine_gets_a_request_made_from_the_template() {
    let world = sick(templated());
    let seen = world.pass();
    let created = seen.lines.iter().find_map(|line| line.strip_prefix("create ")).expect("a request");
    let created: Value = serde_json::from_str(created).expect("json");
    assert_eq!(
        created,
        json!({
            "apiVersion": "infra.example.com/v1", "kind": "FooRemediation",
            "metadata": {
                "name": "a", "namespace": "ns", "labels": {"l": "1"},
                "annotations": {"n": "2", "machine.openshift.io/cloned-from-name": "foo",
                    "machine.openshift.io/cloned-from-groupkind": "FooRemediationTemplate.infra.example.com"},
                "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", "name": "a",
                    "uid": "uid-a"}],
            },
            "spec": {"strategy": {"type": "Reboot"}},
        })
    );
    assert!(!seen.has("delete ns/a"), "the machine itself is somebody else's to repair");
}

#[test]
fn what_worked_is_told_by_conditions_too() {
    let world = sick(templated());
    let seen = world.pass();
    assert!(seen.condition("ExternalRemediationTemplateAvailable").expect("is written").is_true());
    assert!(seen.condition("ExternalRemediationRequestAvailable").expect("is written").is_true());
    let second = again(&with_request(sick(templated()), request("uid-a", false)), &seen);
    assert!(!second.has("patch") && !second.has("create"), "{:?}", second.lines);
}

#[test]
fn a_request_that_could_not_be_made_is_told_by_condition_and_event() {
    let seen = sick(templated()).pass();
    let failed: Vec<_> = seen.lines.iter().filter(|line| line.starts_with("else ")).collect();
    assert_eq!(
        failed[0],
        "else Warning ExternalRemediationRequestCreationFailed Remediate on MachineHealthCheck ns/mhc: cannot create \
         remediation requests of kind `FooRemediation`"
    );
    assert!(
        failed[1].contains("ExternalRemediationRequestAvailable") && failed[1].contains("those of `a`"),
        "{failed:?}"
    );
}

// H29
#[test]
fn a_request_that_exists_is_not_made_again_even_while_it_is_deleted() {
    for is_deleting in [false, true] {
        let seen = with_request(sick(templated()), request("uid-a", is_deleting)).pass();
        assert!(!seen.has("create ") && !seen.has("delete FooRemediation"));
        assert!(seen.condition("ExternalRemediationRequestAvailable").expect("is written").is_true());
    }
}

// H30
#[test]
fn the_request_of_a_healthy_machine_is_deleted_once() {
    let healthy = || templated().with(machine("a", json!({})), node("True", 10));
    let seen = with_request(healthy(), request("uid-a", false)).pass();
    assert_eq!(seen.told(), ["delete FooRemediation.infra.example.com/v1 ns/a uid-request"]);
    assert!(with_request(healthy(), request("uid-a", true)).pass().told().is_empty());
}

#[test]
fn a_request_that_another_owner_made_is_not_deleted() {
    let world = templated().with(machine("a", json!({})), node("True", 10));
    assert!(with_request(world, request("uid-of-somebody", false)).pass().told().is_empty());
}

#[test]
fn requests_of_healthy_machines_go_while_repairs_are_stopped_too() {
    let mut world =
        with_request(templated().with(machine("a", json!({})), node("True", 10)), request("uid-a", false));
    world.check["spec"]["maxUnhealthy"] = json!(0);
    let seen = world.with(machine("b", json!({})), node("Unknown", 400)).pass();
    assert!(seen.has("short-circuit true") && seen.has("delete FooRemediation") && !seen.has("create "));
}

#[test]
fn a_machine_that_is_being_deleted_gets_no_request() {
    let deleting = json!({"metadata": {"deletionTimestamp": ago(5)}});
    let seen = templated().with(machine("a", deleting), State::Gone).pass();
    assert!(!seen.has("create "));
}

// H31
#[test]
fn a_missing_template_is_a_condition_and_an_error() {
    let mut world = sick(templated());
    world.template = Template::Missing;
    let seen = world.pass();
    let condition = seen.condition("ExternalRemediationTemplateAvailable").expect("is written");
    assert_eq!(
        (&*condition.status.0, &*condition.severity, &*condition.reason),
        ("False", "Error", "ExternalRemediationTemplateNotFound")
    );
    let message = "remediation template `ns/foo` of kind `FooRemediationTemplate` does not exist";
    assert_eq!(condition.message, message);
    assert_eq!(seen.requeue, Requeue::Backoff(message.into()));
    assert!(!seen.has("create ") && !again(&world, &seen).has("patch"));
}

// H31
#[test]
fn a_missing_template_shows_before_the_first_machine_is_sick() {
    let mut world = templated().with(machine("a", json!({})), node("True", 10));
    world.template = Template::Missing;
    assert!(!world.pass().condition("ExternalRemediationTemplateAvailable").expect("is written").is_true());
}

// H32
#[test]
fn a_template_without_content_is_a_condition_and_an_error() {
    let mut world = sick(templated());
    world.template = Template::Found(json!({"spec": {}}));
    let seen = world.pass();
    let message = "remediation template `ns/foo` of kind `FooRemediationTemplate` has no spec.template";
    assert_eq!(seen.condition("ExternalRemediationTemplateAvailable").expect("is written").message, message);
    assert_eq!(seen.requeue, Requeue::Backoff(message.into()));
}

#[test]
fn requests_that_cannot_be_read_are_told_and_none_is_made() {
    let mut world = sick(templated());
    world.requests = Err("forbidden".into());
    let seen = world.pass();
    let condition = seen.condition("ExternalRemediationRequestAvailable").expect("is written");
    assert_eq!(condition.message, "cannot read remediation requests of kind `FooRemediation`: forbidden");
    assert!(matches!(seen.requeue, Requeue::Backoff(_)) && !seen.has("create "));
}

#[test]
fn conditions_about_a_template_go_with_the_template() {
    let mut world = sick(check(json!({})));
    let stored = |type_: &str| json!({"type": type_, "status": "False", "lastTransitionTime": ago(9)});
    world.check["status"] = json!({"conditions": [stored("ExternalRemediationTemplateAvailable"),
        stored("ExternalRemediationRequestAvailable")]});
    let seen = world.pass();
    assert!(seen.condition("ExternalRemediationTemplateAvailable").is_none());
    assert!(seen.condition("ExternalRemediationRequestAvailable").is_none());
}

#[test]
fn a_template_takes_precedence_over_strategy_and_owner() {
    let mut world = sick(templated());
    world.check["metadata"]["annotations"] =
        json!({"machine.openshift.io/remediation-strategy": "external-baremetal"});
    let world =
        world.with(machine("b", json!({"metadata": {"ownerReferences": null}})), node("Unknown", 400));
    let seen = world.pass();
    assert_eq!(seen.lines.iter().filter(|line| line.starts_with("create ")).count(), 2);
    assert!(!seen.has("patch ns/a") && !seen.has("SkippedNoController"));
}
