//! What a Machine says of a drain that does not get through, and how often it is tried.

use std::time::Duration;

use e2e::{Machine, Object, Options, World, pod_phase};
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use mapi_api::{Conditions, names::condition};
use serde_json::json;

use crate::{
    FINISHED, bind, blocked, hold, refusals, release, running, said, said_in_words, wait_blocked, world,
};

// D15
#[tokio::test]
async fn each_budget_that_refuses_is_named_until_it_lets_go() {
    let ns = world().await.namespace("two").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    hold(&ns, &machine, "a").await;
    hold(&ns, &machine, "b").await;
    ns.delete::<Machine>(machine.name()).await;
    let text = |app: &str| {
        format!("disruption budget `{0}/{app}` does not allow the eviction of pod `{0}/{app}`", ns.name())
    };
    let start = "could not drain machine: ";
    let both = format!("{start}{}; {}", text("a"), text("b"));
    ns.wait_machine(machine.name(), |machine| blocked(machine) == Some(&both)).await;
    release(&ns, "a").await;
    let one = format!("{start}{}", text("b"));
    ns.wait_machine(machine.name(), |machine| blocked(machine) == Some(&one)).await;
    ns.wait_gone::<Pod>("a").await;
    release(&ns, "b").await;
    ns.wait_gone::<Machine>(machine.name()).await;
    let said = said_in_words(&machines, &machine).await;
    assert_eq!(said.last(), Some(&format!("True {FINISHED}")));
}

// D15: what the server says is told once.
#[tokio::test]
async fn a_pod_under_two_budgets_is_named_with_the_servers_words() {
    let ns = world().await.namespace("double").await;
    let machine = running(&ns, ns.machine("m")).await;
    hold(&ns, &machine, "pod").await;
    let second = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "second"},
        "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "pod"}}},
    });
    ns.apply(second).await;
    ns.delete::<Machine>(machine.name()).await;
    let machine = wait_blocked(&ns, &machine).await;
    assert_eq!(
        blocked(&machine).unwrap(),
        format!(
            "could not drain machine: cannot evict pod `{}/pod`: This pod has more than one PodDisruptionBudget, which \
             the eviction subresource does not support.",
            ns.name()
        )
    );
    release(&ns, "pod").await;
    ns.wait_gone::<Machine>(machine.name()).await;
}

// D15
#[tokio::test]
async fn a_pod_that_does_not_end_is_named_and_a_refused_one_is_not_asked_for_all_the_time() {
    let ns = world().await.namespace("stuck").await.patient(Duration::from_secs(90));
    let machine = running(&ns, ns.machine("m")).await;
    hold(&ns, &machine, "kept").await;
    bind(&ns, &machine, "stuck", |pod| pod["metadata"]["finalizers"] = json!(["e2e.test/held"])).await;
    ns.wait::<Pod>("stuck", |pod| pod_phase(pod) == "Running").await;
    ns.delete::<Machine>(machine.name()).await;
    let late = format!("pod `{}/stuck` has not ended yet", ns.name());
    let is_late = |machine: &Machine| blocked(machine).is_some_and(|text| text.contains(&late));
    let machine = ns.wait_machine(machine.name(), is_late).await;
    let text = blocked(&machine).unwrap();
    assert!(text.contains(&format!("disruption budget `{}/kept`", ns.name())), "{text}");

    let refused = refusals(&ns, "pods", "eviction").remove("kept").expect("it was refused");
    assert!((2..6).contains(&refused.len()), "{} times in twenty seconds", refused.len());
    for pair in refused.windows(2) {
        let gap_s = pair[1].received.duration_since(pair[0].received).as_secs_f64();
        assert!(gap_s > 4.9, "{gap_s} s");
    }
    ns.patch::<Pod>("stuck", json!({"metadata": {"finalizers": null}})).await;
    ns.patch::<PodDisruptionBudget>("kept", json!({"spec": {"minAvailable": 0}})).await;
    ns.wait_gone::<Machine>(machine.name()).await;
}

// D15: through a crash.
#[tokio::test]
async fn a_drain_that_waits_outlives_a_crash_and_still_says_since_when() {
    let world = World::own(Options::default()).await;
    let ns = world.namespace("crash").await;
    let machines = ns.record::<Machine>().await;
    let machine = running(&ns, ns.machine("m")).await;
    let later = running(&ns, ns.machine("later")).await;
    hold(&ns, &machine, "held").await;
    hold(&ns, &later, "later").await;
    ns.delete::<Machine>(machine.name()).await;
    let before = wait_blocked(&ns, &machine).await;
    world.kill_controllers();
    world.start_controllers(&[]);
    // What the new process was refused first is told first.
    ns.delete::<Machine>(later.name()).await;
    wait_blocked(&ns, &later).await;
    let after = ns.get::<Machine>(machine.name()).await;
    let drained = |machine: &Machine| machine.status.conditions.find(condition::DRAINED).cloned();
    assert_eq!(drained(&after), drained(&before));

    release(&ns, "held").await;
    ns.wait_gone::<Machine>(machine.name()).await;
    let said = said(&machines, &machine).await;
    let before = drained(&before).unwrap();
    let same: Vec<_> = said.iter().filter(|one| one.same_state(&before)).collect();
    assert_eq!(same, [&before]);
    assert!(said.last().unwrap().is_true());
    assert!(blocked(&ns.get::<Machine>(later.name()).await).is_some(), "the other one waits for its own");
    release(&ns, "later").await;
    ns.wait_gone::<Machine>(later.name()).await;
}
