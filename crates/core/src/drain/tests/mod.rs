//! A world of one Machine, its Node and the Node's pods: rounds of the controller are run on it against a server that
//! answers evictions as the row says.

mod evicting;
mod gating;
mod selecting;

use mapi_api::{Key, Pod, PodDisruptionBudget};
use serde_json::Value;

use super::*;
use crate::Requeue;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).expect("in range")
}

fn seconds(seconds: u64) -> Requeue {
    Requeue::After(Duration::from_secs(seconds))
}

const BUDGET: &str = "Cannot evict pod as it would violate the pod's disruption budget. The disruption budget web needs 2 \
                      healthy pods and has 2 currently";

fn blocked_by_budget() -> Outcome {
    Outcome::Blocked { message: BUDGET.into(), retry_after: None }
}

struct World {
    machine: Value,
    node: Look<Value>,
    peers: Result<Vec<Peer>, String>,
    pods: Vec<Value>,
    daemon_set: DaemonSet,
    is_gate_on: bool,
    attempts: Attempts,
    memory: Memory,
    now: Timestamp,
    /// What evictions of a pod are answered, by name; accepted if none is given.
    answers: Vec<(&'static str, Outcome)>,
    /// Whether pods cannot be listed.
    list_error: Option<String>,
    /// Whether a patch of the Node is refused.
    cordon_error: Option<String>,
    /// Whether a patch of the Machine is refused.
    is_status_refused: bool,
}

/// What happened in one round.
#[derive(Debug, Default)]
struct Round {
    requeue: Requeue,
    events: Vec<String>,
    evicted: Vec<String>,
    grace_s: Vec<Option<i64>>,
    wrote_status: bool,
    failed: bool,
}

impl World {
    fn new(change: Value) -> Self {
        let mut machine = json!({
            "metadata": {
                "namespace": "ns", "name": "m", "uid": "u", "resourceVersion": "1",
                "deletionTimestamp": at(0).to_string(),
            },
            "status": {"phase": "Deleting", "nodeRef": {"name": "n", "uid": "nu"}, "conditions": []},
        });
        json_patch::merge(&mut machine, &change);
        Self {
            machine,
            node: Look::Found(json!({
                "metadata": {"name": "n", "uid": "nu", "resourceVersion": "1"},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]},
            })),
            peers: Ok(vec![]),
            pods: vec![],
            daemon_set: Look::Gone,
            is_gate_on: false,
            attempts: Attempts::default(),
            memory: Memory::default(),
            now: at(100),
            answers: vec![],
            list_error: None,
            cordon_error: None,
            is_status_refused: false,
        }
    }

    fn with_pods(pods: &[&str]) -> Self {
        let pods = pods.iter().map(|name| pod(name, json!({}))).collect();
        Self { pods, ..Self::new(json!({})) }
    }

    fn pass(&mut self, second: i64) -> &mut Self {
        self.now += jiff::SignedDuration::from_secs(second);
        self
    }

    /// One round: decisions until nothing more is to be looked at, as the shell makes them.
    fn round(&mut self) -> Round {
        let mut round = Round::default();
        let mut has_list = matches!(&self.node, Look::Found(node) if node["spec"]["unschedulable"] == true);
        let mut is_looking = false;
        for _ in 0..8 {
            let before = self.now;
            match self.step(is_looking, has_list, &mut round) {
                Step::Look => is_looking = true,
                Step::Cordoned => has_list = true,
                Step::Evicted => {}
                Step::End => return round,
            }
            assert_eq!(before, self.now);
        }
        panic!("a round does not end: {round:?}");
    }

    fn step(&mut self, is_looking: bool, has_list: bool, round: &mut Round) -> Step {
        let machine: Machine = serde_json::from_value(self.machine.clone()).expect("a machine");
        let node = match self.node.clone() {
            Look::Found(node) => Look::Found(serde_json::from_value::<Node>(node).expect("a node")),
            Look::Gone => Look::Gone,
            Look::Failed(error) => Look::Failed(error),
        };
        let pods: Vec<Pod> =
            self.pods.iter().map(|pod| serde_json::from_value(pod.clone()).expect("a pod")).collect();
        let attempts = self.attempts.clone();
        let facts = |pod| PodFact { pod, daemon_set: self.daemon_set.clone() };
        let scene = Scene {
            node: match &node {
                Look::Found(node) => Look::Found(node),
                Look::Gone => Look::Gone,
                Look::Failed(error) => Look::Failed(error.clone()),
            },
            peers: self.peers.clone(),
            pods: self
                .list_error
                .clone()
                .map_or(Ok(()), Err)
                .map(|()| has_list.then(|| pods.iter().map(facts).collect())),
            attempts: &attempts,
        };
        let memory = self.memory.clone();
        let facts = Facts {
            machine: &machine,
            is_gate_on: self.is_gate_on,
            memory: &memory,
            scene: is_looking.then_some(&scene),
            now: self.now,
        };
        let decision = decide(&facts);
        assert_eq!(decision, decide(&facts), "I23");
        self.memory = remember(&facts, &decision);
        match decision {
            Decision::Look(name) => {
                assert_eq!(name, "n");
                Step::Look
            }
            Decision::Done(plan) => {
                let _ = self.run(plan, round);
                Step::End
            }
            Decision::Cordon(plan) => match self.run(plan, round) {
                Ok(()) => Step::Cordoned,
                Err(error) => {
                    self.run(cordon_failed(&facts, "n", &error), round).expect("an event and a condition");
                    Step::End
                }
            },
            Decision::Evict(plan) => {
                let evictions = round.evicted.len();
                let _ = self.run(plan, round);
                if round.evicted.len() > evictions { Step::Evicted } else { Step::End }
            }
        }
    }

    fn run(&mut self, plan: Plan, round: &mut Round) -> Result<(), String> {
        round.requeue = plan.requeue;
        for action in plan.actions {
            match action {
                Action::Emit { event, .. } => round.events.push(format!("{}: {}", event.reason, event.note)),
                Action::Patch { target, patch, .. } if target.kind == Kind::Node => {
                    if let Some(error) = &self.cordon_error {
                        return Err(error.clone());
                    }
                    let Look::Found(node) = &mut self.node else { panic!("no node") };
                    json_patch::merge(node, &patch);
                }
                Action::Patch { patch, .. } => {
                    if self.is_status_refused {
                        round.failed = true;
                        return Err("conflict".into());
                    }
                    json_patch::merge(&mut self.machine, &patch);
                    round.wrote_status = true;
                }
                Action::Batch(evictions) => {
                    evictions.into_iter().for_each(|action| self.evict(action, round))
                }
                other => panic!("not an action of this controller: {other:?}"),
            }
        }
        Ok(())
    }

    fn evict(&mut self, action: Action, round: &mut Round) {
        let Action::Evict { pod, uid, grace_s } = action else { panic!("{action:?}") };
        round.evicted.push(pod.name.to_string());
        round.grace_s.push(grace_s);
        let answer = self.answers.iter().find(|(name, _)| *name == &*pod.name);
        let outcome = answer.map_or(Outcome::Accepted, |(_, outcome)| outcome.clone());
        if outcome == Outcome::Accepted {
            let marked = self.now + jiff::SignedDuration::from_secs(grace_s.unwrap_or(30));
            for value in self.pods.iter_mut().filter(|p| p["metadata"]["name"] == *pod.name) {
                value["metadata"]["deletionTimestamp"] = marked.to_string().into();
            }
        }
        self.attempts.record(&pod, &uid, outcome, self.now);
    }

    fn drained(&self) -> String {
        let machine: Machine = serde_json::from_value(self.machine.clone()).expect("a machine");
        let Some(condition) = machine.status.conditions.find(types::DRAINED) else { return "none".into() };
        let Condition { status, severity, reason, message, .. } = condition;
        let parts = [&*status.0, severity, reason, message];
        parts.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn since(&self) -> Value {
        self.machine["status"]["conditions"][0]["lastTransitionTime"].clone()
    }

    fn is_cordoned(&self) -> bool {
        matches!(&self.node, Look::Found(node) if node["spec"]["unschedulable"] == true)
    }

    fn set_node(&mut self, change: Value) {
        let Look::Found(node) = &mut self.node else { panic!("no node") };
        json_patch::merge(node, &change);
    }
}

enum Step {
    Look,
    Cordoned,
    Evicted,
    End,
}

fn pod(name: &str, change: Value) -> Value {
    let mut pod = json!({
        "metadata": {"namespace": "app", "name": name, "uid": format!("{name}-uid")},
        "spec": {"nodeName": "n"}, "status": {"phase": "Running"},
    });
    json_patch::merge(&mut pod, &change);
    pod
}

fn of_daemon_set(name: &str, phase: &str) -> Value {
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": "d", "controller": true}]);
    pod(name, json!({"metadata": {"ownerReferences": owner}, "status": {"phase": phase}}))
}

fn budget(name: &str, allowed: i64) -> PodDisruptionBudget {
    let value =
        json!({"metadata": {"namespace": "app", "name": name}, "status": {"disruptionsAllowed": allowed}});
    serde_json::from_value(value).expect("a budget")
}
