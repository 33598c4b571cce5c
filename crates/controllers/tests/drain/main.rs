//! The drain shell against a server that evicts, refuses and watches.

mod server;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use kube::runtime::watcher::Event;
use mapi_api::{Conditions, Machine, Timestamp};
use mapi_cloud::Clouds;
use mapi_controllers::context::{Caches, Context};
use mapi_controllers::{drain, metrics::Metrics};
use mapi_runtime::CancellationToken;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::store::Store;
use mapi_runtime::writes::Writer;
use serde_json::json;
use tokio::time::Instant;

use server::{State, client};

/// The wall clock of the paused runtime.
struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_750_000_000).expect("in range") + self.0.elapsed()
    }
}

struct World {
    state: Arc<Mutex<State>>,
    machines: Store<Machine>,
}

impl World {
    /// Machines that are being deleted, each with its Node of the same name and one pod on it, with a change to it all.
    async fn start(names: &[&str], change: impl FnOnce(&mut State)) -> Self {
        let clock = Paused(Instant::now());
        let mut state = State::of(names, &clock.now().to_string());
        change(&mut state);
        let state = Arc::new(Mutex::new(state));
        let Caches { machines, sets, checks, nodes } = Caches::default();
        let writer = Writer::new(client(Arc::clone(&state), machines.clone()));
        let shared: Arc<dyn Clock> = Arc::new(clock);
        let (recorder, scribe) = Recorder::new(writer.clone(), "test".into(), Arc::clone(&shared));
        tokio::spawn(scribe);
        let context = Arc::new(Context {
            machines: machines.clone(),
            sets,
            checks,
            nodes,
            writer,
            recorder,
            clock: shared,
            clouds: Clouds::default(),
            migration: false,
            metrics: Metrics::default(),
            stop: CancellationToken::new(),
            namespace: None,
            concurrency: 4,
        });
        drain::start(&context);
        let world = Self { state, machines };
        world.machines.handle(Event::Init);
        for name in names {
            world.machines.handle(Event::InitApply(world.machine(name).into()));
        }
        world.machines.handle(Event::InitDone);
        world.pass(1).await;
        world
    }

    /// Lets time pass, and everybody work who has something to do.
    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    fn state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().expect("no test panicked"))
    }

    fn machine(&self, name: &str) -> Machine {
        self.state(|state| serde_json::from_value(state.machines[name].clone()).expect("a machine"))
    }

    fn drained(&self, name: &str) -> String {
        let machine = self.machine(name);
        let condition = machine.status.conditions.find("Drained");
        condition.map_or_else(|| "none".into(), |c| format!("{} {}", c.status.0, c.message))
    }

    fn evictions(&self) -> usize {
        self.state(|state| state.evictions.len())
    }

    /// Watches that somebody still reads.
    fn open(&self) -> usize {
        self.state(|state| state.watches.iter().filter(|(_, watch)| !watch.is_closed()).count())
    }

    fn cordoned(&self) -> Vec<String> {
        self.state(|state| {
            let cordoned = state.nodes.iter().filter(|(_, node)| node["spec"]["unschedulable"] == true);
            cordoned.map(|(name, _)| name.clone()).collect()
        })
    }
}

// D10
#[tokio::test(start_paused = true)]
async fn a_node_is_cordoned_emptied_and_said_to_be_drained_and_its_watch_ends() {
    let world = World::start(&["a"], |_| {}).await;
    assert_eq!(world.cordoned(), ["a"]);
    assert_eq!(world.evictions(), 1);
    assert_eq!(world.drained("a"), "True Drain finished successfully");
    assert_eq!(world.open(), 0);
}

// D10
#[tokio::test(start_paused = true)]
async fn many_nodes_are_drained_at_once() {
    let names: Vec<String> = (0..20).map(|i| format!("n{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = World::start(&names, |_| {}).await;
    assert!(names.iter().all(|name| world.drained(name) == "True Drain finished successfully"), "item 28");
    assert_eq!((world.evictions(), world.open()), (20, 0));
}

// D15
#[tokio::test(start_paused = true)]
async fn a_blocked_drain_is_told_within_ten_seconds_and_goes_on_when_the_budget_changes() {
    let world = World::start(&["a"], |state| state.is_allowed = false).await;
    assert_eq!((world.evictions(), world.drained("a").as_str()), (1, "none"));
    world.pass(9).await;
    assert_eq!(
        world.drained("a"),
        "False could not drain machine: disruption budget `app/web` does not allow the eviction of pod `app/pod-a`"
    );
    world.pass(600).await;
    let tries = world.evictions();
    assert!((10..20).contains(&tries), "item 2: {tries} evictions in ten minutes");
    assert_eq!(world.open(), 2, "its pods and the budgets");

    world.state(|state| {
        state.is_allowed = true;
        state.version += 1;
        let budget = state.budget();
        state.tell("/poddisruptionbudgets", "MODIFIED", budget);
    });
    world.pass(1).await;
    assert_eq!(world.drained("a"), "True Drain finished successfully", "item 28");
    assert_eq!(world.evictions(), tries + 1);
    assert_eq!(world.open(), 0);
}

// D13
#[tokio::test(start_paused = true)]
async fn two_control_plane_nodes_are_never_drained_together_even_if_both_begin_at_once() {
    let world = World::start(&["a", "b"], |state| {
        state.is_allowed = false;
        for node in state.nodes.values_mut() {
            node["metadata"]["labels"] = json!({"node-role.kubernetes.io/master": ""});
        }
    })
    .await;
    assert_eq!(world.cordoned().len(), 1);
    world.pass(120).await;
    assert_eq!(world.cordoned().len(), 1, "the other waits");

    let first = world.cordoned().remove(0);
    world.state(|state| state.is_allowed = true);
    world.pass(61).await;
    assert_eq!(world.drained(&first), "True Drain finished successfully");
    assert_eq!(world.cordoned(), std::slice::from_ref(&first), "its node is still there");
    let gone = world.machine(&first);
    world.state(|state| state.nodes.remove(&first));
    world.machines.handle(Event::Delete(gone.into()));
    world.pass(21).await;
    assert_eq!(world.cordoned().len(), 1);
    assert_ne!(world.cordoned(), [first]);
}

// D09
#[tokio::test(start_paused = true)]
async fn a_machine_that_goes_meanwhile_takes_its_watches_along() {
    let world = World::start(&["a"], |state| state.is_allowed = false).await;
    world.pass(10).await;
    assert_eq!(world.open(), 2);
    world.machines.handle(Event::Delete(world.machine("a").into()));
    world.pass(1).await;
    let tries = world.evictions();
    assert_eq!(world.open(), 0);
    world.pass(600).await;
    assert_eq!(world.evictions(), tries);
}

#[tokio::test(start_paused = true)]
async fn an_empty_node_needs_one_list_and_no_watch() {
    let world = World::start(&["a"], |_| {}).await;
    world.state(|state| {
        state.lists = 0;
        state.watches.clear();
        state.version += 100;
        let machine = state.machines.get_mut("a").expect("it is there");
        machine["status"]["conditions"] = json!([]);
        machine["metadata"]["resourceVersion"] = state.version.to_string().into();
    });
    world.machines.handle(Event::Apply(world.machine("a").into()));
    world.pass(1).await;
    assert_eq!(world.drained("a"), "True Drain finished successfully");
    assert_eq!(world.state(|state| (state.lists, state.watches.len())), (1, 0));
}

// D15, D16, D19: and what the server says is not said twice.
#[tokio::test(start_paused = true)]
async fn whatever_the_server_forbids_is_told_once_with_the_object_that_it_is_about() {
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "d", "controller": true}]);
    let rows = [
        (Method::GET, "/nodes/a", "unable to get node `a`"),
        (Method::PATCH, "/nodes/a", "unable to cordon node `a`"),
        (Method::GET, "/nodes", "unable to list control-plane nodes"),
        (Method::GET, "/pods", "unable to list the pods of node `a`"),
        (Method::GET, "/daemonsets/ds", "unable to get daemon set `app/ds`"),
        (Method::POST, "/eviction", "cannot evict pod `app/pod-a`"),
    ];
    for (method, end, what) in rows {
        let world = World::start(&["a"], |state| {
            if end == "/nodes" {
                let node = state.nodes.get_mut("a").expect("it is there");
                node["metadata"]["labels"] = json!({"node-role.kubernetes.io/master": ""});
            }
            if end == "/daemonsets/ds" {
                state.pods.get_mut("pod-a").expect("it is there")["metadata"]["ownerReferences"] =
                    owner.clone();
            }
            state.forbidden = Some((method, end));
        })
        .await;
        world.pass(9).await;
        let expected = format!("False could not drain machine: {what}: you may not");
        assert_eq!(world.drained("a"), expected, "{end}");
        world.state(|state| state.forbidden = None);
        world.pass(61).await;
        assert_eq!(world.drained("a"), "True Drain finished successfully", "{end}");
    }
}
