//! What evictions are answered, when they are tried again, and what the Machine says of it.

use super::*;

// D15
#[test]
fn a_blocked_drain_names_pod_and_budget_within_ten_seconds_and_keeps_its_time() {
    let mut world = World::with_pods(&["a", "b"]);
    world.answers = vec![("a", blocked_by_budget()), ("b", blocked_by_budget())];
    let first = world.round();
    assert_eq!((first.evicted.len(), world.drained().as_str()), (2, "none"));
    let Requeue::After(next) = first.requeue else { panic!("{first:?}") };
    assert_eq!(next, Duration::from_secs(5));

    let second = world.pass(5).round();
    let text = "disruption budget `app/web` does not allow the eviction of pod `app/a`";
    assert_eq!(
        world.drained(),
        format!("False Warning DrainError could not drain machine: {text}"),
        "item 3"
    );
    assert_eq!(second.events, [format!("DrainRequeued: Node drain requeued: {text}")]);
    assert_eq!(world.since(), at(100).to_string(), "since the first refusal");

    for _ in 0..30 {
        let round = world.pass(10).round();
        assert_eq!((round.events, round.wrote_status), (vec![], false), "the same cause is no news");
    }
    assert_eq!(world.since(), at(100).to_string());

    world.answers.clear();
    world.pass(60).round();
    world.pods.clear();
    world.round();
    assert_eq!(world.drained(), "True Drain finished successfully");
}

#[test]
fn a_blocked_pod_is_tried_every_five_to_sixty_seconds() {
    let mut world = World::with_pods(&["a"]);
    world.answers = vec![("a", blocked_by_budget())];
    let mut tries = vec![];
    for second in 0..600 {
        if !world.round().evicted.is_empty() {
            tries.push(second);
        }
        world.pass(1);
    }
    let gaps: Vec<_> = tries.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().all(|gap| (5..=61).contains(gap)), "item 2, item 28: {gaps:?}");
    assert!(tries.len() < 18, "{tries:?}");
    assert!(gaps.is_sorted(), "{gaps:?}");
}

#[test]
fn a_delay_that_the_server_asks_for_is_kept_and_does_not_delay_the_news() {
    let mut world = World::with_pods(&["a"]);
    let retry_after = Some(Duration::from_secs(30));
    world.answers = vec![("a", Outcome::Blocked { message: BUDGET.into(), retry_after })];
    assert_eq!(world.round().requeue, seconds(5));
    assert!(world.pass(5).round().evicted.is_empty());
    assert!(world.drained().contains("`app/web`"));
    assert!(world.pass(24).round().evicted.is_empty());
    assert_eq!(world.pass(7).round().evicted, ["a"]);
}

#[test]
fn a_budget_that_allows_one_more_makes_one_eviction_due_at_once() {
    let mut world = World::with_pods(&["a", "b"]);
    world.answers = vec![("a", blocked_by_budget()), ("b", blocked_by_budget())];
    world.round();
    let key = Key::new("app", "a");
    for (budget, is_due) in [(budget("web", 0), false), (budget("other", 1), false), (budget("web", 1), true)]
    {
        assert_eq!(world.attempts.budget_changed(&budget, world.now), is_due, "{budget:?}");
    }
    assert_eq!(world.round().evicted, ["a"]);
    assert!(world.attempts.budget_removed(&budget("web", 0), world.now));
    assert_eq!(world.round().evicted, ["a", "b"]);
    assert!(world.attempts.pod_changed(&key, world.now));
    assert_eq!(world.round().evicted, ["a"]);
    assert_eq!(world.attempts.blocked_namespaces(), ["app"]);
    world.attempts.pod_removed(&key);
    world.attempts.pod_removed(&Key::new("app", "b"));
    assert_eq!(world.attempts, Attempts::default(), "I28");
}

#[test]
fn the_name_of_a_budget_is_found_in_the_servers_words() {
    let still = "Cannot evict pod as it would violate the pod's disruption budget.: The disruption budget a-b.c is still \
                 being processed by the server.";
    for (message, expected) in
        [(BUDGET, "budget `app/web`"), (still, "budget `app/a-b.c`"), ("no", "a disruption budget")]
    {
        let mut world = World::with_pods(&["a"]);
        world.answers = vec![("a", Outcome::Blocked { message: message.into(), retry_after: None })];
        world.round();
        world.pass(5).round();
        assert!(world.drained().contains(expected), "{}", world.drained());
    }
}

#[test]
fn one_pod_that_cannot_be_evicted_does_not_stop_the_others() {
    let mut world = World::with_pods(&["a", "b", "c"]);
    let two =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    world.answers = vec![("a", Outcome::Failed(two.into())), ("b", Outcome::NamespaceTerminating)];
    assert_eq!(world.round().evicted, ["a", "b", "c"]);
    world.pass(5).round();
    assert_eq!(
        world.drained(),
        format!(
            "False Warning DrainError could not drain machine: pod `app/b` is in a namespace that is being deleted and \
             is not deleted yet; cannot evict pod `app/a`: {two}"
        )
    );
}

#[test]
fn a_pod_that_does_not_end_is_named_and_an_old_cause_does_not_stay() {
    let mut world = World::with_pods(&["a"]);
    world.answers = vec![("a", blocked_by_budget())];
    world.round();
    world.pass(6).round();
    assert!(world.drained().contains("`app/web`"));
    world.answers.clear();
    world.pass(60).round();
    world.pass(1).round();
    let text = "False Warning DrainError could not drain machine: pod `app/a` has not ended yet";
    assert_eq!(world.drained(), text);

    let mut stuck = World::with_pods(&["a"]);
    stuck.round();
    stuck.pass(50).round();
    assert_eq!(stuck.drained(), "none", "30 s of grace and 20 more");
    stuck.pass(1).round();
    assert_eq!(stuck.drained(), text);
}

#[test]
fn many_pods_are_evicted_in_rounds_that_follow_at_once() {
    let names: Vec<String> = (0..70).map(|i| format!("p{i:02}")).collect();
    let mut world = World::with_pods(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(world.round().evicted.len(), 70, "the first list is followed by two more");
}

// D21
#[test]
fn a_pod_that_was_replaced_under_its_name_is_another_pod() {
    let mut world = World::with_pods(&["a"]);
    world.answers = vec![("a", blocked_by_budget())];
    world.round();
    world.pods = vec![pod("a", json!({"metadata": {"uid": "new"}}))];
    assert_eq!(world.pass(1).round().evicted, ["a"], "what the old one was refused does not count");
    assert_eq!(
        world
            .attempts
            .of(&serde_json::from_value(world.pods[0].clone()).expect("a pod"))
            .expect("one")
            .refusals,
        1
    );
}

#[test]
fn a_pod_that_the_server_no_longer_has_is_gone_even_if_the_watch_still_shows_it() {
    let mut world = World::with_pods(&["a", "b"]);
    world.answers = vec![("a", Outcome::Gone), ("b", Outcome::Gone)];
    let round = world.round();
    assert_eq!(round.evicted, ["a", "b"], "each is asked for once");
    assert_eq!(world.drained(), "True Drain finished successfully");
}
