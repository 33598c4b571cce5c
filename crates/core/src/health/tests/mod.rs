//! Tables of passes: a check, its machines, and what one pass does about them.

mod external;
mod internal;
mod limits;
mod settings;
mod verdicts;

use std::collections::BTreeMap;

use mapi_api::event::EventType;
use mapi_api::{Condition, Conditions, Machine, MachineHealthCheck, Node, Object, Timestamp};
use serde_json::{Value, json};

use super::{
    Decision, Facts, Memory, NodeState, Opening, Outcome, Request, Requests, Target, Template, decide, open,
    settle,
};
use crate::{Action, Measure, Requeue, Sub};

pub(super) fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().expect("timestamp")
}

/// A time before now, as on the wire.
pub(super) fn ago(seconds: i64) -> String {
    Timestamp::from_second(now().as_second() - seconds).expect("in range").to_string()
}

/// One pass to be.
pub(super) struct World {
    pub(super) check: Value,
    targets: Vec<(Value, State)>,
    pub(super) memory: Memory,
    pub(super) requests: Result<BTreeMap<String, Request>, String>,
    pub(super) template: Template,
    pub(super) is_migration_on: bool,
    pub(super) is_fresh: bool,
}

/// The Node of a machine to be.
pub(super) enum State {
    Absent,
    Unlinked,
    Gone,
    Node(Value),
}

/// What one pass did.
pub(super) struct Seen {
    /// The actions as text.
    pub(super) lines: Vec<String>,
    pub(super) requeue: Requeue,
    pub(super) outcome: Option<Outcome>,
    /// The check as the server has it after the pass.
    pub(super) check: MachineHealthCheck,
}

/// A check that repairs nodes whose Ready is Unknown or False for 300 s, with more or other fields.
pub(super) fn check(extra: Value) -> World {
    let mut check = json!({
        "metadata": {"name": "mhc", "namespace": "ns", "uid": "uid-mhc", "resourceVersion": "7"},
        "spec": {"unhealthyConditions": [
            {"type": "Ready", "status": "Unknown", "timeout": "300s"},
            {"type": "Ready", "status": "False", "timeout": "300s"},
        ]},
    });
    merge(&mut check, extra);
    World {
        check,
        targets: vec![],
        memory: Memory::default(),
        requests: Ok(BTreeMap::new()),
        template: Template::Missing,
        is_migration_on: false,
        is_fresh: true,
    }
}

/// A Machine an hour old, owned by a set and linked to a Node of its name, with more or other fields.
pub(super) fn machine(name: &str, extra: Value) -> Value {
    let mut machine = json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "creationTimestamp": ago(3600), "labels": {"role": "worker"},
            "ownerReferences": [{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "set",
                "uid": "uid-set", "controller": true}],
        },
        "status": {"phase": "Running", "nodeRef": {"kind": "Node", "name": name, "uid": format!("uid-node-{name}")}},
    });
    merge(&mut machine, extra);
    machine
}

/// A Node whose Ready has had a status for some seconds.
pub(super) fn node(status: &str, seconds: i64) -> State {
    condition("Ready", status, seconds)
}

/// A Node with one condition.
pub(super) fn condition(type_: &str, status: &str, seconds: i64) -> State {
    State::Node(json!({"metadata": {"name": "n"}, "status": {"conditions": [
        {"type": type_, "status": status, "lastTransitionTime": ago(seconds)}]}}))
}

impl World {
    pub(super) fn with(mut self, machine: Value, state: State) -> Self {
        self.targets.push((machine, state));
        self
    }

    pub(super) fn pass(&self) -> Seen {
        let check: MachineHealthCheck = serde_json::from_value(self.check.clone()).expect("check");
        let settings = match open(&check, now()) {
            Opening::Done(plan) => return self.seen(plan.actions, plan.requeue, None),
            Opening::Examine(settings) => settings,
        };
        let machines: Vec<Machine> = self
            .targets
            .iter()
            .map(|(machine, _)| serde_json::from_value(machine.clone()).expect("machine"))
            .collect();
        let nodes: Vec<Node> = self
            .targets
            .iter()
            .map(|(_, state)| match state {
                State::Node(node) => serde_json::from_value(node.clone()).expect("node"),
                State::Absent | State::Unlinked | State::Gone => Node::default(),
            })
            .collect();
        let targets =
            machines.iter().zip(&nodes).zip(&self.targets).map(|((machine, node), (_, state))| Target {
                machine,
                node: match state {
                    State::Absent => NodeState::Absent,
                    State::Unlinked => NodeState::Unlinked,
                    State::Gone => NodeState::Gone,
                    State::Node(_) => NodeState::Found(node),
                },
                is_fresh: self.is_fresh,
            });
        let targets: Vec<Target<'_>> = targets.filter(|target| settings.covers(target.machine)).collect();
        let facts = Facts {
            check: &check,
            settings: &settings,
            targets: &targets,
            requests: match (&settings.template, &self.requests) {
                (None, _) => Requests::Unused,
                (Some(_), Ok(known)) => Requests::Known(known),
                (Some(_), Err(error)) => Requests::Unreadable(error),
            },
            memory: &self.memory,
            is_migration_on: self.is_migration_on,
            now: now(),
        };
        let outcome = match decide(&facts) {
            Decision::Done(outcome) => outcome,
            Decision::FetchTemplate(_, assessment) => settle(&facts, &assessment, &self.template),
        };
        self.seen(outcome.plan.actions.clone(), outcome.plan.requeue.clone(), Some(outcome))
    }

    fn seen(&self, actions: Vec<Action>, requeue: Requeue, outcome: Option<Outcome>) -> Seen {
        let mut stored = self.check.clone();
        let mut lines = vec![];
        for action in &actions {
            show(action, &mut lines, &mut stored);
        }
        let check = serde_json::from_value(stored).expect("check");
        Seen { lines, requeue, outcome, check }
    }
}

impl Seen {
    /// The lines that name things that people and other programs see: events, writes, counted repairs.
    pub(super) fn told(&self) -> Vec<&str> {
        let is_routine =
            |line: &str| ["covered", "short-circuit", "patch check"].iter().any(|p| line.starts_with(p));
        self.lines.iter().map(String::as_str).filter(|line| !is_routine(line)).collect()
    }

    pub(super) fn counts(&self) -> (i64, i64, i32) {
        let status = &self.check.status;
        let count = |n: Option<i64>| n.expect("is written");
        (
            count(status.expected_machines),
            count(status.current_healthy),
            status.remediations_allowed.expect("is written"),
        )
    }

    pub(super) fn condition(&self, type_: &str) -> Option<&Condition> {
        self.check.status.conditions.find(type_)
    }

    pub(super) fn has(&self, part: &str) -> bool {
        self.lines.iter().any(|line| line.contains(part))
    }

    pub(super) fn seconds(&self) -> Option<u64> {
        match &self.requeue {
            Requeue::After(delay) => Some(delay.as_secs()),
            Requeue::Never | Requeue::Backoff(_) => None,
        }
    }
}

fn show(action: &Action, lines: &mut Vec<String>, stored: &mut Value) {
    match action {
        Action::Patch { target, sub, patch } => {
            let part = if *sub == Sub::Status { "status" } else { "main" };
            if target.uid == "uid-mhc" {
                lines.push(format!("patch check {part} {patch}"));
                merge(stored, patch.clone());
            } else {
                lines.push(format!("patch {} {part} {patch}", target.key));
            }
        }
        Action::Delete(target) => lines.push(format!("delete {} {}", target.key, target.uid)),
        Action::CreateRequest { object } => lines.push(format!("create {object}")),
        Action::DeleteRequest { api_version, kind, key, uid } => {
            lines.push(format!("delete {kind}.{api_version} {key} {uid}"));
        }
        Action::Emit { reporter, event } => {
            assert_eq!(*reporter, "machinehealthcheck-controller");
            let type_ = match event.type_ {
                EventType::Normal => "Normal",
                EventType::Warning => "Warning",
            };
            let about = &event.regarding;
            lines.push(format!(
                "{type_} {} {} on {} {}: {}",
                event.reason, event.action, about.kind, about.key, event.note
            ));
        }
        Action::Measure(Measure::NodesCovered { count, .. }) => lines.push(format!("covered {count}")),
        Action::Measure(Measure::ShortCircuit { is_stopped, .. }) => {
            lines.push(format!("short-circuit {is_stopped}"));
        }
        Action::Measure(Measure::Remediated { key }) => lines.push(format!("remediated by {key}")),
        Action::Measure(Measure::ForgetHealthCheck { key }) => lines.push(format!("forget {key}")),
        Action::Batch(actions) => actions.iter().for_each(|action| show(action, lines, stored)),
        Action::Try { action, success, failure } => {
            show(action, lines, stored);
            success.iter().for_each(|action| show(action, lines, stored));
            let mut failed = vec![];
            let mut other = stored.clone();
            failure.iter().for_each(|action| show(action, &mut failed, &mut other));
            lines.extend(failed.into_iter().map(|line| format!("else {line}")));
        }
        Action::CreateMachine { .. }
        | Action::Evict { .. }
        | Action::Measure(Measure::PhaseTransition { .. } | Measure::InstanceFailed { .. }) => {
            panic!("a health check never does this: {action:?}")
        }
    }
}

/// An RFC 7386 merge.
pub(super) fn merge(value: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *value = patch;
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    let object = value.as_object_mut().expect("made so above");
    for (key, change) in patch {
        if change.is_null() {
            object.remove(&key);
        } else {
            merge(object.entry(key).or_insert(Value::Null), change);
        }
    }
}

/// A second pass over what the first one left: nothing is written twice.
pub(super) fn again(world: &World, seen: &Seen) -> Seen {
    let status = serde_json::to_value(&seen.check.status).expect("status");
    let mut check = world.check.clone();
    merge(&mut check, json!({ "status": status }));
    let memory = seen.outcome.as_ref().map_or_else(Memory::default, |outcome| outcome.memory.clone());
    World {
        check,
        memory,
        targets: world.targets.iter().map(|(machine, state)| (machine.clone(), state.copy())).collect(),
        requests: world.requests.clone(),
        template: world.template.clone(),
        is_migration_on: world.is_migration_on,
        is_fresh: world.is_fresh,
    }
    .pass()
}

impl State {
    fn copy(&self) -> Self {
        match self {
            Self::Absent => Self::Absent,
            Self::Unlinked => Self::Unlinked,
            Self::Gone => Self::Gone,
            Self::Node(node) => Self::Node(node.clone()),
        }
    }
}

// H01
#[test]
fn a_check_that_is_gone_leaves_no_metric_series() {
    let check: MachineHealthCheck = serde_json::from_value(check(json!({})).check).expect("check");
    let mut lines = vec![];
    for action in &super::forget(&check.key()).actions {
        show(action, &mut lines, &mut json!({}));
    }
    assert_eq!(lines, ["forget ns/mhc"]);
}

// H02
#[test]
fn a_paused_check_does_nothing_whatever_the_annotation_says() {
    for value in ["", "false"] {
        let paused = json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": value}}});
        let seen = check(paused).with(machine("a", json!({})), node("Unknown", 400)).pass();
        assert!(seen.lines.is_empty(), "{:?}", seen.lines);
        assert_eq!(seen.requeue, Requeue::Never);
    }
}

// H04, H08
#[test]
fn at_rest_a_pass_writes_nothing() {
    for world in [check(json!({})), check(json!({})).with(machine("a", json!({})), node("True", 10))] {
        let first = world.pass();
        assert!(first.has("patch check status"));
        let second = again(&world, &first);
        assert!(!second.has("patch"), "{:?}", second.lines);
        assert_eq!((second.told().len(), second.requeue), (0, Requeue::Never));
    }
}
