//! Nodelink: which Node a Machine became, told to the Machine, and the Machine's wishes told to the Node.
//!
//! For: matching, `status.nodeRef`, and labels, annotations and taints of Nodes. Never here: clients, clocks, caches.
//!
//! There is no memory of what was done before: what is wanted is compared with what is there, so a lost reference, a Node
//! with a new identity or a taint that somebody removed is put right by the next look. Invariant kept: I18.

pub mod matching;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mapi_api::condition::whole_seconds;
use mapi_api::machine::Taint;
use mapi_api::names::annotation;
use mapi_api::{Machine, Node, Object, Time, Timestamp};
use serde_json::{Map, Value, json};

pub use matching::{Ambiguity, Candidates, machine_of, node_of};

use crate::plan::Target;
use crate::{Action, Kind, Plan, Sub, migration};

/// What is known when a Node is looked at.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The Node.
    pub node: &'a Node,
    /// The Machine that the Node's identity leads to, by [`machine_of`].
    pub machine: Result<Option<&'a Machine>, Ambiguity>,
    /// The Node that this Machine's identity leads to, by [`node_of`]; none if there is no such Machine.
    pub counterpart: Result<Option<&'a Node>, Ambiguity>,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub is_migration_on: bool,
    /// The time.
    pub now: Timestamp,
}

/// Decides about one Node. The Machine is written first: a Node that carries the labels of its Machine is linked.
pub fn decide(facts: &Facts<'_>) -> Plan {
    let Facts { node, machine, counterpart, is_migration_on, now } = facts;
    let machine = match machine {
        Ok(Some(machine)) => *machine,
        Ok(None) => return Plan::nothing().gate("NoMachine", "no machine has the identity of this node"),
        Err(ambiguity) => return refuse(ambiguity),
    };
    match counterpart {
        Err(ambiguity) => return refuse(ambiguity),
        Ok(Some(other)) if other.uid() != node.uid() => {
            let message =
                format!("machine `{}` is node `{}` by its own identity", machine.key(), other.name());
            return Plan::nothing().gate("OtherNode", message);
        }
        // By the Machine's first address no Node is found, but the Node's first address leads here: the order of
        // addresses differs.
        Ok(Some(_) | None) => {}
    }
    let status = &machine.status;
    if migration::is_left_alone(*is_migration_on, status.authoritative_api.as_deref(), &status.conditions) {
        return Plan::nothing().gate("Paused", format!("cluster API owns machine `{}`", machine.key()));
    }
    if node.is_deleting() {
        // The reference stays: by it a health check sees that the Node went.
        return Plan::nothing().gate("NodeDeleting", "the node is being deleted");
    }
    Plan::actions(link(node, machine, *now).into_iter().chain(propagate(node, machine)).collect())
}

fn refuse(ambiguity: &Ambiguity) -> Plan {
    Plan::nothing().backoff(ambiguity.to_string()).gate("Ambiguous", ambiguity.to_string())
}

/// The write that makes a Machine name its Node, if it does not by name and identity. No other reason for a write:
/// whoever counts readiness watches Nodes (decision 0005).
fn link(node: &Node, machine: &Machine, now: Timestamp) -> Option<Action> {
    const KIND: &str = "Node";
    let is_linked = machine.status.node_ref.as_ref().is_some_and(|reference| {
        reference.kind.as_deref() == Some(KIND)
            && reference.name.as_deref() == Some(node.name())
            && reference.uid.as_deref() == Some(node.uid())
    });
    let patch = json!({"status": {
        "nodeRef": {"kind": KIND, "name": node.name(), "uid": node.uid()},
        "lastUpdated": Time(whole_seconds(now)),
    }});
    let target = Target::of(Kind::Machine, machine);
    (!is_linked).then_some(Action::Patch { target, sub: Sub::Status, patch })
}

/// The one write that gives a Node what its Machine asks for, if something is missing. Nothing is ever taken away.
fn propagate(node: &Node, machine: &Machine) -> Option<Action> {
    let wanted = &machine.spec.metadata;
    let mut annotations = BTreeMap::from([(annotation::MACHINE.to_owned(), machine.key().to_string())]);
    annotations.extend(wanted.annotations.clone());
    let mut metadata = Map::new();
    for (field, wanted, present) in [
        ("annotations", &annotations, &node.metadata.annotations),
        ("labels", &wanted.labels, &node.metadata.labels),
    ] {
        let missing = missing(wanted, present.as_ref());
        if !missing.is_empty() {
            metadata.insert(field.into(), missing.into());
        }
    }
    let mut patch = Map::new();
    if !metadata.is_empty() {
        patch.insert("metadata".into(), metadata.into());
    }
    if let Some(taints) = taints(node, machine) {
        patch.insert("spec".into(), json!({ "taints": taints }));
    }
    let target = Target::of(Kind::Node, node);
    (!patch.is_empty()).then_some(Action::Patch { target, sub: Sub::Main, patch: patch.into() })
}

fn missing(
    wanted: &BTreeMap<String, String>,
    present: Option<&BTreeMap<String, String>>,
) -> Map<String, Value> {
    let differs = |key: &str, value: &String| present.and_then(|p| p.get(key)) != Some(value);
    let differing = wanted.iter().filter(|(key, value)| differs(key, value));
    differing.map(|(key, value)| (key.clone(), value.as_str().into())).collect()
}

/// The whole list of taints that the Node shall have, if some of the Machine's are missing. The list is replaced whole by
/// a patch, which is safe because a patch decided on an old version is refused.
fn taints(node: &Node, machine: &Machine) -> Option<Vec<Taint>> {
    let mut taints = node.spec.taints.clone();
    for wanted in &machine.spec.taints {
        if !taints.iter().any(|taint| taint.key == wanted.key && taint.effect == wanted.effect) {
            taints.push(wanted.clone());
        }
    }
    (taints.len() > node.spec.taints.len()).then_some(taints)
}
