//! Many machines, undisturbed and with everything of ours being killed on the way.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use e2e::{
    Chance, Change, Machine, MachineSet, Node, Ns, Object, Options, Recording, SimulatedInstance, World,
};
use serde_json::json;

/// The most machines in these tests.
const MANY: usize = 200;
/// What is left after the first half of the way down.
const FEW: usize = 20;
/// A kill comes this long after the one before at the latest, whatever happens. Long enough for a start to get to work.
const LATEST_MS: u64 = 2_500;
/// All of this has to be done on a machine with two cores that others use too.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test]
async fn two_hundred_machines_come_and_go_and_leave_nothing() {
    let world = World::own(Options::default()).await;
    let ns = world.namespace("many").await.patient(PATIENCE);
    let ledger = ns.record::<SimulatedInstance>().await;
    let machines = ns.record::<Machine>().await;
    let set = ns.machine_set("workers").create().await;

    scale(&ns, &set, MANY).await;
    check_nodes(&ns, MANY).await;
    scale(&ns, &set, FEW).await;
    check_nodes(&ns, FEW).await;
    scale(&ns, &set, 0).await;
    ns.wait_nothing_left().await;

    check_ledger(&ledger).await;
    let made: BTreeSet<String> =
        machines.changes().iter().map(|change| change.object().uid().to_owned()).collect();
    assert_eq!(made.len(), MANY, "each machine was made once, and none in vain");
}

#[tokio::test]
async fn kills_at_any_moment_make_no_second_instance_and_leave_nothing() {
    let mut chance = Chance::from_env();
    println!("to repeat this run: E2E_SEED={}", chance.seed());
    let world = World::own(Options::default()).await;
    let ns = world.namespace("killed").await.patient(PATIENCE);
    let ledger = ns.record::<SimulatedInstance>().await;
    let machines = ns.record::<Machine>().await;
    let set = ns.machine_set("workers").create().await;
    let mut kills = Kills::plan(&mut chance);

    // How many kills, and how far apart at most: what is to be done must be more than what is waited for, so that all
    // kills fall into the work. A machine is changed about 7 times on its way up and 4 times on its way down.
    for (replicas, count, apart) in [(MANY, 16, 80), (FEW, 8, 60), (0, 6, 10)] {
        resize(&ns, &set, replicas).await;
        kills.strike(&world, &machines, &mut chance, Stage { count, apart }).await;
        settled(&ns, &set, replicas).await;
    }
    ns.wait_nothing_left().await;

    assert_eq!((kills.done, kills.of_cloud.len()), (30, 10));
    check_ledger(&ledger).await;
}

/// When what is killed.
struct Kills {
    done: usize,
    /// The kills of the controllers that are kills of the simulated cloud too.
    of_cloud: BTreeSet<usize>,
}

/// A number of kills while one thing is done.
struct Stage {
    count: usize,
    /// A kill comes after this many further changes of Machines at the latest.
    apart: u64,
}

impl Kills {
    fn plan(chance: &mut Chance) -> Kills {
        Kills { done: 0, of_cloud: chance.some_of(30, 10).into_iter().collect() }
    }

    async fn strike(
        &mut self,
        world: &World,
        machines: &Recording<Machine>,
        chance: &mut Chance,
        Stage { count, apart }: Stage,
    ) {
        for _ in 0..count {
            let moment = machines.len() + 1 + chance.below(apart) as usize;
            let latest = Duration::from_millis(chance.below(LATEST_MS));
            let came = machines.until(|changes| changes.len() >= moment);
            let is_after_changes = tokio::time::timeout(latest, came).await.is_ok();
            let is_of_cloud = self.of_cloud.contains(&self.done);
            println!("kill {} (of the cloud: {is_of_cloud}, after changes: {is_after_changes})", self.done);
            world.kill_controllers();
            if is_of_cloud {
                world.kill_cloud();
                world.start_cloud();
            }
            world.start_controllers(&[]);
            self.done += 1;
        }
    }
}

async fn scale(ns: &Ns, set: &MachineSet, replicas: usize) {
    resize(ns, set, replicas).await;
    settled(ns, set, replicas).await;
}

async fn resize(ns: &Ns, set: &MachineSet, replicas: usize) {
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": replicas}})).await;
}

/// Waits until as many machines are there, all Running, and the set says so.
async fn settled(ns: &Ns, set: &MachineSet, replicas: usize) {
    let began = Instant::now();
    ns.wait_running(replicas).await;
    let count = i32::try_from(replicas).expect("a small number");
    ns.wait_set(set.name(), |set| {
        let status = &set.status;
        status.replicas == Some(count) && status.ready_replicas.unwrap_or_default() == count
    })
    .await;
    println!("{replicas} machines after {:.1} s", began.elapsed().as_secs_f64());
}

/// Every machine has a Node of its own, and no Node is without a machine.
async fn check_nodes(ns: &Ns, count: usize) {
    let nodes = ns.wait_nodes(|nodes| nodes.len() == count && nodes.iter().all(|node| node.is_ready())).await;
    let machines = ns.list::<Machine>().await;
    let by_name: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.name(), node)).collect();
    let mut used = BTreeSet::new();
    for machine in &machines {
        let name = machine.node_name().unwrap_or_else(|| panic!("`{}` has no nodeRef", machine.name()));
        assert!(used.insert(name), "two machines have the Node `{name}`");
        let node = by_name.get(name).unwrap_or_else(|| panic!("there is no Node `{name}`"));
        assert!(machine.provider_id().is_some(), "`{}` has no providerID", machine.name());
        assert_eq!(machine.provider_id(), node.provider_id(), "`{}` and its Node", machine.name());
    }
    assert_eq!(used.len(), count);
}

/// I1: never two instances for a Machine at once. Stronger here: nor one after the other, because no instance of these
/// tests was lost at the cloud.
async fn check_ledger(ledger: &Recording<SimulatedInstance>) {
    let mut live: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut ever: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let is_over = |changes: &[Change<SimulatedInstance>]| {
        let gone = changes.iter().filter(|change| change.now().is_none()).count();
        let ever: BTreeSet<&str> = changes.iter().map(|change| change.object().uid()).collect();
        gone == ever.len()
    };
    for change in ledger.until(is_over).await {
        let instance = change.object();
        let machine = instance.spec.machine_ref.uid.clone();
        assert!(!machine.is_empty(), "instance `{}` names no Machine", instance.name());
        let ours = live.entry(machine.clone()).or_default();
        match change {
            Change::Now(ref instance) => drop(ours.insert(instance.uid().to_owned())),
            Change::Gone(ref instance) => drop(ours.remove(instance.uid())),
        }
        assert!(ours.len() <= 1, "Machine {machine} has {} live instances", ours.len());
        ever.entry(machine).or_default().insert(change.object().uid().to_owned());
    }
    assert!(!ever.is_empty(), "the ledger has seen no instance");
    for (machine, instances) in ever {
        assert_eq!(instances.len(), 1, "Machine {machine} had instances one after the other");
    }
}
