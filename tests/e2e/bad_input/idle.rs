//! What bad objects cost once all is said: nothing.

use e2e::{Ns, Object, Options, World, free_port};
use mapi_api::{Conditions, names::condition};
use serde_json::json;

use crate::{machines, sets};

/// Rounds of all controllers so far.
async fn rounds(world: &World, port: u16) -> u64 {
    let text = world.metrics(port).await;
    let counts = text.lines().filter(|line| line.starts_with("workqueue_work_duration_seconds_count"));
    let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
    counts.map(|line| count(line).unwrap_or_else(|| panic!("no count: {line}"))).sum()
}

/// Something that is nothing to the controllers, for about a second.
async fn work_of_others(ns: &Ns) {
    for number in 0..200 {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"},
            "data": {"number": number.to_string()}});
        ns.apply(object).await;
    }
}

#[tokio::test]
async fn bad_objects_are_not_looked_at_again() {
    let port = free_port();
    let arguments = vec![format!("--metrics-bind-address=127.0.0.1:{port}")];
    let world = World::own(Options { arguments, ..Options::default() }).await;
    let ns = world.namespace("idle").await;
    let is_told = |conditions: &[mapi_api::Condition]| conditions.is_false(condition::SPEC_VALID);
    for bad in machines::incomplete(&ns).into_iter().chain(machines::malformed(&ns)) {
        let name = bad.draft.create().await.name().to_owned();
        ns.wait_machine(&name, |machine| is_told(&machine.status.conditions)).await;
    }
    for bad in sets::unusable(&ns).into_iter().chain(sets::useless(&ns)) {
        // A Machine and a set may have the same name.
        let name = bad.draft.replicas(2).create().await.name().to_owned();
        ns.wait_set(&name, |set| is_told(&set.status.conditions)).await;
    }
    // What is under way ends.
    work_of_others(&ns).await;
    let before = rounds(&world, port).await;
    work_of_others(&ns).await;
    assert!(before > 24, "every object was looked at");
    assert_eq!(rounds(&world, port).await, before);
}
