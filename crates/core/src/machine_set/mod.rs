//! Keeps the number of Machines of a MachineSet: who belongs to it, what is missing, what is too much, what to report.
//!
//! Stopping after any prefix of a plan is safe. The report on the set comes first, guarded by the set's version, so that
//! nothing is done to Machines on behalf of a set that has changed meanwhile. Then Machines are taken over or let go,
//! and only then is the number changed: an orphan that could not be adopted is never made up for (weakness 11).
//! Never here: waits. The caller decides only on caches that show the set's own creations and deletions.

mod membership;
mod naming;
mod scale;
mod selectors;
mod status;
mod template;
#[cfg(test)]
mod tests;
mod validity;
mod victims;

use std::sync::Arc;
use std::time::Duration;

use mapi_api::condition::Condition;
use mapi_api::event::{Event, EventType, Regarding};
use mapi_api::{Machine, MachineSet, Node, Object, Timestamp, names};
use serde_json::{Value, json};

pub use selectors::{Selectors, is_relevant, is_relevant_node, sets_of};
pub use status::STATUS_INTERVAL;
pub use template::{Template, provider_spec};

use crate::migration::{Ownership, ownership};
use crate::{Action, Kind, Plan, Requeue, Sub, Target};
use membership::Membership;
use status::Progress;
use validity::{Problem, Validity};

/// A Machine and the Node that it became.
#[derive(Clone, Debug)]
pub struct Member {
    /// The Machine.
    pub machine: Arc<Machine>,
    /// Its Node, if the Machine names one that exists.
    pub node: Option<Arc<Node>>,
}

/// What is known when a set is looked at.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The set.
    pub set: &'a MachineSet,
    /// Machines whose controller is the set, by UID, in any order. The deleting ones are among them.
    pub owned: &'a [Member],
    /// Machines of the namespace that have no controller.
    pub orphans: &'a [Member],
    /// What the clouds say about the template.
    pub template: &'a Template,
    /// Names of Machines whose creation got no answer and which the cache does not show.
    pub pending: &'a [String],
    /// Why the last pass over the set's Machines failed, if it did.
    pub last_error: Option<&'a str>,
    /// When the set's status was written last by this process.
    pub last_status_write: Option<Timestamp>,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub is_gate_on: bool,
    /// Source of the names of new Machines.
    pub entropy: u64,
    /// The time.
    pub now: Timestamp,
}

/// What to do about a set.
pub fn decide(facts: &Facts<'_>) -> Plan {
    let set = facts.set;
    if set.is_deleting() {
        // The garbage collector removes the Machines, through their owner references.
        return Plan::nothing();
    }
    let status = &set.status;
    let spec_authority = set.spec.authoritative_api.as_deref();
    let status_authority = status.authoritative_api.as_deref();
    let paused =
        match ownership(facts.is_gate_on, spec_authority, status_authority, &status.conditions, facts.now) {
            Ownership::Theirs(record) => {
                return Plan::actions(
                    record.map(|patch| patch_status(set, observed(set, patch))).into_iter().collect(),
                );
            }
            Ownership::Ours(record) => record.map(|patch| conditions_of(&patch)),
        };
    let is_paused_news = paused.is_some();
    let conditions = paused.unwrap_or_else(|| status.conditions.clone());

    let validity = Validity::of(facts);
    let membership = Membership::of(facts, validity.selector.as_ref().ok());
    let work = scale::work(facts, &validity, &membership);
    let problem = validity.first(work.problem.as_ref());
    let progress = match (work.actions.is_empty(), work.is_blocked) {
        (false, _) => Progress::Works,
        (true, true) => Progress::Blocked,
        (true, false) => Progress::Done,
    };
    let report = status::Report {
        conditions,
        selector: validity.selector.as_ref().ok(),
        problem,
        progress,
        // Adopting on behalf of a set that is already going would hand a Machine that somebody meant to keep to the
        // garbage collector. The guarded write proves that the set is still the one that was read.
        is_due_at_once: is_paused_news || work.adopts,
        is_proof: work.adopts,
    };
    let (mut actions, rest) = report.actions(facts, &membership);
    let delays = [
        rest,
        status::next_available(facts, &membership),
        work.is_capped.then_some(Duration::ZERO),
        // After a failure the next round that goes through has something to take back.
        (facts.last_error.is_some() && progress == Progress::Works).then_some(STATUS_INTERVAL),
    ];
    actions.extend(work.actions);
    let requeue = delays.into_iter().flatten().min().map_or(Requeue::Never, Requeue::After);
    let plan = Plan { actions, requeue, gates: vec![] };
    match problem {
        Some(Problem { reason, message, .. }) => plan.gate(reason, message.as_str()),
        None => plan,
    }
}

/// Splits a plan into its report on the set and what it does to Machines. Only a failure of the second part is a failed
/// pass over the set's Machines, [`Facts::last_error`].
pub fn split(plan: Plan) -> (Plan, Plan) {
    let Plan { mut actions, requeue, gates } = plan;
    let is_report = |action: &Action| match action {
        Action::Patch { target, .. } => target.kind == Kind::MachineSet,
        Action::Emit { .. } => true,
        Action::CreateMachine { .. }
        | Action::Delete(_)
        | Action::Evict { .. }
        | Action::CreateRequest { .. }
        | Action::DeleteRequest { .. }
        | Action::Measure(_)
        | Action::Batch(_)
        | Action::Try { .. } => false,
    };
    let end = actions.iter().position(|action| !is_report(action)).unwrap_or(actions.len());
    let work = actions.split_off(end);
    (Plan::actions(actions), Plan { actions: work, requeue, gates })
}

/// Writing the Paused condition records the generation too.
fn observed(set: &MachineSet, mut patch: Value) -> Value {
    if patch["status"].get("conditions").is_some() {
        patch["status"]["observedGeneration"] = json!(set.metadata.generation);
    }
    patch
}

fn conditions_of(patch: &Value) -> Vec<Condition> {
    serde_json::from_value(patch["status"]["conditions"].clone())
        .expect("the gate's patch holds conditions that it serialised itself")
}

fn patch_status(set: &MachineSet, patch: Value) -> Action {
    Action::Patch { target: Target::of(Kind::MachineSet, set), sub: Sub::Status, patch }
}

fn warning(set: &MachineSet, note: String) -> Action {
    Action::Emit {
        reporter: names::reporter::MACHINE_SET,
        event: Event {
            type_: EventType::Warning,
            reason: "ReconcileError",
            action: "Reconcile",
            note,
            regarding: Regarding {
                api_version: names::API_VERSION,
                kind: names::KIND_MACHINE_SET,
                key: set.key(),
                uid: set.uid().into(),
            },
        },
    }
}
