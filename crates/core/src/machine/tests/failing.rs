//! Errors of the cloud, instances that vanish, and what fails a Machine for good.

use super::*;
use crate::machine::memory::{Reaction, reaction};

// M08, M09, M10
#[test]
fn a_recorded_instance_that_two_looks_do_not_find_fails_the_machine() {
    let only_id = json!({"spec": {"providerID": "sim:///z/i"}});
    let only_addresses = json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
    for change in [recorded(), only_id, only_addresses] {
        let mut world = World::provisioning(change.clone());
        let phase = world.phase();
        let first = world.round(absent());
        assert_eq!((first.asked, first.requeue), (Some(Want::Look), seconds(10)), "{change}");
        assert_eq!(
            world.condition("InstanceExists"),
            "False Warning InstanceMissing Instance not found on provider"
        );
        assert_eq!(world.phase(), phase, "item 21: one look is not enough");

        let early = world.pass(4).round(absent());
        assert_eq!((early.writes, early.requeue), (vec![], seconds(6)));

        let second = world.pass(6).round(absent());
        assert_eq!((world.phase().as_str(), second.requeue), ("Failed", Requeue::Never));
        assert_eq!(world.error(), (None, Some("can't find created instance".into())));
        assert_eq!(
            world.machine["metadata"]["annotations"]["machine.openshift.io/instance-state"],
            "Unknown"
        );
    }
}

#[test]
fn a_single_glitch_does_not_fail_a_provisioned_machine() {
    let mut world = World::provisioning(linked());
    world.round(present(up()));
    world.round(absent());
    world.pass(10).round(present(up()));
    assert_eq!((world.phase().as_str(), world.condition("InstanceExists").as_str()), ("Running", "True"));
    let later = world.pass(100).round(absent());
    assert_eq!(later.requeue, seconds(10), "the count begins anew");
    assert_eq!(world.phase(), "Running");
}

#[test]
fn an_instance_that_is_not_in_sight_yet_is_given_the_time_that_its_cloud_needs() {
    let mut answered = World::provisioning(json!({}));
    answered.round(taken(&[Activity::Create], present(up())));
    let node = json!({"spec": {"providerID": "sim:///z/i"}, "status": {"nodeRef": {"name": "n"}}});
    let rows = [
        answered,
        World::provisioning(json!({"spec": {"providerID": "sim:///z/i"}})),
        World::provisioning(node),
    ];
    for mut world in rows {
        world.serving = Serving::By { settle: Duration::from_secs(60) };
        assert_eq!(world.round(absent()).requeue, seconds(60));
        world.pass(59).round(absent());
        assert_eq!(world.phase(), "Provisioning");
        world.pass(1).round(absent());
        assert_eq!(world.phase(), "Failed");
    }
}

// M12
#[test]
fn a_failed_machine_is_left_alone() {
    let mut world =
        World::new(json!({"status": {"phase": "Failed", "errorMessage": "e"}, "spec": {"providerID": "x"}}));
    let round = world.round(present(up()));
    assert_eq!((round.asked, round.writes, round.requeue), (None, vec![], Requeue::Never));
}

// M13
#[test]
fn a_cloud_that_does_not_answer_is_a_condition_and_no_error() {
    let mut world = World::provisioning(recorded());
    let denied = CloudError::new(Kind::Denied, "describe instance", "token expired");
    let round = world.round(failed(unknown(), Activity::Observe, denied));
    assert_eq!(
        world.condition("InstanceExists"),
        "Unknown ErrorCheckingProvider Failed to check if machine exists: cannot describe instance: token expired"
    );
    assert_eq!(
        (world.phase().as_str(), world.error(), round.requeue.clone()),
        ("Provisioning", (None, None), seconds(60))
    );
    assert_eq!(round.reasons(), [""; 0]);
}

// M14, M16
#[test]
fn an_answer_marked_terminal_fails_the_machine() {
    let fatal = present(Instance { fatal: Some("boot disk is gone".into()), ..up() });
    let refused = failed(unknown(), Activity::Observe, error(Kind::Invalid, "no such image"));
    let gone = present(Instance { fatal: Some("boot disk is gone".into()), ..up() });
    let update = failed(gone, Activity::Update, error(Kind::Transient, "x"));
    for (answer, reason, message) in [
        (fatal, None, "boot disk is gone"),
        (refused, Some("InvalidConfiguration".to_owned()), "no such image"),
        (update, None, "boot disk is gone"),
    ] {
        let mut world = World::provisioning(recorded());
        let round = world.round(answer);
        assert_eq!((world.phase().as_str(), round.requeue), ("Failed", Requeue::Never));
        assert_eq!(world.error(), (reason, Some(message.into())));
        assert_eq!(
            world.machine["metadata"]["annotations"]["machine.openshift.io/instance-state"],
            "Unknown"
        );
    }
}

// M15
#[test]
fn a_failed_update_is_tried_again_with_a_growing_delay() {
    let mut world = World::provisioning(recorded());
    world.round(present(up()));
    for (passed, expected) in [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16)] {
        let round =
            world.pass(passed).round(failed(present(up()), Activity::Update, error(Kind::Transient, "x")));
        assert_eq!(round.asked, Some(Want::Look), "item 8");
        assert_eq!((world.phase().as_str(), round.requeue), ("Provisioned", seconds(expected)));
    }
    world.pass(16).round(present(up()));
    let again = world.round(failed(present(up()), Activity::Update, error(Kind::Transient, "x")));
    assert_eq!(again.requeue, seconds(1), "a success resets the count");
}

// M17, M21
#[test]
fn the_delay_that_a_cloud_asks_for_is_kept_in_every_activity() {
    let later = |kind, seconds| error(kind, "slow down").retry_after(Duration::from_secs(seconds));
    let mut world = World::provisioning(recorded());
    let update = failed(present(up()), Activity::Update, later(Kind::Transient, 5));
    assert_eq!(world.round(update).requeue, seconds(5));
    let mut world = World::provisioning(recorded());
    let observe = failed(unknown(), Activity::Observe, later(Kind::Throttled, 7));
    assert_eq!(world.round(observe).requeue, seconds(7));
    let mut world = World::provisioning(json!({}));
    let create = failed(absent(), Activity::Create, later(Kind::Throttled, 60));
    assert_eq!(world.round(create).requeue, seconds(60));
}

// M22
#[test]
fn a_delay_of_zero_means_later_not_at_once() {
    let mut world = World::provisioning(json!({}));
    let create = failed(absent(), Activity::Create, error(Kind::Transient, "x").retry_after(Duration::ZERO));
    assert_eq!(world.round(create).requeue, seconds(1));
}

// M18, M19
#[test]
fn a_refused_spec_fails_the_machine_with_the_inner_message_only() {
    let mut world = World::provisioning(json!({}));
    let refused = error(Kind::Invalid, "bad").because(std::io::Error::other("outer: inner"));
    let round = world.round(failed(absent(), Activity::Create, refused));
    assert_eq!((world.phase().as_str(), round.requeue.clone()), ("Failed", Requeue::Never));
    assert_eq!(world.error(), (Some("InvalidConfiguration".into()), Some("bad".into())));
    assert_eq!(
        world.condition("InstanceExists"),
        "False Warning InstanceNotCreated Instance has not been created: bad"
    );
    assert_eq!(world.condition("SpecValid"), "False Error InvalidProviderSpec spec.providerSpec.value: bad");
    assert_eq!(round.reasons(), ["FailedCreate"]);
}

#[test]
fn a_spec_that_cannot_be_read_fails_a_machine_without_an_instance_and_spares_one_with() {
    let unreadable =
        || failed(unknown(), Activity::Create, error(Kind::Invalid, "faults[0].kind: `x`: no such fault"));
    let mut fresh = World::new(json!({}));
    fresh.round(unreadable());
    assert_eq!((fresh.phase().as_str(), fresh.condition("InstanceExists").as_str()), ("Failed", "none"));

    let mut running = World::provisioning(linked());
    running.round(present(up()));
    let round = running.round(unreadable());
    assert_eq!((running.phase().as_str(), running.error()), ("Running", (None, None)));
    assert_eq!(
        running.condition("SpecValid"),
        "False Error InvalidProviderSpec spec.providerSpec.value: faults[0].kind: `x`: no such fault"
    );
    assert_eq!((round.reasons(), round.requeue), (vec!["FailedValidate"], Requeue::Never));
    let again = running.round(unreadable());
    assert_eq!((again.writes.clone(), again.reasons()), (vec![], vec![]), "told once");
    running.round(present(up()));
    assert_eq!(running.condition("SpecValid"), "True");
}

#[test]
fn a_change_that_is_refused_is_told_and_fails_no_machine_that_has_an_instance() {
    let two = || {
        let mut instance = up();
        instance.addresses.push(Address::new("InternalIP", "10.0.0.2"));
        present(instance)
    };
    let refused = || failed(two(), Activity::Update, error(Kind::Invalid, "no such group"));
    let outage = || failed(unknown(), Activity::Observe, error(Kind::Transient, "x"));
    let mut world = World::provisioning(linked());
    world.round(present(up()));
    let mut rows = [
        ("", World::new(json!({}))),
        ("Provisioning", World::provisioning(json!({}))),
        ("Provisioning", World::provisioning(recorded())),
        ("Running", world),
    ];
    for (phase, world) in &mut rows {
        let round = world.round(refused());
        assert_eq!((world.phase().as_str(), world.error()), (*phase, (None, None)));
        assert_eq!(
            (world.condition("SpecValid").as_str(), world.condition("InstanceExists").as_str()),
            ("False Error InvalidProviderSpec spec.providerSpec.value: no such group", "True")
        );
        assert_eq!((round.reasons(), round.requeue), (vec!["FailedUpdate"], seconds(60)));
        assert_eq!(world.parsed().status.addresses.len(), 2, "what is seen is taken over all the same");
    }
    let [.., (_, mut world)] = rows;
    assert_eq!(world.round(refused()).asked, None, "whatever wakes the key");
    let again = world.pass(60).round(refused());
    assert_eq!((again.writes, again.requeue), (vec![], seconds(120)));
    world.pass(120).round(outage());
    assert!(world.condition("SpecValid").starts_with("False"), "an outage does not say that it is valid");
    world.pass(300).round(two());
    assert_eq!((world.condition("SpecValid").as_str(), world.phase().as_str()), ("True", "Running"));
}

// M20
#[test]
fn a_failed_create_leaves_its_trace_in_the_condition_and_no_error() {
    let mut world = World::provisioning(json!({}));
    let quota =
        || failed(absent(), Activity::Create, error(Kind::Exhausted, "quota of 3 instances is used up"));
    let round = world.round(quota());
    assert_eq!(
        world.condition("InstanceExists"),
        "False Warning InstanceNotCreated Instance has not been created: quota of 3 instances is used up"
    );
    assert_eq!((world.phase().as_str(), world.error()), ("Provisioning", (None, None)), "item 9");
    assert_eq!(round.requeue, seconds(60));
    assert_eq!(round.events[0].note, "cannot launch instance: quota of 3 instances is used up");
    assert!(matches!(
        round.measures[..],
        [Measure::InstanceFailed { activity: Activity::Create, reason: "Exhausted", .. }]
    ));
    let next = world.pass(60).round(quota());
    assert_eq!((next.writes, next.requeue), (vec![], seconds(120)), "the same news is not written twice");
    world.pass(120).round(absent());
    assert_eq!(
        world.condition("InstanceExists"),
        "False Warning InstanceNotCreated Instance has not been created"
    );
}

#[test]
fn a_failing_cloud_is_left_alone_whatever_wakes_the_key_until_something_changes() {
    let denied = || failed(absent(), Activity::Create, error(Kind::Denied, "no permission"));
    let mut world = World::provisioning(json!({}));
    world.round(denied());
    let woken = world.pass(10).round(absent());
    assert_eq!((woken.asked, woken.requeue), (None, seconds(50)));

    world.machine["metadata"]["generation"] = 2.into();
    assert_eq!(world.round(denied()).asked, Some(Want::Present), "its user changed the spec");

    world.machine["metadata"]["annotations"] = json!({"simulation.machine.openshift.io/faults": "[]"});
    assert_eq!(world.round(denied()).asked, Some(Want::Present), "its user changed an annotation");

    world.memory.relent(world.now);
    assert_eq!(world.round(denied()).asked, Some(Want::Present), "the cloud announced a change");

    world.mark();
    world.drained();
    assert_eq!(world.round(absent()).asked, Some(Want::Absent), "something else is wanted");
}

#[test]
fn while_a_cloud_is_left_alone_the_status_still_tells_the_truth() {
    let mut world = World::provisioning(json!({}));
    world.round(failed(absent(), Activity::Create, error(Kind::Denied, "x")));
    world.machine["spec"]["lifecycleHooks"] = json!({"preDrain": [{"name": "a", "owner": "b"}]});
    world.pass(1).round(absent());
    assert!(world.condition("Drainable").starts_with("False Warning HookPresent"));
}

#[test]
fn every_class_of_error_has_its_delay_in_one_table() {
    let activities = [Activity::Observe, Activity::Create, Activity::Update, Activity::Delete];
    let rows = [
        (Kind::Invalid, ["give up", "give up", "60..300", "60..300"]),
        (Kind::Denied, ["60..300"; 4]),
        (Kind::Exhausted, ["60..300"; 4]),
        (Kind::Throttled, ["10..300"; 4]),
        (Kind::Busy, ["10..60"; 4]),
        (Kind::Transient, ["1..300"; 4]),
    ];
    for (kind, expected) in rows {
        let actual = activities.map(|activity| match reaction(kind, activity) {
            Reaction::GiveUp => "give up".to_owned(),
            Reaction::Retry { first, most } => format!("{}..{}", first.as_secs(), most.as_secs()),
        });
        assert_eq!(actual, expected, "{kind:?}");
    }
}

#[test]
fn no_machine_fails_for_good_because_of_throttling_quota_or_outage() {
    for kind in [Kind::Denied, Kind::Exhausted, Kind::Throttled, Kind::Busy, Kind::Transient] {
        let mut world = World::provisioning(json!({}));
        for _ in 0..20 {
            world.pass(300).round(failed(absent(), Activity::Create, error(kind, "x")));
        }
        assert_eq!(world.phase(), "Provisioning", "I26: {kind:?}");
    }
}

#[test]
fn an_absence_that_the_cloud_explains_is_not_said_to_be_one() {
    let mut world = World::provisioning(json!({"spec": {"providerID": "sim:///z/i"}}));
    let round = world.round(gated(3, absent()));
    assert_eq!((round.writes, round.requeue, round.gates), (vec![], seconds(3), vec!["WaitingForAddress"]));
    for _ in 0..10 {
        world.pass(100).round(gated(3, absent()));
    }
    assert_eq!(world.phase(), "Provisioning");
}
