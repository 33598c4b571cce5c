//! How a sick Machine is repaired when there is no remediation template.

use e2e::{Machine, MachineHealthCheck, Node, Object};
use mapi_api::names::{annotation, label};
use serde_json::json;

use crate::{break_node, check, counted, owned, owned_by, owner, reasons, world};

/// What makes a Machine Failed, as another writer of its status would.
fn failure() -> serde_json::Value {
    json!({"phase": "Failed", "errorReason": "CreateError", "errorMessage": "it fell off the table"})
}

// H09
#[tokio::test]
async fn only_a_machine_with_a_controller_is_deleted_whatever_kind_that_is() {
    let ns = world().await.namespace("controller").await;
    let check = check(&ns).create().await;
    ns.machine("lone").create().await;
    ns.machine("owned").with(owned_by(owner(&ns, json!({})).await)).create().await;
    owned(&ns, "controlled").await.create().await;
    ns.wait_running(3).await;
    counted(&ns, check.name(), 3, 3).await;
    for short in ["lone", "owned", "controlled"] {
        break_node(&ns, &ns.full(short)).await;
    }
    ns.wait_gone::<Machine>(&ns.full("controlled")).await;
    for short in ["lone", "owned"] {
        let name = ns.full(short);
        let events = ns.wait_event(&name, "SkippedNoController").await;
        let target = format!("{}/{}/{name}/{name}", ns.name(), check.name());
        let note = format!("Machine {target} has no controller owner, skipping remediation");
        assert_eq!(events[0].note.as_deref(), Some(note.as_str()));
        assert!(!ns.get::<Machine>(&name).await.is_deleting(), "{short}");
    }
    counted(&ns, check.name(), 2, 0).await;
}

// H17
#[tokio::test]
async fn a_machine_of_the_control_plane_is_repaired_like_any_other() {
    let ns = world().await.namespace("masters").await;
    let machine = owned(&ns, "master").await.machine_label(label::ROLE, "master");
    let role = json!({"metadata": {"labels": {label::NODE_MASTER: ""}}});
    let machine = machine.machine_label(label::TYPE, "master").machine_spec(role).create().await;
    ns.wait_node(machine.name(), |node| node.label(label::NODE_MASTER).is_some()).await;
    counted(&ns, check(&ns).create().await.name(), 1, 1).await;
    break_node(&ns, machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
}

// H25
#[tokio::test]
async fn under_the_bare_metal_strategy_a_machine_is_marked_once_and_not_deleted() {
    let ns = world().await.namespace("bare-metal").await;
    for short in ["first", "second"] {
        ns.machine(short).create().await;
    }
    ns.wait_running(2).await;
    let strategy = annotation::STRATEGY_EXTERNAL_BAREMETAL;
    let check = check(&ns).annotation(annotation::REMEDIATION_STRATEGY, strategy).create().await;
    let mark = async |short: &str| {
        let name = ns.full(short);
        break_node(&ns, &name).await;
        let is_marked = |machine: &Machine| machine.annotation(annotation::EXTERNAL_REMEDIATION).is_some();
        let machine = ns.wait_machine(&name, is_marked).await;
        ns.wait_event(&name, "ExternalAnnotationAdded").await;
        machine
    };
    let first = mark("first").await;
    assert_eq!(first.annotation(annotation::EXTERNAL_REMEDIATION), Some(""));
    mark("second").await;
    counted(&ns, check.name(), 2, 0).await;
    let later = ns.get::<Machine>(first.name()).await;
    assert!(!later.is_deleting());
    assert_eq!(later.version(), first.version(), "the later pass saw the first Machine too");
    assert!(!reasons(&ns, first.name()).await.iter().any(|reason| reason == "SkippedNoController"));
}

// H26
#[tokio::test]
async fn a_failed_machine_is_deleted_under_the_bare_metal_strategy_too() {
    let ns = world().await.namespace("bare-metal-failed").await;
    let machine = owned(&ns, "m").await.create().await;
    ns.wait_running(1).await;
    let strategy = annotation::STRATEGY_EXTERNAL_BAREMETAL;
    let check = check(&ns).annotation(annotation::REMEDIATION_STRATEGY, strategy).create().await;
    counted(&ns, check.name(), 1, 1).await;
    ns.patch_status::<Machine>(machine.name(), failure()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
}

// H27
#[tokio::test]
async fn another_strategy_means_plain_deletion() {
    let ns = world().await.namespace("strategy").await;
    let machine = owned(&ns, "m").await.create().await;
    ns.wait_node(machine.name(), Node::is_ready).await;
    let check = check(&ns).annotation(annotation::REMEDIATION_STRATEGY, "other").create().await;
    counted(&ns, check.name(), 1, 1).await;
    break_node(&ns, machine.name()).await;
    ns.wait_gone::<Machine>(machine.name()).await;
    assert_eq!(ns.list::<MachineHealthCheck>().await.len(), 1);
}
