//! The machine controller's decisions: when to ask a cloud for what, and what to write about its answer.
//!
//! [`decide`] looks at the Machine alone and either ends with a plan or asks one question of the cloud; [`settle`] turns
//! the answer into a plan. A cloud only returns values, everything of it that the Machine shows is written here.
//! Never here: anything of one cloud, draining (only its result is read), or calls of any kind.

mod draft;
mod events;
mod invalid;
mod live;
mod memory;
mod removal;
mod stage;

#[cfg(test)]
mod tests;

use std::time::Duration;

use mapi_api::names::condition as types;
use mapi_api::{Conditions, Machine, Node, Object, Timestamp};
use mapi_cloud::{Answer, Clouds, Service, Want};

use crate::Plan;
use draft::Draft;
pub use memory::{Creates, Memory, Trouble};
pub use stage::Stage;

/// Everything that a decision about one Machine looks at.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The Machine.
    pub machine: &'a Machine,
    /// Who serves its provider spec.
    pub serving: &'a Serving,
    /// The Node that bears the name in its `nodeRef`.
    pub node: Option<&'a Node>,
    /// What this process remembers of earlier questions about it.
    pub memory: &'a Memory,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub is_gate_on: bool,
    /// The time.
    pub now: Timestamp,
}

/// Who serves a provider spec, as a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serving {
    /// One of the clouds.
    By {
        /// How long an accepted or unanswered create may stay unseen there.
        settle: Duration,
    },
    /// There is no provider spec, or it has no kind.
    Missing {
        /// Kinds that would be served.
        served: Vec<String>,
    },
    /// Nobody.
    Unknown {
        /// The kind that was asked for.
        kind: String,
        /// Kinds that would be served.
        served: Vec<String>,
    },
}

impl Serving {
    /// What the registry said about a Machine, as a value.
    pub fn of(service: &Service, clouds: &Clouds, machine: &Machine) -> Self {
        match service {
            // The settle time of its very spec takes reading the spec: only where somebody may have to wait for it.
            Service::By(cloud) if machine.is_deleting() || machine.status.addresses.is_empty() => {
                Self::By { settle: cloud.settle_of(machine.spec.provider_spec.value.as_ref()) }
            }
            Service::By(cloud) => Self::By { settle: cloud.settle() },
            Service::Missing => {
                let kinds = clouds.iter().flat_map(|cloud| cloud.kinds());
                Self::Missing { served: kinds.map(|k| format!("{}.{}", k.kind, k.group)).collect() }
            }
            Service::Unknown { kind, served } => Self::Unknown { kind: kind.clone(), served: served.clone() },
        }
    }
}

/// What to do about a Machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Ask the cloud that serves it, then [`settle`].
    Ask(Want),
    /// Nothing needs to be asked.
    Done(Plan),
}

/// Decides by the Machine alone.
pub fn decide(facts: &Facts) -> Decision {
    let done = |plan| Decision::Done(plan);
    match Stage::of(facts) {
        Stage::Foreign(patch) => done(draft::status_patch(facts, patch)),
        Stage::Released => done(Draft::new(facts).plan()),
        Stage::Draining => {
            done(Draft::new(facts).plan().gate("WaitingForDrain", "the drain of the node has not finished"))
        }
        Stage::Hooked => {
            done(Draft::new(facts).plan().gate("WaitingForHook", "a pre-terminate hook is present"))
        }
        Stage::Unserved(complaint) => done(removal::unserved(facts, complaint)),
        Stage::Removing => ask(facts, Want::Absent),
        Stage::Invalid(complaint) => done(invalid::plan(facts, complaint)),
        Stage::Unprotected => done(draft::protect(facts)),
        // L1: nothing is refreshed, and what was recorded of the failure survives a change of ownership (item 27).
        Stage::Failed => done(draft::status_patch(facts, facts.ownership_patch())),
        Stage::New | Stage::Provisioned => ask(facts, Want::Look),
        Stage::Wanted => ask(facts, Want::Present),
    }
}

/// Decides by the answer of the cloud to the question that [`decide`] asked on the same facts.
pub fn settle(facts: &Facts, answer: &Answer) -> Plan {
    match Stage::of(facts) {
        Stage::Removing => removal::settle(facts, answer),
        Stage::New => live::settle(facts, answer, live::Round::First),
        Stage::Wanted => live::settle(facts, answer, live::Round::Create),
        Stage::Provisioned => live::settle(facts, answer, live::Round::Keep),
        Stage::Foreign(_)
        | Stage::Released
        | Stage::Draining
        | Stage::Hooked
        | Stage::Unserved(_)
        | Stage::Invalid(_)
        | Stage::Unprotected
        | Stage::Failed => Plan::nothing(),
    }
}

/// A cloud that failed a moment ago is left alone for as long as the table in `memory` says, whatever wakes the key.
fn ask(facts: &Facts, want: Want) -> Decision {
    match facts.memory.wait(facts, want) {
        Some(left) => Decision::Done(Draft::new(facts).plan().after(left)),
        None => Decision::Ask(want),
    }
}

/// Whether a create may have been asked for: it is asked for only after `InstanceExists` was written, and everything
/// else that is looked at here is known only of an instance. The phase does not tell: deletion overwrites it.
fn may_have_created(machine: &Machine) -> bool {
    machine.status.conditions.find(types::INSTANCE_EXISTS).is_some() || is_recorded(machine)
}

/// Whether anything of an instance is recorded: an id, an address, a Node, or a state in the cloud's words.
fn is_recorded(machine: &Machine) -> bool {
    machine.is_provisioned() || machine.node_name().is_some() || machine.status.provider_status.is_some()
}
