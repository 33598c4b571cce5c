//! A world of one Machine: rounds of the controller are run on it, patches change it, and rows assert its state.

mod creating;
mod deleting;
mod exhaustive;
mod failing;
mod migrating;
mod validating;
mod writing;

use std::time::Duration;

use mapi_api::event::Event;
use mapi_api::machine::Address;
use mapi_api::{Condition, Conditions, Machine, Node, Timestamp};
use mapi_cloud::{Activity, Answer, CloudError, Failure, Gate, Instance, Kind, Sighting, Want};
use serde_json::{Value, json};

use super::{Decision, Facts, Memory, Serving, decide, settle};
use crate::{Action, Measure, Plan, Requeue, Sub};

/// 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(START + second).expect("in range")
}

fn seconds(seconds: u64) -> Requeue {
    Requeue::After(Duration::from_secs(seconds))
}

/// What happened in one round.
#[derive(Debug, Default)]
struct Round {
    asked: Option<Want>,
    requeue: Requeue,
    gates: Vec<&'static str>,
    events: Vec<Event>,
    measures: Vec<Measure>,
    /// `main`, `status`, `delete node`, in order.
    writes: Vec<&'static str>,
}

impl Round {
    fn reasons(&self) -> Vec<&'static str> {
        self.events.iter().map(|e| e.reason).collect()
    }
}

struct World {
    machine: Value,
    node: Option<Value>,
    serving: Serving,
    memory: Memory,
    is_gate_on: bool,
    now: Timestamp,
}

impl World {
    /// A Machine with label, provider spec and finalizer, and what the row adds to it.
    fn new(change: Value) -> Self {
        let mut machine = json!({
            "metadata": {
                "namespace": "ns", "name": "m", "uid": "u", "resourceVersion": "1", "generation": 1,
                "creationTimestamp": at(0).to_string(),
                "finalizers": ["machine.machine.openshift.io"],
                "labels": {"machine.openshift.io/cluster-api-cluster": "c"},
            },
            "spec": {"providerSpec": {"value": {"apiVersion": "g/v1", "kind": "K"}}},
            "status": {},
        });
        json_patch::merge(&mut machine, &change);
        Self {
            machine,
            node: None,
            serving: Serving::By { settle: Duration::from_secs(5) },
            memory: Memory::default(),
            is_gate_on: false,
            now: at(100),
        }
    }

    /// A Machine that was looked at, in phase Provisioning.
    fn provisioning(change: Value) -> Self {
        let mut world = Self::new(json!({}));
        world.round(absent());
        json_patch::merge(&mut world.machine, &change);
        world
    }

    /// A drained Machine that is being deleted since now.
    fn deleting(change: Value) -> Self {
        let mut world = Self::new(change);
        world.mark();
        world.drained();
        world
    }

    fn mark(&mut self) {
        self.machine["metadata"]["deletionTimestamp"] = self.now.to_string().into();
    }

    fn drained(&mut self) {
        self.put_condition(
            json!({"type": "Drained", "status": "True", "message": "Drain finished successfully"}),
        );
    }

    fn put_condition(&mut self, condition: Value) {
        let conditions = &mut self.machine["status"]["conditions"];
        match conditions.as_array_mut() {
            Some(list) => list.push(condition),
            None => *conditions = json!([condition]),
        }
    }

    fn pass(&mut self, second: i64) -> &mut Self {
        self.now += jiff::SignedDuration::from_secs(second);
        self
    }

    fn parsed(&self) -> Machine {
        serde_json::from_value(self.machine.clone()).expect("a machine")
    }

    /// One round of the controller, in which the cloud would answer this.
    fn round(&mut self, answer: Answer) -> Round {
        let (round, failed) = self.round_until(answer, usize::MAX);
        assert!(!failed);
        round
    }

    /// One round whose write number `allowed` (counted from 0) fails. Tells whether it came to that.
    fn round_until(&mut self, answer: Answer, allowed: usize) -> (Round, bool) {
        let machine = self.parsed();
        let node: Option<Node> = self.node.clone().map(|node| serde_json::from_value(node).expect("a node"));
        let memory = self.memory.clone();
        let facts = Facts {
            machine: &machine,
            serving: &self.serving,
            node: node.as_ref(),
            memory: &memory,
            is_gate_on: self.is_gate_on,
            now: self.now,
        };
        let decision = decide(&facts);
        assert_eq!(decision, decide(&facts), "I23: the same facts give the same decision");
        match decision {
            Decision::Done(plan) => self.run(plan, None, allowed),
            Decision::Ask(want) => {
                let plan = settle(&facts, &answer);
                let after = Memory::after(&facts, want, &answer, self.now);
                let (round, failed) = self.run(plan, Some(want), allowed);
                self.memory = if failed { after.doubted() } else { after };
                (round, failed)
            }
        }
    }

    fn run(&mut self, plan: Plan, asked: Option<Want>, allowed: usize) -> (Round, bool) {
        let Plan { actions, requeue, gates } = plan;
        let gates = gates.into_iter().map(|gate| gate.reason).collect();
        let mut round = Round { asked, requeue, gates, ..Round::default() };
        for action in actions {
            match action {
                Action::Emit { event, .. } => round.events.push(event),
                Action::Measure(measure) => round.measures.push(measure),
                Action::Patch { .. } | Action::Delete(_) if round.writes.len() == allowed => {
                    return (round, true);
                }
                Action::Patch { target, sub, patch } => {
                    assert!(patch["metadata"].get("resourceVersion").is_none());
                    assert_eq!(target.uid, "u");
                    let before = self.machine.clone();
                    json_patch::merge(&mut self.machine, &patch);
                    assert_ne!(before, self.machine, "item 35: no patch without a change: {patch}");
                    if let Some(generation) = self.machine["metadata"]["generation"].as_i64()
                        && before["spec"] != self.machine["spec"]
                    {
                        self.machine["metadata"]["generation"] = (generation + 1).into();
                    }
                    round.writes.push(match sub {
                        Sub::Main => "main",
                        Sub::Status => "status",
                    });
                }
                Action::Delete(target) => {
                    assert_eq!(target.uid, self.node.as_ref().expect("a node")["metadata"]["uid"]);
                    self.node = None;
                    round.writes.push("delete node");
                }
                other => panic!("not an action of this controller: {other:?}"),
            }
        }
        (round, false)
    }

    fn phase(&self) -> String {
        self.parsed().phase().into()
    }

    /// `status severity reason message` of a condition.
    fn condition(&self, type_: &str) -> String {
        let machine = self.parsed();
        let Some(Condition { status, severity, reason, message, .. }) = machine.status.conditions.find(type_)
        else {
            return "none".into();
        };
        [&*status.0, severity, reason, message]
            .into_iter()
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn error(&self) -> (Option<String>, Option<String>) {
        let status = self.parsed().status;
        (status.error_reason, status.error_message)
    }

    fn has_finalizer(&self) -> bool {
        self.finalizers().iter().any(|f| f == "machine.machine.openshift.io")
    }

    fn finalizers(&self) -> Vec<String> {
        self.parsed().metadata.finalizers.unwrap_or_default()
    }
}

fn answer(sighting: Sighting) -> Answer {
    Answer { sighting, taken: vec![], failure: None, gate: None, provider_status: None }
}

fn absent() -> Answer {
    answer(Sighting::Absent)
}

fn unknown() -> Answer {
    answer(Sighting::Unknown)
}

fn present(instance: Instance) -> Answer {
    answer(Sighting::Present(Box::new(instance)))
}

/// An instance with an id only.
fn booting() -> Instance {
    Instance { provider_id: Some("sim:///z/i".into()), state: "Pending".into(), ..Instance::default() }
}

/// An instance with an id and an address.
fn up() -> Instance {
    Instance {
        provider_id: Some("sim:///z/i".into()),
        addresses: vec![Address::new("InternalIP", "10.0.0.1")],
        state: "Running".into(),
        region: "r".into(),
        zone: "z".into(),
        instance_type: "t".into(),
        ..Instance::default()
    }
}

/// What [`up`] leaves on a Machine.
fn recorded() -> Value {
    json!({
        "metadata": {
            "labels": {
                "machine.openshift.io/region": "r", "machine.openshift.io/zone": "z",
                "machine.openshift.io/instance-type": "t",
            },
            "annotations": {"machine.openshift.io/instance-state": "Running"},
        },
        "spec": {"providerID": "sim:///z/i"},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    })
}

/// The same, linked to a Node.
fn linked() -> Value {
    let mut machine = recorded();
    machine["status"]["nodeRef"] = json!({"kind": "Node", "name": "n", "uid": "nu"});
    machine
}

fn node(uid: &str, provider_id: &str) -> Option<Value> {
    Some(
        json!({"metadata": {"name": "n", "uid": uid, "resourceVersion": "1"}, "spec": {"providerID": provider_id}}),
    )
}

fn failed(answer: Answer, activity: Activity, error: CloudError) -> Answer {
    Answer { failure: Some(Failure { activity, error }), ..answer }
}

fn error(kind: Kind, message: &str) -> CloudError {
    CloudError::new(kind, "launch instance", message)
}

fn taken(activities: &[Activity], answer: Answer) -> Answer {
    Answer { taken: activities.to_vec(), ..answer }
}

fn gated(again: u64, answer: Answer) -> Answer {
    let gate = Gate {
        reason: "WaitingForAddress",
        message: "no address yet".into(),
        again: Duration::from_secs(again),
    };
    Answer { gate: Some(gate), ..answer }
}
