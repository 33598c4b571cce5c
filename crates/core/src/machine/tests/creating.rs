//! From nothing to Running.

use super::*;

// M02
#[test]
fn the_finalizer_is_appended_before_anything_is_asked() {
    let mut world = World::new(json!({"metadata": {"finalizers": ["other/a", "other/b"]}}));
    let round = world.round(absent());
    assert_eq!(world.finalizers(), ["other/a", "other/b", "machine.machine.openshift.io"]);
    assert_eq!((round.asked, round.writes, round.requeue), (None, vec!["main"], Requeue::Never));
}

// M03
#[test]
fn the_first_round_only_looks_and_says_so() {
    let mut world = World::new(json!({}));
    let round = world.round(absent());
    assert_eq!(round.asked, Some(Want::Look));
    assert_eq!(world.phase(), "Provisioning");
    assert_eq!(
        world.condition("InstanceExists"),
        "False Warning InstanceNotCreated Instance has not been created"
    );
    assert_eq!((round.writes, round.requeue), (vec!["status"], Requeue::Never));
}

// M04
#[test]
fn a_machine_that_was_looked_at_is_created_and_looked_at_again_after_30_s() {
    let mut world = World::provisioning(json!({}));
    let round = world.round(taken(&[Activity::Create], absent()));
    assert_eq!((round.asked, round.requeue.clone()), (Some(Want::Present), seconds(30)));
    assert_eq!((world.phase().as_str(), round.reasons()), ("Provisioning", vec!["Create"]));
    assert_eq!(round.writes, [""; 0], "an accepted create that shows nothing yet is no news");
}

#[test]
fn a_create_is_only_asked_for_once_the_status_shows_that_it_may_have_been() {
    let mut world = World::new(json!({"status": {"phase": "Provisioning"}}));
    let round = world.round(absent());
    assert_eq!((round.asked, round.writes), (Some(Want::Look), vec!["status"]));
    assert_eq!(world.round(absent()).asked, Some(Want::Present));
}

// M05
#[test]
fn an_instance_with_addresses_is_provisioned() {
    let mut world = World::provisioning(recorded());
    let round = world.round(present(up()));
    assert_eq!((round.asked, round.requeue), (Some(Want::Look), seconds(30)));
    assert_eq!((world.phase().as_str(), world.condition("InstanceExists").as_str()), ("Provisioned", "True"));
    assert_eq!(round.writes, ["status"]);
}

// M06
#[test]
fn an_instance_without_id_and_addresses_exists_and_is_not_provisioned() {
    let mut world = World::provisioning(json!({}));
    let round = world.round(present(Instance::default()));
    assert_eq!(
        (world.phase().as_str(), world.condition("InstanceExists").as_str()),
        ("Provisioning", "True")
    );
    assert_eq!((round.writes, round.requeue), (vec!["status"], seconds(30)));
}

// M07
#[test]
fn a_linked_instance_runs() {
    let mut world = World::provisioning(linked());
    world.round(present(up()));
    assert_eq!(world.phase(), "Running");
}

// M11
#[test]
fn an_empty_provider_id_is_none() {
    let mut world = World::provisioning(json!({"spec": {"providerID": ""}}));
    assert_eq!(world.round(absent()).asked, Some(Want::Present));
}

#[test]
fn an_instance_that_was_made_before_is_adopted_in_the_first_round() {
    let mut world = World::new(json!({}));
    let round = world.round(present(up()));
    assert_eq!((round.writes, world.phase().as_str()), (vec!["main", "status"], "Provisioned"));
    assert_eq!(world.parsed().provider_id(), Some("sim:///z/i"));
}

#[test]
fn from_nothing_to_running_costs_five_writes_and_one_event() {
    let mut world = World::new(json!({}));
    let mut rounds = vec![world.round(absent())];
    rounds.push(world.round(taken(&[Activity::Create], present(booting()))));
    rounds.push(world.pass(1).round(present(Instance { state: "Starting".into(), ..booting() })));
    rounds.push(world.pass(1).round(present(up())));
    rounds.push(world.pass(1).round(present(up())));
    world.machine["status"]["nodeRef"] = json!({"name": "n", "uid": "nu"});
    rounds.push(world.pass(1).round(present(up())));
    rounds.push(world.pass(1).round(present(up())));
    let writes: Vec<_> = rounds.iter().flat_map(|r| r.writes.clone()).collect();
    assert_eq!(writes, ["status", "main", "main", "status", "status"]);
    assert_eq!(rounds.iter().flat_map(Round::reasons).collect::<Vec<_>>(), ["Create"]);
    assert_eq!(world.phase(), "Running");
}

#[test]
fn what_a_create_answers_is_told_once_a_look_shows_it_too() {
    let mut world = World::provisioning(json!({}));
    let made = world.round(taken(&[Activity::Create], present(up())));
    assert_eq!((made.writes, made.requeue), (vec!["main"], seconds(10)));
    assert_eq!(world.parsed().status.addresses, []);
    assert_eq!(world.round(present(up())).writes, ["status"]);
    assert_eq!((world.phase().as_str(), world.condition("InstanceExists").as_str()), ("Provisioned", "True"));
}

#[test]
fn an_instance_that_boots_slowly_is_told_after_ten_seconds() {
    let mut world = World::provisioning(json!({}));
    world.round(taken(&[Activity::Create], present(booting())));
    let early = world.pass(4).round(present(booting()));
    assert_eq!((early.writes, early.requeue), (vec![], seconds(6)));
    assert!(world.condition("InstanceExists").starts_with("False"));
    let late = world.pass(6).round(present(booting()));
    assert_eq!(late.writes, ["status"]);
    assert_eq!((world.condition("InstanceExists").as_str(), world.phase().as_str()), ("True", "Provisioned"));
}

#[test]
fn after_a_restart_nothing_is_waited_for() {
    let mut world = World::provisioning(json!({}));
    world.round(taken(&[Activity::Create], present(booting())));
    world.memory = Memory::default();
    world.pass(1).round(present(booting()));
    assert_eq!(world.condition("InstanceExists"), "True");
}

#[test]
fn the_id_is_recorded_right_after_the_create_even_if_a_later_step_failed() {
    let mut world = World::provisioning(json!({}));
    let attach = CloudError::new(Kind::Transient, "attach disk", "busy");
    let answer = failed(taken(&[Activity::Create], present(booting())), Activity::Create, attach);
    let round = world.round(answer);
    assert_eq!(world.parsed().provider_id(), Some("sim:///z/i"));
    assert_eq!(round.reasons(), ["Create", "FailedCreate"]);
    assert_eq!((world.phase().as_str(), round.requeue), ("Provisioning", seconds(1)));
}

#[test]
fn labels_are_set_where_the_cloud_tells_a_value_and_interruptible_also_reaches_the_node() {
    let mut world = World::provisioning(json!({}));
    world.round(present(Instance { zone: "z".into(), is_interruptible: true, ..booting() }));
    let machine = world.parsed();
    let labels: Vec<_> = machine.metadata.labels.into_iter().flatten().collect();
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    assert_eq!(
        labels,
        [
            pair("machine.openshift.io/cluster-api-cluster", "c"),
            pair("machine.openshift.io/interruptible-instance", ""),
            pair("machine.openshift.io/zone", "z"),
        ]
    );
    assert_eq!(
        machine.spec.metadata.labels.into_iter().collect::<Vec<_>>(),
        [pair("machine.openshift.io/interruptible-instance", "")]
    );
}

// M56
#[test]
fn a_running_machine_is_looked_at_again_at_a_time_of_its_own() {
    let mut delays = vec![];
    for uid in ["a", "b", "c", "d"] {
        let mut change = linked();
        change["metadata"]["uid"] = "u".into();
        change["metadata"]["labels"]["x"] = uid.into();
        let mut world = World::new(change);
        world.round(present(up()));
        let machine = {
            world.machine["metadata"]["uid"] = uid.into();
            world.parsed()
        };
        let serving = Serving::By { settle: Duration::ZERO };
        let memory = Memory::default();
        let facts = Facts {
            machine: &machine,
            serving: &serving,
            node: None,
            memory: &memory,
            is_gate_on: false,
            now: world.now,
        };
        assert_eq!(decide(&facts), Decision::Ask(Want::Look), "resync: the cloud is asked again");
        let plan = settle(&facts, &present(up()));
        assert_eq!(plan.actions, []);
        let Requeue::After(delay) = plan.requeue else { panic!("{:?}", plan.requeue) };
        assert!((480..720).contains(&delay.as_secs()), "{delay:?}");
        delays.push(delay);
    }
    delays.dedup();
    assert_eq!(delays.len(), 4, "item 36: resyncs are spread");
}

#[test]
fn polling_slows_down_while_nothing_changes_and_a_cloud_that_announces_may_set_the_pace() {
    let mut world = World::provisioning(recorded());
    world.round(present(up()));
    for (passed, expected) in [(10, 30), (90, 50), (200, 150), (10_000, 300)] {
        let round = world.pass(passed).round(present(up()));
        assert_eq!(
            (round.writes, round.requeue),
            (vec![], seconds(expected)),
            "item 36, after {passed} s more"
        );
    }
    let look_again = Some(Duration::from_secs(7));
    assert_eq!(world.round(present(Instance { look_again, ..up() })).requeue, seconds(7));
}

#[test]
fn a_gate_explains_itself_and_sets_the_pace() {
    let mut world = World::provisioning(json!({}));
    let round = world.round(gated(20, absent()));
    assert_eq!((round.requeue, round.gates), (seconds(20), vec!["WaitingForAddress"]));
    assert_eq!(
        world.condition("InstanceExists"),
        "False Warning InstanceNotCreated Instance has not been created: no address yet"
    );
}
