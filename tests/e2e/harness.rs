//! The world itself: a failing wait says enough, and a recording loses nothing.

use std::time::Duration;

use e2e::{Chance, Change, Machine, Object, Options, World};
use serde_json::json;

/// Nobody but the tests changes anything here.
async fn world() -> World {
    World::shared(Options { idle: true, ..Options::default() }).await
}

#[tokio::test]
async fn a_wait_that_fails_names_its_test_and_shows_the_last_state() {
    let ns = world().await.namespace("late").await.patient(Duration::from_secs(1));
    let machine = ns.machine("idle").create().await;
    ns.patch_status::<Machine>(machine.name(), json!({"phase": "Provisioning"})).await;
    let name = machine.name().to_owned();
    let wait = async move { ns.wait_machine(&name, |machine| machine.phase() == "Running").await };
    let panic = tokio::spawn(wait).await.unwrap_err().into_panic();
    let text = panic.downcast_ref::<String>().unwrap();
    for part in
        [file!(), "machines of namespace `late-", "\"phase\": \"Provisioning\"", "log of the controllers"]
    {
        assert!(text.contains(part), "no {part} in: {text}");
    }
}

#[tokio::test]
async fn a_recording_holds_every_state_in_order() {
    let ns = world().await.namespace("recorded").await;
    let machine = ns.machine("idle").create().await;
    let recording = ns.record::<Machine>().await;
    let phases = ["Provisioning", "Provisioned", "Running", "Failed"];
    for phase in phases {
        ns.patch_status::<Machine>(machine.name(), json!({ "phase": phase })).await;
    }
    ns.delete::<Machine>(machine.name()).await;
    let changes = recording.until(|changes| matches!(changes.last(), Some(Change::Gone(_)))).await;
    let seen: Vec<&str> = changes.iter().filter_map(Change::now).map(Machine::phase).collect();
    assert_eq!(seen, [&[""][..], &phases].concat());
}

#[tokio::test]
async fn the_same_seed_gives_the_same_numbers() {
    let chance = Chance::from_env();
    let draw = |mut chance: Chance| (chance.some_of(30, 10), chance.below(1_000_000));
    assert_eq!(draw(chance.clone()), draw(chance.clone()));
    let mut some = draw(chance).0;
    some.sort_unstable();
    some.dedup();
    assert_eq!(some.len(), 10);
}
