//! What a user types works as with every other kind.

use e2e::{Answer, Machine, MachineSet, Ns, Object, Options, World};

async fn world() -> World {
    World::shared(Options::default()).await
}

/// A namespace with a set of two running machines, and the set's name.
async fn two_machines(claim: &str) -> (Ns, String) {
    let ns = world().await.namespace(claim).await;
    let set = ns.machine_set("workers").replicas(2).zone("sim-region-b").create().await;
    ns.wait_running(2).await;
    (ns, set.name().to_owned())
}

/// The cell of a table as kubectl prints it. No cell of ours is empty or has spaces.
fn cell<'a>(answer: &'a Answer, row: &str, column: &str) -> &'a str {
    let table = answer.table();
    let place = table[0].iter().position(|word| *word == column);
    let place = place.unwrap_or_else(|| panic!("no column `{column}`:\n{}", answer.stdout));
    let line = table.iter().find(|line| line.first() == Some(&row));
    line.unwrap_or_else(|| panic!("no row `{row}`:\n{}", answer.stdout))[place]
}

#[tokio::test]
async fn get_machines_shows_phase_place_node_and_identity() {
    let (ns, _) = two_machines("get-machines").await;
    let machine = ns.wait_running(2).await.remove(0);
    let answer = ns.kubectl(&["get", "machines", "-o", "wide"]).await;
    let columns = ["NAME", "PHASE", "TYPE", "REGION", "ZONE", "AGE", "NODE", "PROVIDERID", "STATE"];
    assert_eq!(answer.table()[0], columns);
    for (column, value) in [
        ("PHASE", "Running"),
        ("TYPE", "sim.medium"),
        ("REGION", "sim-region"),
        ("ZONE", "sim-region-b"),
        ("NODE", machine.node_name().unwrap()),
        ("PROVIDERID", machine.provider_id().unwrap()),
        ("STATE", "Running"),
    ] {
        assert_eq!(cell(&answer, machine.name(), column), value, "column {column}");
    }
}

#[tokio::test]
async fn get_machinesets_and_health_checks_show_their_counts() {
    let (ns, set) = two_machines("get-sets").await;
    let check =
        ns.health_check("check").unhealthy("Ready", "Unknown", "300s").max_unhealthy("40%").create().await;
    ns.wait_set(&set, |set| set.status.available_replicas == Some(2)).await;
    ns.wait_check(check.name(), |check| check.status.current_healthy == Some(2)).await;

    let sets = ns.kubectl(&["get", "machinesets", "-o", "wide"]).await;
    assert_eq!(sets.table()[0], ["NAME", "DESIRED", "CURRENT", "READY", "AVAILABLE", "AGE"]);
    assert_eq!(sets.table()[1][..5], [set.as_str(), "2", "2", "2", "2"]);

    let checks = ns.kubectl(&["get", "mhc", "-o", "wide"]).await;
    assert_eq!(checks.table()[0], ["NAME", "MAXUNHEALTHY", "EXPECTEDMACHINES", "CURRENTHEALTHY"]);
    assert_eq!(checks.table()[1], [check.name(), "40%", "2", "2"]);
}

#[tokio::test]
async fn describe_shows_status_conditions_and_events() {
    let (ns, _) = two_machines("describe").await;
    let machine = ns.wait_running(2).await.remove(0);
    ns.wait_event(machine.name(), "Create").await;
    let answer = ns.kubectl(&["describe", "machine", machine.name()]).await;
    let words: Vec<Vec<&str>> = answer.table();
    for line in [
        vec!["Phase:", "Running"],
        vec!["Provider", "ID:", machine.provider_id().unwrap()],
        vec!["Type:", "InstanceExists"],
        vec!["Events:"],
    ] {
        assert!(words.contains(&line), "no line {line:?} in\n{}", answer.stdout);
    }
    let created = words.iter().any(|line| line.starts_with(&["Normal", "Create"]));
    assert!(created, "no event `Create` in\n{}", answer.stdout);
}

#[tokio::test]
async fn scale_and_wait_follow_the_set() {
    let (ns, set) = two_machines("scale").await;
    let set = format!("machineset/{set}");
    ns.kubectl(&["scale", &set, "--replicas=3"]).await;
    ns.kubectl(&["wait", "--for=jsonpath={.status.readyReplicas}=3", &set, "--timeout=60s"]).await;
    ns.kubectl(&["wait", "--for=jsonpath={.status.phase}=Running", "machines", "--all", "--timeout=60s"])
        .await;
    assert_eq!(ns.list::<Machine>().await.len(), 3);

    ns.kubectl(&["scale", &set, "--replicas=1"]).await;
    ns.kubectl(&["wait", "--for=jsonpath={.status.replicas}=1", &set, "--timeout=60s"]).await;
    ns.wait_running(1).await;
}

#[tokio::test]
async fn deleting_in_the_foreground_returns_when_the_machines_are_gone() {
    let (ns, set) = two_machines("foreground").await;
    let answer = ns.kubectl(&["delete", "machineset", &set, "--cascade=foreground", "--timeout=60s"]).await;
    assert!(answer.stdout.contains("deleted"), "{}", answer.stdout);
    assert_eq!(ns.list::<Machine>().await.len(), 0);
    assert_eq!(ns.list::<MachineSet>().await.len(), 0);
    ns.wait_nothing_left().await;
}

#[tokio::test]
async fn explain_tells_what_the_fields_of_each_kind_are_for() {
    let world = world().await;
    for (path, words) in [
        ("machine", &["becomes a Node of the cluster", "spec", "status"][..]),
        ("machine.spec", &["providerSpec", "lifecycleHooks", "What the cloud shall make"]),
        ("machine.spec.lifecycleHooks", &["preDrain", "the machine's Node is not drained"]),
        ("machine.spec.taints", &["effect", "Key of the taint"]),
        ("machine.status", &["nodeRef", "Provisioning, Provisioned, Running, Deleting or Failed"]),
        ("machineset.spec", &["replicas", "deletePolicy", "Random, the default, Newest or Oldest"]),
        ("mhc.spec", &["maxUnhealthy", "nodeStartupTimeout", "How many of the selected Machines"]),
        ("mhc.spec.unhealthyConditions", &["timeout", "How long it may last"]),
    ] {
        let answer = world.kubectl(&["explain", path]).await;
        // The text is wrapped and indented for the terminal.
        let text = answer.table().concat().join(" ");
        for word in words {
            assert!(
                text.contains(word),
                "`kubectl explain {path}` does not say `{word}`:\n{}",
                answer.stdout
            );
        }
    }
}
