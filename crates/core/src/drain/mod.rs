//! The drain controller's decisions: whether the Node of a Machine that is being deleted may be drained, which pods are
//! to be evicted now, and what the Machine says meanwhile.
//!
//! [`decide`] looks at the Machine alone and either ends with a plan or asks for the scene: the live Node and its pods.
//! One round never waits: refusals come back as [`Attempts`] of the next round, and whatever ends the wait wakes the key.
//! Never here: the cloud (termination is the machine controller's), or calls of any kind.

mod attempts;
mod events;
mod pods;
mod report;

#[cfg(test)]
mod tests;

use std::time::Duration;

use mapi_api::condition::{self, severity};
use mapi_api::machine::phase;
use mapi_api::names::{annotation, condition as types, reason};
use mapi_api::{Condition, Conditions, Machine, Node, Object, Timestamp};
use serde_json::json;

use crate::{Action, Kind, Plan, Sub, Target, migration};
pub use attempts::{Attempt, Attempts, Cause, Outcome};
pub use pods::{DaemonSet, PodFact, daemon_set_of};

/// Twenty seconds, as in the original: how long another control-plane Node, or a Node that cannot be cordoned, is given.
const CONTENDED: Duration = Duration::from_secs(20);

/// Ten seconds: the list of pods comes within moments and wakes the key; this is for a server that does not answer.
const LISTING: Duration = Duration::from_secs(10);

/// Evictions of one round. The rest follows at once: this only bounds how many requests are under way together.
const EVICTIONS: usize = 32;

/// Everything that a decision about one drain looks at.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The Machine.
    pub machine: &'a Machine,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub is_gate_on: bool,
    /// What this process has announced already.
    pub memory: &'a Memory,
    /// Where the Node stands, once [`decide`] has asked for it.
    pub scene: Option<&'a Scene<'a>>,
    /// The time.
    pub now: Timestamp,
}

/// What was announced of a drain, so that an event tells a change and not a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// That it proceeds.
    pub has_proceeded: bool,
    /// Which hooks block it.
    pub blocked_by: Option<String>,
}

/// Where the Node stands.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    /// The Node, read from the server.
    pub node: Look<&'a Node>,
    /// Other control-plane Nodes, read from the server. Only needed if the Node is one and not cordoned yet.
    pub peers: Result<Vec<Peer>, String>,
    /// The pods bound to the Node, listed after it was cordoned. `None`: not yet.
    pub pods: Result<Option<Vec<PodFact<'a>>>, String>,
    /// What evictions were answered so far.
    pub attempts: &'a Attempts,
}

/// The answer of the server about one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look<T> {
    /// It is there.
    Found(T),
    /// It is not there.
    Gone,
    /// It could not be read.
    Failed(String),
}

/// Another control-plane Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name.
    pub name: String,
    /// Whether it is cordoned.
    pub is_cordoned: bool,
    /// Whether its Machine is being deleted.
    pub is_leaving: bool,
}

/// What to do about a drain.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision<'a> {
    /// Look at the Node of this name and its pods, then decide again.
    Look(&'a str),
    /// Nothing needs to be looked at.
    Done(Plan),
    /// Cordon the Node. If the plan does not go through, the one of [`cordon_failed`] follows; if it does, the pods are
    /// listed: only a list that was made after the cordon is complete.
    Cordon(Plan),
    /// Evict and wait. The pods, and the budgets of those that were refused, are to be watched meanwhile.
    Evict(Plan),
}

/// Decides what to do about a Machine.
pub fn decide<'a>(facts: &Facts<'a>) -> Decision<'a> {
    let machine = facts.machine;
    if !is_wanted(facts) {
        return Decision::Done(Plan::nothing());
    }
    let node = match machine.node_name() {
        // X1: before the hooks, which guard the drain of a Node and not the removal of a Machine.
        _ if machine.annotation(annotation::EXCLUDE_DRAIN).is_some() => return Decision::Done(skip(facts)),
        None => return Decision::Done(skip(facts)),
        Some(node) => node,
    };
    if !machine.spec.lifecycle_hooks.pre_drain.is_empty() {
        return Decision::Done(blocked(facts));
    }
    match facts.scene {
        None => Decision::Look(node),
        Some(scene) => on_scene(facts, scene),
    }
}

/// What to remember of the events in a plan of [`decide`] on these facts.
pub fn remember(facts: &Facts, decision: &Decision) -> Memory {
    let earlier = facts.memory.clone();
    match decision {
        Decision::Look(_) => earlier,
        Decision::Cordon(_) | Decision::Evict(_) => Memory { has_proceeded: true, ..earlier },
        Decision::Done(_) if facts.scene.is_some() => Memory { has_proceeded: true, ..earlier },
        Decision::Done(_) => Memory { blocked_by: is_wanted(facts).then(|| hooks(facts.machine)), ..earlier },
    }
}

/// After a cordon that did not go through.
pub fn cordon_failed(facts: &Facts, node: &str, error: &str) -> Plan {
    report::failed(facts, &format!("unable to cordon node `{node}`: {error}")).after(CONTENDED)
}

/// All conditions of 2.1, and item 26.
fn is_wanted(facts: &Facts) -> bool {
    let machine = facts.machine;
    let status = &machine.status;
    machine.is_deleting()
        && machine.phase() == phase::DELETING
        && !status.conditions.is_true(types::DRAINED)
        && !migration::is_left_alone(
            facts.is_gate_on,
            status.authoritative_api.as_deref(),
            &status.conditions,
        )
}

fn skip(facts: &Facts) -> Plan {
    let patch = set_condition(facts, Condition::yes(types::DRAINED).message("Node drain skipped"));
    Plan::actions(
        patch
            .into_iter()
            .chain([events::normal(facts.machine, "DrainSkipped", "Node drain skipped")])
            .collect(),
    )
}

fn blocked(facts: &Facts) -> Plan {
    let hooks = hooks(facts.machine);
    let is_new = facts.memory.blocked_by.as_ref() != Some(&hooks);
    let event = || events::normal(facts.machine, "DrainBlocked", "Drain blocked by pre-drain hook");
    Plan::actions(is_new.then(event).into_iter().collect()).gate("WaitingForHook", hooks)
}

fn hooks(machine: &Machine) -> String {
    let names = machine.spec.lifecycle_hooks.pre_drain.iter().map(|hook| hook.name.as_str());
    format!("pre-drain hooks are present: {}", names.collect::<Vec<_>>().join(", "))
}

fn on_scene<'a>(facts: &Facts<'a>, scene: &Scene) -> Decision<'a> {
    let node = match &scene.node {
        Look::Found(node) if is_ours(facts.machine, node) => *node,
        // An admin removed it, or another machine took its name: there is nothing to drain.
        Look::Found(_) | Look::Gone => return Decision::Done(with_start(facts, finished(facts, None))),
        Look::Failed(error) => {
            let name = facts.machine.node_name().unwrap_or_default();
            return failed(facts, &format!("unable to get node `{name}`: {error}"));
        }
    };
    if !node.spec.unschedulable {
        return cordon(facts, scene, node);
    }
    let pods = match &scene.pods {
        Ok(Some(pods)) => pods,
        Ok(None) => {
            let plan = Plan::nothing().after(LISTING).gate("ListingPods", "the pods of the node are listed");
            return Decision::Evict(with_start(facts, plan));
        }
        Err(error) => {
            return failed(facts, &format!("unable to list the pods of node `{}`: {error}", node.name()));
        }
    };
    let selected = match pods::select(pods, node.is_unreachable(), facts.now) {
        Ok(mut selected) => {
            selected.retain(|s| scene.attempts.of(s.pod).is_none_or(|attempt| !attempt.is_gone));
            selected
        }
        Err(error) => return failed(facts, &error),
    };
    if selected.is_empty() {
        return Decision::Done(with_start(facts, finished(facts, Some(node))));
    }
    Decision::Evict(with_start(facts, evict(facts, scene, &selected, node)))
}

/// I19: a Node of the same name but another UID is another machine's.
fn is_ours(machine: &Machine, node: &Node) -> bool {
    let recorded =
        machine.status.node_ref.as_ref().and_then(|r| r.uid.as_deref()).filter(|uid| !uid.is_empty());
    recorded.is_none_or(|uid| uid == node.uid())
}

/// Only errors that leave the drain where it is come here; the queue's back-off decides when it goes on.
fn failed<'a>(facts: &Facts, error: &str) -> Decision<'a> {
    Decision::Evict(with_start(facts, report::failed(facts, error).backoff(error)))
}

/// One control-plane Node at a time, so that etcd keeps its quorum. A Node that is cordoned already goes on: it was let
/// through before, or an admin wants it so.
fn cordon<'a>(facts: &Facts, scene: &Scene, node: &Node) -> Decision<'a> {
    if pods::is_control_plane(node) {
        let peers = match &scene.peers {
            Ok(peers) => peers,
            Err(error) => return failed(facts, &format!("unable to list control-plane nodes: {error}")),
        };
        // Item 29: a Node that an admin cordoned for other reasons blocks nobody.
        let mut leaving = peers.iter().filter(|p| p.is_cordoned && p.is_leaving && p.name != node.name());
        if let Some(Peer { name, .. }) = leaving.next() {
            let text = format!("drain not permitted: control-plane node `{name}` is being drained");
            return Decision::Evict(with_start(facts, report::failed(facts, &text).after(CONTENDED)));
        }
    }
    let patch = Action::Patch {
        target: Target::of(Kind::Node, node),
        sub: Sub::Main,
        patch: json!({"spec": {"unschedulable": true}}),
    };
    Decision::Cordon(with_start(facts, Plan::actions(vec![patch])))
}

fn evict(facts: &Facts, scene: &Scene, selected: &[pods::Selected], node: &Node) -> Plan {
    let mut due: Vec<_> = selected
        .iter()
        .filter(|s| !s.is_terminating)
        .filter(|s| scene.attempts.of(s.pod).is_none_or(|attempt| attempt.due <= facts.now))
        .collect();
    let has_more = due.len() > EVICTIONS;
    due.truncate(EVICTIONS);
    let grace_s = pods::grace_s(node.is_unreachable());
    let evictions = due.iter().map(|s| Action::Evict { pod: s.pod.key(), uid: s.pod.uid().into(), grace_s });
    let mut plan = report::progress(facts, scene, selected);
    if !due.is_empty() {
        // Before the condition, whose patch may be refused.
        plan.actions.insert(0, Action::Batch(evictions.collect()));
    }
    if has_more {
        return plan.after(Duration::ZERO);
    }
    plan.after(attempts::next_look(scene, selected, node.is_unreachable(), facts.now))
}

fn finished(facts: &Facts, node: Option<&Node>) -> Plan {
    let machine = facts.machine;
    let patch = set_condition(facts, Condition::yes(types::DRAINED).message("Drain finished successfully"));
    let deleted =
        node.map(|node| events::normal(machine, "Deleted", format!("Node \"{}\" drained", node.name())));
    let succeeded = events::normal(machine, "DrainSucceeded", "Node drain succeeded");
    Plan::actions(patch.into_iter().chain(deleted).chain([succeeded]).collect())
}

/// Says once that the drain proceeds, before anything else is done.
fn with_start(facts: &Facts, mut plan: Plan) -> Plan {
    if !facts.memory.has_proceeded {
        plan.actions.insert(0, events::normal(facts.machine, "DrainProceeds", "Node drain proceeds"));
    }
    plan
}

/// The whole list of conditions with one set; the version of the Machine guards those of other writers.
fn set_condition(facts: &Facts, new: Condition) -> Option<Action> {
    let machine = facts.machine;
    let mut conditions = machine.status.conditions.clone();
    condition::set(&mut conditions, new, facts.now).then(|| Action::Patch {
        target: Target::of(Kind::Machine, machine),
        sub: Sub::Status,
        patch: json!({"status": {"conditions": conditions}}),
    })
}

/// Condition `Drained` while the drain does not get through.
fn not_drained(cause: &str) -> Condition {
    let message = format!("could not drain machine: {cause}");
    Condition::no(types::DRAINED, severity::WARNING, reason::DRAIN_ERROR, message)
}
