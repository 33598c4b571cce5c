//! From the deletion mark to the end of the finalizer.

use super::*;

fn gone() -> Answer {
    taken(&[Activity::Delete], absent())
}

// M23, M24
#[test]
fn the_cloud_is_not_asked_before_the_drain_is_done() {
    for drained in [None, Some(json!({"type": "Drained", "status": "False", "reason": "DrainError"}))] {
        let mut world = World::new(linked());
        world.mark();
        world.machine["status"]["conditions"] = drained.into_iter().collect();
        let round = world.round(absent());
        assert_eq!((round.asked, round.requeue), (None, Requeue::Never));
        assert_eq!((world.phase().as_str(), world.has_finalizer()), ("Deleting", true));
        assert_eq!(round.gates, ["WaitingForDrain"]);
        assert_eq!(world.round(absent()).writes, [""; 0], "item 35");
    }
}

// M25
#[test]
fn an_instance_that_is_still_there_keeps_the_finalizer() {
    let mut world = World::deleting(recorded());
    let round = world.round(taken(&[Activity::Delete], present(up())));
    assert_eq!((round.asked, round.requeue.clone()), (Some(Want::Absent), seconds(30)));
    assert_eq!(
        (world.has_finalizer(), world.phase().as_str(), round.reasons()),
        (true, "Deleting", vec!["Delete"])
    );
}

#[test]
fn the_state_of_an_instance_is_told_until_it_is_gone() {
    let mut world = World::deleting(recorded());
    let state = |world: &World| {
        world.machine["metadata"]["annotations"]["machine.openshift.io/instance-state"].clone()
    };
    let terminating = || Instance { state: "Terminating".into(), ..up() };
    let round = world.round(taken(&[Activity::Delete], present(terminating())));
    assert_eq!((state(&world), round.writes), (json!("Terminating"), vec!["main", "status"]));
    let waiting = world.round(gated(20, present(terminating())));
    assert_eq!((waiting.writes, waiting.requeue), (vec![], seconds(20)), "one write for each state");
    world.round(present(Instance { state: String::new(), ..up() }));
    assert_eq!(state(&world), "Terminating", "a cloud without a word for it leaves the last one");
}

// M26
#[test]
fn the_finalizer_goes_and_others_stay() {
    let mut world = World::deleting(recorded());
    world.machine["metadata"]["finalizers"] = json!(["a/b", "machine.machine.openshift.io", "c/d"]);
    world.round(absent());
    assert_eq!(world.finalizers(), ["a/b", "c/d"]);
}

// M27
#[test]
fn the_node_goes_before_the_finalizer() {
    let mut world = World::deleting(linked());
    world.node = node("nu", "sim:///z/i");
    let round = world.round(gone());
    assert_eq!((round.writes, world.has_finalizer()), (vec!["delete node", "main"], false));
    assert_eq!(world.node, None);
}

// M28
#[test]
fn a_node_that_is_gone_already_holds_nothing_up() {
    let mut world = World::deleting(linked());
    assert_eq!(world.round(gone()).writes, ["main"]);
}

// M29
#[test]
fn a_node_that_cannot_be_deleted_keeps_the_finalizer() {
    let mut world = World::deleting(linked());
    world.node = node("nu", "sim:///z/i");
    let (_, is_failed) = world.round_until(gone(), 0);
    assert!(is_failed && world.has_finalizer() && world.node.is_some());
    world.round(absent());
    assert!(!world.has_finalizer() && world.node.is_none());
}

#[test]
fn a_node_that_only_bears_the_name_is_left_alone() {
    let rows = [
        ("nu", "sim:///z/i", json!("nu"), true),
        ("other", "sim:///z/i", json!("nu"), false),
        ("other", "sim:///z/i", Value::Null, true),
        ("other", "sim:///z/other", Value::Null, false),
        ("other", "", Value::Null, false),
    ];
    for (uid, provider_id, recorded, is_ours) in rows {
        let mut world = World::deleting(linked());
        world.machine["status"]["nodeRef"]["uid"] = recorded.clone();
        world.node = node(uid, provider_id);
        world.round(gone());
        assert_eq!(world.node.is_none(), is_ours, "item 20: {uid} {provider_id} {recorded}");
        assert!(!world.has_finalizer());
    }
}

// M30
#[test]
fn a_pre_terminate_hook_is_waited_for() {
    let mut world = World::deleting(recorded());
    world.machine["spec"]["lifecycleHooks"] = json!({"preTerminate": [{"name": "a", "owner": "b"}]});
    let round = world.round(gone());
    assert_eq!((round.asked, round.requeue, round.gates), (None, Requeue::Never, vec!["WaitingForHook"]));
    assert_eq!(
        world.condition("Terminable"),
        "False Warning HookPresent Terminate operation currently blocked by: [{Name:a Owner:b}]"
    );
}

// M31
#[test]
fn a_pre_drain_hook_is_not_looked_at_after_the_drain() {
    let mut world = World::deleting(recorded());
    world.machine["spec"]["lifecycleHooks"] = json!({"preDrain": [{"name": "a", "owner": "b"}]});
    assert_eq!(world.round(gone()).asked, Some(Want::Absent));
    assert!(!world.has_finalizer());
}

// M32
#[test]
fn a_spec_that_the_cloud_refuses_holds_nothing_up_if_nothing_was_created() {
    let refused = || failed(absent(), Activity::Delete, error(Kind::Invalid, "bad"));
    let mut never = World::deleting(json!({}));
    never.round(refused());
    assert!(!never.has_finalizer());

    let mut tried =
        World::deleting(json!({"status": {"conditions": [{"type": "InstanceExists", "status": "False"}]}}));
    tried.round(refused());
    assert!(tried.has_finalizer(), "item 23: an instance may still appear");
    tried.pass(300).round(refused());
    assert!(!tried.has_finalizer());
}

// M33
#[test]
fn a_spec_that_the_cloud_refuses_keeps_the_finalizer_of_a_recorded_instance() {
    for change in
        [recorded(), json!({"spec": {"providerID": "x"}}), json!({"status": {"providerStatus": {"a": 1}}})]
    {
        let mut world = World::deleting(change);
        for answer in [absent(), unknown()] {
            world.pass(600).round(failed(answer, Activity::Delete, error(Kind::Invalid, "bad")));
            assert!(world.has_finalizer());
        }
        assert_eq!(
            world.condition("SpecValid"),
            "False Error InvalidProviderSpec spec.providerSpec.value: bad"
        );
    }
}

// M34
#[test]
fn a_delay_that_the_cloud_asks_for_on_delete_is_kept() {
    let mut world = World::deleting(recorded());
    let busy = error(Kind::Busy, "detaching").retry_after(Duration::from_secs(20));
    let round = world.round(failed(present(up()), Activity::Delete, busy));
    assert_eq!((round.requeue.clone(), round.reasons()), (seconds(20), vec!["FailedDelete"]));
}

// M35
#[test]
fn a_cloud_that_does_not_answer_on_delete_changes_no_condition_and_keeps_the_finalizer() {
    let mut world = World::deleting(recorded());
    world.put_condition(json!({"type": "InstanceExists", "status": "True"}));
    let round = world.round(failed(unknown(), Activity::Observe, error(Kind::Transient, "x")));
    assert_eq!((world.condition("InstanceExists").as_str(), round.requeue), ("True", seconds(1)));
    assert!(world.has_finalizer());
}

// M36
#[test]
fn without_our_finalizer_only_the_phase_is_written() {
    let mut world = World::deleting(recorded());
    world.machine["metadata"]["finalizers"] = json!(["a/b"]);
    let round = world.round(gone());
    assert_eq!((round.asked, round.writes, world.phase().as_str()), (None, vec!["status"], "Deleting"));
    assert_eq!(world.finalizers(), ["a/b"]);
}

// M37
#[test]
fn deletion_leads_out_of_failed() {
    let mut world =
        World::new(json!({"status": {"phase": "Failed", "errorReason": "r", "errorMessage": "m"}}));
    world.mark();
    world.round(absent());
    assert_eq!((world.phase().as_str(), world.error()), ("Deleting", (None, None)));
}

// M40
#[test]
fn a_machine_without_cluster_label_can_be_deleted() {
    let mut world = World::deleting(recorded());
    world.machine["metadata"]["labels"] = json!({});
    world.round(gone());
    assert!(!world.has_finalizer(), "item 22");
}

#[test]
fn a_machine_that_no_cloud_serves_goes_only_if_nothing_can_have_been_created() {
    let servings = [
        (Serving::Missing { served: vec!["K.g".into()] }, "MissingProviderSpec", "value field must be set"),
        (
            Serving::Unknown { kind: "X.g".into(), served: vec!["K.g".into()] },
            "UnknownProviderKind",
            "`X.g` is served by no cloud here: must be one of `K.g`",
        ),
    ];
    for (serving, reason, text) in servings {
        let mut never = World::deleting(json!({}));
        never.serving = serving.clone();
        let round = never.round(absent());
        assert_eq!((round.asked, never.has_finalizer()), (None, false));

        let mut tried = World::deleting(recorded());
        tried.serving = serving;
        let round = tried.round(absent());
        assert_eq!((round.requeue.clone(), tried.has_finalizer()), (Requeue::Never, true));
        let condition = tried.condition("SpecValid");
        assert!(
            condition.starts_with(&format!("False Error {reason} ")) && condition.contains(text),
            "{condition}"
        );
        assert_eq!((round.reasons(), tried.round(absent()).reasons()), (vec!["FailedValidate"], vec![]));
    }
}

#[test]
fn an_absence_is_believed_at_once_only_if_no_instance_can_still_appear() {
    let tried = json!({"status": {"conditions": [{"type": "InstanceExists", "status": "False"}]}});
    let accepted = json!({"spec": {"providerID": "x"}});
    let seen = json!({"status": {"conditions": [{"type": "InstanceExists", "status": "True"}]}});
    let joined = json!({
        "status": {"nodeRef": {"name": "n", "uid": "nu"}, "conditions": [{"type": "InstanceExists", "status": "False"}]},
    });
    let rows = [
        ("never tried", json!({}), absent(), true),
        ("seen before", seen, absent(), true),
        ("an address is recorded", recorded(), absent(), true),
        ("the terminate saw it", tried.clone(), gone(), true),
        ("tried, not seen", tried, absent(), false),
        ("accepted, not seen", accepted, absent(), false),
        ("joined, not seen", joined, absent(), false),
    ];
    for (what, change, answer, is_believed) in rows {
        let mut world = World::deleting(change);
        let round = world.round(answer);
        assert_eq!(!world.has_finalizer(), is_believed, "{what}");
        if !is_believed {
            assert_eq!((round.requeue, round.gates), (seconds(35), vec!["WaitingForSettling"]), "{what}");
            world.pass(34).round(absent());
            assert!(world.has_finalizer(), "{what}");
            world.pass(1).round(absent());
            assert!(!world.has_finalizer(), "{what}");
        }
    }
}

#[test]
fn what_a_create_answered_was_not_seen_yet() {
    let refused = error(Kind::Invalid, "no such disk");
    let half = failed(taken(&[Activity::Create], present(up())), Activity::Create, refused);
    for (phase, answer) in [("Provisioning", taken(&[Activity::Create], present(up()))), ("Failed", half)] {
        let mut world = World::provisioning(json!({}));
        world.round(answer);
        assert_eq!((world.phase().as_str(), world.parsed().provider_id()), (phase, Some("sim:///z/i")));
        assert_ne!(world.condition("InstanceExists"), "True", "{phase}");
        world.mark();
        world.drained();
        let round = world.round(absent());
        assert_eq!((world.has_finalizer(), round.requeue), (true, seconds(35)), "I2: {phase}");
        world.pass(35).round(absent());
        assert!(!world.has_finalizer());
    }
}

#[test]
fn a_create_that_was_certainly_refused_delays_no_deletion() {
    let refused = |error: CloudError| failed(absent(), Activity::Create, error);
    let rows = [
        (refused(error(Kind::Exhausted, "quota")), true),
        (gated(5, absent()), true),
        (refused(error(Kind::Transient, "time-out").uncertain()), false),
        (taken(&[Activity::Create], absent()), false),
    ];
    for (answer, is_certain) in rows {
        let what = format!("{answer:?}");
        let mut world = World::provisioning(json!({}));
        world.round(answer);
        world.mark();
        world.drained();
        world.round(absent());
        assert_eq!(!world.has_finalizer(), is_certain, "{what}");
    }
}

#[test]
fn what_another_process_may_have_created_is_waited_for() {
    let mut world = World::provisioning(json!({}));
    world.memory = Memory::default();
    world.round(failed(absent(), Activity::Create, error(Kind::Exhausted, "quota")));
    world.mark();
    world.drained();
    world.round(absent());
    assert!(world.has_finalizer(), "a process that died may have asked too");
}

#[test]
fn what_belongs_to_an_instance_is_waited_for_after_the_instance() {
    let mut world = World::deleting(recorded());
    let round = world.round(gated(15, gone()));
    assert_eq!((round.requeue, world.has_finalizer()), (seconds(15), true), "I2");
    world.round(failed(absent(), Activity::Delete, error(Kind::Busy, "disk is being detached")));
    assert!(world.has_finalizer());
    world.pass(10).round(absent());
    assert!(!world.has_finalizer());
}

#[test]
fn an_instance_seen_on_delete_is_remembered_in_the_status() {
    let mut world =
        World::deleting(json!({"status": {"conditions": [{"type": "InstanceExists", "status": "False"}]}}));
    world.round(present(booting()));
    assert_eq!(world.condition("InstanceExists"), "True");
    world.memory = Memory::default();
    world.round(absent());
    assert!(!world.has_finalizer());
}
