//! Tables of plans: what is decided about a set, as text.

mod counting;
mod invalid;
mod owning;
mod properties;
mod scaling;
mod shrinking;

use std::collections::BTreeMap;
use std::sync::Arc;

use mapi_api::{Machine, MachineSet, Node, Object, Timestamp};
use mapi_cloud::Findings;
use serde_json::{Value, json};

use super::{Facts, Member, Template, decide};
use crate::{Action, Kind, Plan, Requeue, Sub};

/// Noon of an ordinary day, in whole seconds.
const NOW: i64 = 1_750_000_000;
const DAY: i64 = 86_400;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

/// Facts with an owner.
struct World {
    set: MachineSet,
    owned: Vec<Member>,
    orphans: Vec<Member>,
    template: Template,
    pending: Vec<String>,
    last_error: Option<String>,
    last_status_write: Option<Timestamp>,
    is_gate_on: bool,
    entropy: u64,
    now: Timestamp,
}

impl World {
    /// A set whose status is already what it should be for `owned`, so that plans show only what is asked about.
    fn settled(spec: Value, owned: Vec<Member>) -> Self {
        let mut world = Self::new(spec, owned);
        for action in world.decide().actions {
            if let Action::Patch { target, sub: Sub::Status, patch } = action
                && target.kind == Kind::MachineSet
            {
                world.apply_status(&patch);
            }
        }
        world
    }

    /// A set `ns/s` with these spec fields over a valid default, generation 3, never reported on.
    fn new(spec: Value, owned: Vec<Member>) -> Self {
        let mut full = json!({
            "replicas": 2,
            "selector": {"matchLabels": {"set": "s"}},
            "template": {"metadata": {"labels": {"set": "s"}}, "spec": {"providerSpec": {"value": {"kind": "K"}}}},
        });
        for (field, value) in spec.as_object().expect("fields") {
            full[field] = value.clone();
        }
        let metadata = json!({"name": "s", "namespace": "ns", "uid": "set-uid", "resourceVersion": "7", "generation": 3});
        Self {
            set: serde_json::from_value(json!({"metadata": metadata, "spec": full})).expect("a set"),
            owned,
            orphans: vec![],
            template: Template::Served(Findings::default()),
            pending: vec![],
            last_error: None,
            last_status_write: None,
            is_gate_on: false,
            entropy: 42,
            now: at(NOW),
        }
    }

    fn decide(&self) -> Plan {
        decide(&Facts {
            set: &self.set,
            owned: &self.owned,
            orphans: &self.orphans,
            template: &self.template,
            pending: &self.pending,
            last_error: self.last_error.as_deref(),
            last_status_write: self.last_status_write,
            is_gate_on: self.is_gate_on,
            entropy: self.entropy,
            now: self.now,
        })
    }

    /// The plan, a line for each action.
    fn plan(&self) -> Vec<String> {
        let Plan { actions, requeue, gates: _ } = self.decide();
        let mut lines: Vec<String> = actions.iter().map(line).collect();
        match requeue {
            Requeue::Never => {}
            Requeue::After(delay) => lines.push(format!("after {delay:?}")),
            Requeue::Backoff(error) => lines.push(format!("error {error}")),
        }
        lines
    }

    /// The plan without its report.
    fn work(&self) -> Vec<String> {
        let (_, work) = super::split(self.decide());
        work.actions.iter().map(line).collect()
    }

    /// Reason and message of the condition that the plan reports.
    fn told(&self, type_: &str) -> String {
        let patch = self.report();
        let conditions = patch["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let condition = conditions.iter().find(|c| c["type"] == type_).cloned().unwrap_or_default();
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", text("status"), text("reason"), text("message"))
    }

    /// The status patch of the plan, null if it has none.
    fn report(&self) -> Value {
        let mut patch = Value::Null;
        for action in self.decide().actions {
            if let Action::Patch { target, sub: Sub::Status, patch: last } = action
                && target.kind == Kind::MachineSet
            {
                patch = last;
            }
        }
        patch
    }

    /// Lets the server store a status patch.
    fn apply_status(&mut self, patch: &Value) {
        let mut status = serde_json::to_value(&self.set.status).expect("a status");
        merge(&mut status, &patch["status"]);
        self.set.status = serde_json::from_value(status).expect("a status");
    }
}

fn merge(into: &mut Value, patch: &Value) {
    for (field, value) in patch.as_object().expect("an object") {
        match value {
            Value::Null => drop(into.as_object_mut().expect("an object").remove(field)),
            value => into[field] = value.clone(),
        }
    }
}

fn line(action: &Action) -> String {
    match action {
        Action::Patch { target, sub: Sub::Status, patch } if target.kind == Kind::MachineSet => {
            let fields = patch["status"].as_object().expect("a status patch");
            format!("status {}", fields.keys().cloned().collect::<Vec<_>>().join(" "))
        }
        Action::Patch { target, sub: _, patch } => {
            let owners = patch["metadata"]["ownerReferences"].as_array().expect("an ownership patch");
            let owners: Vec<_> = owners.iter().map(|o| o["uid"].as_str().expect("a uid")).collect();
            format!("owners of {}: {}", target.key.name, owners.join(" "))
        }
        Action::CreateMachine { key, .. } => format!("create {}", &key.name[..2]),
        Action::Delete(target) => format!("delete {} {}", target.key.name, target.uid),
        Action::Emit { event, .. } => format!("{:?} {} {}", event.type_, event.reason, event.note),
        Action::Batch(actions) => {
            let lines: Vec<_> = actions.iter().map(line).collect();
            format!("[{}]", lines.join(", "))
        }
        other => panic!("no such action belongs in a set's plan: {other:?}"),
    }
}

/// A Machine of the set: `name`, labelled and owned, without a Node; `fields` is merged over it.
fn machine(name: &str, fields: Value) -> Member {
    let owner = json!([{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "name": "s",
        "uid": "set-uid", "controller": true, "blockOwnerDeletion": true}]);
    let mut object = json!({"metadata": {"name": name, "namespace": "ns", "uid": format!("uid-{name}"),
        "resourceVersion": "1", "labels": {"set": "s"}, "ownerReferences": owner}, "spec": {}});
    for (part, value) in fields.as_object().expect("parts") {
        if object.get(part).is_none() {
            object[part] = json!({});
        }
        merge(&mut object[part], value);
    }
    Member { machine: Arc::new(serde_json::from_value(object).expect("a machine")), node: None }
}

/// An orphan.
fn orphan(name: &str, labels: Value) -> Member {
    machine(name, json!({"metadata": {"ownerReferences": null, "labels": labels}}))
}

/// A Machine with a Node whose Ready has been `status` since `since`.
fn with_node(name: &str, status: &str, since: i64) -> Member {
    let node: Node = serde_json::from_value(json!({"metadata": {"name": format!("node-{name}")}, "status": {
        "conditions": [{"type": "Ready", "status": status, "lastTransitionTime": at(since).to_string()}]}}))
    .expect("a node");
    let node_ref = json!({"status": {"nodeRef": {"kind": "Node", "name": node.name()}}});
    Member { node: Some(Arc::new(node)), ..machine(name, node_ref) }
}

/// A Machine with a Node that is ready for a day.
fn running(name: &str) -> Member {
    with_node(name, "True", NOW - DAY)
}

fn deleting(name: &str) -> Member {
    machine(name, json!({"metadata": {"deletionTimestamp": at(NOW - 5).to_string()}}))
}

/// The batches of a plan, in order.
fn batches(plan: &Plan) -> Vec<&[Action]> {
    let mut batches = vec![];
    for action in &plan.actions {
        if let Action::Batch(batch) = action {
            batches.push(batch.as_slice());
        }
    }
    batches
}

/// The objects that a plan creates, in order.
fn created(plan: &Plan) -> Vec<Value> {
    let mut objects = vec![];
    for action in batches(plan).into_iter().flatten() {
        if let Action::CreateMachine { object, .. } = action {
            objects.push(object.clone());
        }
    }
    objects
}

/// Names of the Machines that a plan deletes, in order.
fn deleted(plan: &Plan) -> Vec<String> {
    let mut names = vec![];
    for action in batches(plan).into_iter().flatten() {
        if let Action::Delete(target) = action {
            names.push(target.key.name.to_string());
        }
    }
    names
}

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
}

fn parsed_machine(member: &Member) -> &Machine {
    &member.machine
}
