//! Machines whose ownership moves between the Machine API and Cluster API.

use super::*;

fn world(authority: &str, change: Value) -> World {
    let mut world = World::new(change);
    world.is_gate_on = true;
    if !authority.is_empty() {
        world.machine["status"]["authoritativeAPI"] = authority.into();
    }
    world
}

// M41
#[test]
fn the_authority_is_recorded_first_and_nothing_else_is_done() {
    let mut world =
        world("", json!({"metadata": {"finalizers": null}, "spec": {"authoritativeAPI": "ClusterAPI"}}));
    let round = world.round(absent());
    assert_eq!(world.machine["status"], json!({"authoritativeAPI": "ClusterAPI"}));
    assert_eq!((round.asked, round.writes, world.has_finalizer()), (None, vec!["status"], false));
}

// M42, M43
#[test]
fn a_machine_of_cluster_api_is_paused_throughout_its_migration() {
    let mut world = world("ClusterAPI", json!({"metadata": {"finalizers": null}}));
    for authority in ["ClusterAPI", "Migrating"] {
        world.machine["status"]["authoritativeAPI"] = authority.into();
        let round = world.round(absent());
        assert_eq!(
            world.condition("Paused"),
            format!("True AuthoritativeAPINotMachineAPI The AuthoritativeAPI status is set to '{authority}'")
        );
        assert_eq!((round.asked, round.writes, world.has_finalizer()), (None, vec!["status"], false));
        assert_eq!(world.round(absent()).writes, [""; 0]);
    }
}

// M44
#[test]
fn a_machine_that_comes_back_is_worked_on_in_the_same_round() {
    let mut world = world("Migrating", recorded());
    world.round(absent());
    world.machine["status"]["authoritativeAPI"] = "MachineAPI".into();
    let round = world.round(present(up()));
    assert_eq!(
        world.condition("Paused"),
        "False Info AuthoritativeAPIMachineAPI The AuthoritativeAPI status is set to 'MachineAPI'"
    );
    assert_eq!(
        (round.asked, round.writes, world.phase().as_str()),
        (Some(Want::Look), vec!["status"], "Provisioned")
    );
}

#[test]
fn a_new_machine_gets_finalizer_and_condition_and_no_empty_phase() {
    let mut world = world("MachineAPI", json!({"metadata": {"finalizers": null}}));
    let round = world.round(absent());
    assert_eq!((round.writes, world.has_finalizer()), (vec!["main", "status"], true));
    assert!(world.machine["status"].get("phase").is_none(), "item 27");
}

// M45
#[test]
fn an_unknown_authority_is_left_alone() {
    let mut world = world("Somebody", json!({}));
    let round = world.round(absent());
    assert_eq!((round.asked, round.writes, round.requeue), (None, vec![], Requeue::Never));
}

// M46
#[test]
fn with_the_gate_off_the_authority_means_nothing() {
    let mut world = world("ClusterAPI", json!({}));
    world.is_gate_on = false;
    assert_eq!(world.round(absent()).asked, Some(Want::Look));
    assert_eq!(world.condition("Paused"), "none");
}

// M47
#[test]
fn a_paused_machine_is_not_removed() {
    let mut world = world("ClusterAPI", recorded());
    world.mark();
    world.drained();
    let round = world.round(absent());
    assert_eq!((round.asked, world.has_finalizer(), world.phase().as_str()), (None, true, ""));
    assert!(world.condition("Paused").starts_with("True"));
}

// M57
#[test]
fn a_failed_machine_keeps_its_error_when_its_owner_changes() {
    let failed = json!({"status": {"phase": "Failed", "errorReason": "r", "errorMessage": "m"}});
    let mut world = world("Migrating", failed);
    world.round(absent());
    world.machine["status"]["authoritativeAPI"] = "MachineAPI".into();
    let round = world.round(absent());
    assert!(world.condition("Paused").starts_with("False"));
    assert_eq!((round.asked, world.error()), (None, (Some("r".into()), Some("m".into()))));
}
