//! Which pods stand in the way.

use super::*;

// D17, M55
#[test]
fn on_a_silent_node_pods_get_one_second_and_are_not_waited_for() {
    let mut world = World::with_pods(&["a"]);
    world.set_node(json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}));
    let round = world.round();
    assert_eq!((round.grace_s, round.requeue), (vec![Some(1)], seconds(3)));
    world.pass(2).round();
    assert_eq!(world.drained(), "none");
    world.pass(1).round();
    assert_eq!(world.drained(), "True Drain finished successfully");
}

// D18, M55
#[test]
fn on_a_node_that_is_not_ready_pods_keep_their_grace_period() {
    for status in ["False", "True"] {
        let mut world = World::with_pods(&["a"]);
        world.set_node(json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}));
        assert_eq!(world.round().grace_s, [None], "Ready={status}");
        world.pass(40).round();
        assert_eq!(world.drained(), "none");
    }
}

// D19
#[test]
fn a_pod_of_a_daemon_set_stays_goes_or_stops_everything_with_its_daemon_set() {
    let rows = [
        (Look::Found(()), vec!["a"], "none"),
        (Look::Gone, vec!["a", "d"], "none"),
        (
            Look::Failed("500".into()),
            vec![],
            "False Warning DrainError could not drain machine: unable to get daemon set `app/ds`: 500",
        ),
    ];
    for (daemon_set, evicted, drained) in rows {
        let mut world = World::with_pods(&["a"]);
        world.pods.push(of_daemon_set("d", "Running"));
        world.daemon_set = daemon_set.clone();
        let round = world.round();
        assert_eq!(
            (round.evicted, world.drained().as_str()),
            (evicted.iter().map(|n| (*n).to_owned()).collect(), drained)
        );
        assert_eq!(matches!(round.requeue, Requeue::Backoff(_)), matches!(daemon_set, Look::Failed(_)));
    }
}

// D20
#[test]
fn static_pods_stay_and_pods_with_local_data_without_controller_or_finished_go() {
    let mut world = World::new(json!({}));
    world.daemon_set = Look::Found(());
    world.pods = vec![
        pod("static", json!({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}})),
        pod("local", json!({"spec": {"volumes": [{"emptyDir": {}}]}})),
        pod("bare", json!({})),
        of_daemon_set("finished", "Succeeded"),
    ];
    assert_eq!(world.round().evicted, ["bare", "finished", "local"]);
}
