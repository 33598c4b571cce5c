//! Repairs without a template.

use serde_json::{Value, json};

use super::{State, again, ago, check, machine, node};

fn owner(kind: &str, is_controller: Option<bool>) -> Value {
    let mut owner = json!({"apiVersion": "x/v1", "kind": kind, "name": "o", "uid": "uid-o"});
    if let Some(is_controller) = is_controller {
        owner["controller"] = is_controller.into();
    }
    json!({"metadata": {"ownerReferences": [owner]}})
}

fn bare_metal() -> super::World {
    check(
        json!({"metadata": {"annotations": {"machine.openshift.io/remediation-strategy": "external-baremetal"}}}),
    )
}

// H09
#[test]
fn only_a_machine_that_a_controller_would_replace_is_deleted() {
    let nobody = json!({"metadata": {"ownerReferences": null}});
    for (why, extra, is_deleted) in [
        ("no owner", nobody, false),
        ("an owner that does not control", owner("MachineSet", None), false),
        ("an owner that says it does not control", owner("MachineSet", Some(false)), false),
        ("a controller of another kind", owner("ControlPlaneMachineSet", Some(true)), true),
    ] {
        let world = check(json!({})).with(machine("a", extra), node("Unknown", 400));
        let seen = world.pass();
        assert_eq!(seen.has("delete ns/a"), is_deleted, "{why}");
        if !is_deleted {
            let told = "Normal SkippedNoController Remediate on Machine ns/a: Machine ns/mhc/a/a has no controller owner, \
                        skipping remediation";
            assert_eq!(seen.told(), [told], "{why}");
            assert!(again(&world, &seen).told().is_empty(), "{why}: told once");
        }
    }
}

// H17
#[test]
fn a_machine_of_the_control_plane_is_repaired_like_any_other() {
    let extra = json!({"metadata": {"labels": {"machine.openshift.io/cluster-api-machine-role": "master"}}});
    let master = State::Node(json!({
        "metadata": {"name": "a", "labels": {"node-role.kubernetes.io/master": ""}},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": ago(400)}]}}));
    assert!(check(json!({})).with(machine("a", extra), master).pass().has("delete ns/a uid-a"));
}

// H25
#[test]
fn under_the_bare_metal_strategy_the_machine_is_annotated_once_and_not_deleted() {
    let seen = bare_metal().with(machine("a", json!({})), node("Unknown", 400)).pass();
    assert_eq!(
        seen.told(),
        [
            r#"patch ns/a main {"metadata":{"annotations":{"host.metal3.io/external-remediation":""}}}"#,
            "Normal ExternalAnnotationAdded Remediate on Machine ns/a: Machine ns/mhc/a/a has been annotated for external \
             remediation",
            "else Warning ExternalAnnotationFailed Remediate on Machine ns/a: Machine ns/mhc/a/a could not be annotated for \
             external remediation",
        ]
    );
    let annotated = json!({"metadata": {"annotations": {"host.metal3.io/external-remediation": ""}}});
    let second = bare_metal().with(machine("a", annotated), node("Unknown", 400)).pass();
    assert!(second.told().is_empty(), "{:?}", second.told());
}

// H25
#[test]
fn a_power_cycle_needs_no_controller() {
    let nobody = json!({"metadata": {"ownerReferences": null}});
    let seen = bare_metal().with(machine("a", nobody), node("Unknown", 400)).pass();
    assert!(seen.has("external-remediation") && !seen.has("SkippedNoController"));
}

// H26
#[test]
fn a_failed_machine_is_deleted_under_the_bare_metal_strategy_too() {
    let failed = json!({"status": {"phase": "Failed"}});
    let seen = bare_metal().with(machine("a", failed), node("True", 10)).pass();
    assert!(seen.has("delete ns/a uid-a") && !seen.has("external-remediation"));
    let nobody = json!({"metadata": {"ownerReferences": null}, "status": {"phase": "Failed"}});
    assert!(bare_metal().with(machine("a", nobody), node("True", 10)).pass().has("SkippedNoController"));
}

// H27
#[test]
fn another_strategy_means_plain_deletion() {
    let other = json!({"metadata": {"annotations": {"machine.openshift.io/remediation-strategy": "other"}}});
    assert!(check(other).with(machine("a", json!({})), node("Unknown", 400)).pass().has("delete ns/a uid-a"));
}

// H33
#[test]
fn every_machine_is_tried_and_a_failure_is_told_on_its_own() {
    let mut world = check(json!({}));
    for name in ["a", "b"] {
        world = world.with(machine(name, json!({})), node("Unknown", 400));
    }
    let seen = world.pass();
    let plan = &seen.outcome.as_ref().expect("examined").plan;
    let Some(crate::Action::Batch(tries)) = plan.actions.last() else { panic!("repairs are a batch") };
    assert_eq!(tries.len(), 2);
    assert!(tries.iter().all(|action| matches!(action, crate::Action::Try { .. })));
    assert!(seen.has("else Warning MachineDeletionFailed Remediate on Machine ns/b"));
}

#[test]
fn a_machine_that_cluster_api_owns_is_counted_and_not_touched() {
    let paused = json!({"type": "Paused", "status": "True", "lastTransitionTime": ago(1)});
    for extra in [
        json!({"status": {"authoritativeAPI": "ClusterAPI"}}),
        json!({"status": {"authoritativeAPI": "Migrating"}}),
        json!({"status": {"authoritativeAPI": "MachineAPI", "conditions": [paused]}}),
    ] {
        for mut world in [check(json!({})), bare_metal()] {
            world.is_migration_on = true;
            let seen = world.with(machine("a", extra.clone()), node("Unknown", 400)).pass();
            assert_eq!((seen.told().len(), seen.counts()), (0, (1, 0, 0)), "{extra}");
        }
    }
}

#[test]
fn a_machine_whose_last_write_the_cache_does_not_show_waits_for_the_next_pass() {
    let mut world = check(json!({})).with(machine("a", json!({})), node("Unknown", 400));
    world.is_fresh = false;
    let seen = world.pass();
    assert_eq!((seen.told().len(), seen.counts()), (0, (1, 0, 0)));
    assert_eq!(seen.outcome.expect("examined").waiting, [mapi_api::Key::new("ns", "a")]);
}

#[test]
fn a_skipped_machine_that_is_not_fresh_for_a_pass_is_not_told_again() {
    let nobody = json!({"metadata": {"ownerReferences": null}});
    let mut world = check(json!({})).with(machine("a", nobody), node("Unknown", 400));
    world.memory.skipped.insert("uid-a".into());
    for is_fresh in [false, true] {
        world.is_fresh = is_fresh;
        let seen = world.pass();
        assert!(seen.told().is_empty(), "{:?}", seen.told());
        world.memory = seen.outcome.expect("examined").memory;
    }
}
