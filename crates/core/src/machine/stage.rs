//! Where a Machine is in its life, derived from its deletion mark, finalizer, conditions, provider id and addresses.
//! The phase is an output; of its values only "none yet" and "failed for good" are read.

use mapi_api::machine::phase;
use mapi_api::names::{condition as types, finalizer};
use mapi_api::{Conditions, Machine, Object};
use serde_json::Value;

use super::invalid::{self, Complaint};
use super::{Facts, Serving};
use crate::migration::{self, Ownership};

/// Where a Machine is in its life. Exactly one holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// Another API owns it; `Some` is the status patch that records so.
    Foreign(Option<Value>),
    /// Marked for deletion, and nothing of ours holds it any more.
    Released,
    /// Marked for deletion, not drained yet.
    Draining,
    /// Drained, but somebody asked to be waited for before termination.
    Hooked,
    /// Drained, but no cloud serves it.
    Unserved(Complaint),
    /// Drained: the instance is to go.
    Removing,
    /// Its spec cannot be acted upon.
    Invalid(Complaint),
    /// Live, without our finalizer.
    Unprotected,
    /// Failed for good.
    Failed,
    /// Never looked at.
    New,
    /// Looked at; no instance is recorded, so one may be created.
    Wanted,
    /// An instance is recorded. None is created ever again.
    Provisioned,
}

impl Stage {
    /// Where a Machine is.
    pub fn of(facts: &Facts) -> Self {
        let machine = facts.machine;
        match facts.ownership() {
            Ownership::Theirs(patch) => return Self::Foreign(patch),
            Ownership::Ours(_) => {}
        }
        if machine.is_deleting() { Self::of_deleting(facts) } else { Self::of_live(facts) }
    }

    fn of_deleting(facts: &Facts) -> Self {
        let machine = facts.machine;
        if !machine.has_finalizer(finalizer::MACHINE) {
            return Self::Released;
        }
        if !machine.status.conditions.is_true(types::DRAINED) {
            return Self::Draining;
        }
        if !machine.spec.lifecycle_hooks.pre_terminate.is_empty() {
            return Self::Hooked;
        }
        // Item 22: only what is needed to reach the cloud counts here, not the rest of the validation.
        match facts.serving {
            Serving::By { settle: _ } => Self::Removing,
            Serving::Missing { .. } | Serving::Unknown { .. } => {
                Self::Unserved(invalid::unserved(facts.serving).expect("no cloud serves it"))
            }
        }
    }

    fn of_live(facts: &Facts) -> Self {
        let machine = facts.machine;
        if let Some(complaint) = invalid::complaint(facts) {
            return Self::Invalid(complaint);
        }
        if !machine.has_finalizer(finalizer::MACHINE) {
            return Self::Unprotected;
        }
        if machine.phase() == phase::FAILED {
            return Self::Failed;
        }
        if machine.is_provisioned() {
            return Self::Provisioned;
        }
        if was_looked_at(machine) { Self::Wanted } else { Self::New }
    }
}

/// A create is asked for only once the status shows that it may have been. Without that record a deletion could not
/// tell whether an instance may still appear (I2).
fn was_looked_at(machine: &Machine) -> bool {
    !machine.phase().is_empty() && machine.status.conditions.find(types::INSTANCE_EXISTS).is_some()
}

impl Facts<'_> {
    /// Who owns the Machine while a cluster migrates.
    pub(super) fn ownership(&self) -> Ownership {
        migration::ownership(
            self.is_gate_on,
            self.machine.spec.authoritative_api.as_deref(),
            self.machine.status.authoritative_api.as_deref(),
            &self.machine.status.conditions,
            self.now,
        )
    }

    /// The patch that records the ownership, if it is not recorded yet.
    pub(super) fn ownership_patch(&self) -> Option<Value> {
        match self.ownership() {
            Ownership::Ours(patch) | Ownership::Theirs(patch) => patch,
        }
    }
}
