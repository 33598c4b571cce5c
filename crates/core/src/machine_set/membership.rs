//! Which Machines belong to a set.

use mapi_api::{Machine, MachineSet, Object, OwnerReference, Selector, names};
use serde_json::json;

use super::{Facts, Member};
use crate::{Action, Kind, Sub, Target};

/// Machines sorted by what they are to a set.
#[derive(Debug, Default)]
pub(super) struct Membership<'a> {
    /// Those that count, sorted by name: owned or about to be, and not being deleted.
    pub members: Vec<&'a Member>,
    /// Those members that the set does not own yet.
    pub to_adopt: Vec<&'a Machine>,
    /// Owned Machines that no longer match.
    pub to_release: Vec<&'a Machine>,
}

impl<'a> Membership<'a> {
    /// Sorts the Machines. Without a usable selector those that are owned count, and nobody comes or goes.
    pub fn of(facts: &Facts<'a>, selector: Option<&Selector>) -> Self {
        let mut this = Self::default();
        let matches = |machine: &Machine| match (selector, &machine.metadata.labels) {
            (Some(selector), Some(labels)) => selector.matches(labels),
            (Some(selector), None) => selector.matches(&Default::default()),
            (None, _) => true,
        };
        // A deleting Machine stopped being a member when its mark became visible: its replacement is made at once.
        for member in facts.owned.iter().filter(|m| !m.machine.is_deleting()) {
            if matches(&member.machine) {
                this.members.push(member);
            } else {
                this.to_release.push(&member.machine);
            }
        }
        for member in facts.orphans.iter().filter(|m| !m.machine.is_deleting()) {
            let machine = &*member.machine;
            let is_labelled = machine.metadata.labels.as_ref().is_some_and(|labels| !labels.is_empty());
            if selector.is_some() && is_labelled && matches(machine) {
                this.members.push(member);
                this.to_adopt.push(machine);
            }
        }
        this.members.sort_by(|a, b| a.machine.name().cmp(b.machine.name()));
        this
    }
}

/// The reference of a Machine to its set.
pub(super) fn owner_reference(set: &MachineSet) -> OwnerReference {
    OwnerReference {
        api_version: names::API_VERSION.into(),
        kind: names::KIND_MACHINE_SET.into(),
        name: set.name().into(),
        uid: set.uid().into(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Takes an orphan over. Refused if the orphan changed meanwhile, for example because another set was faster.
pub(super) fn adopt(set: &MachineSet, machine: &Machine) -> Action {
    let others = references(machine).filter(|owner| owner.uid != set.uid());
    let owners: Vec<_> = others.cloned().chain([owner_reference(set)]).collect();
    own(set, machine, &owners)
}

/// Lets a Machine go that no longer matches: it stays, without the set as its owner, and counts no more (weakness 42).
pub(super) fn release(set: &MachineSet, machine: &Machine) -> Action {
    let owners: Vec<_> = references(machine).filter(|owner| owner.uid != set.uid()).cloned().collect();
    own(set, machine, &owners)
}

fn references(machine: &Machine) -> impl Iterator<Item = &OwnerReference> {
    machine.metadata.owner_references.iter().flatten()
}

fn own(set: &MachineSet, machine: &Machine, owners: &[OwnerReference]) -> Action {
    // The set's next round must see this write, whoever the owner was before.
    let target = Target { owner_uid: Some(set.uid().into()), ..Target::of(Kind::Machine, machine) };
    Action::Patch { target, sub: Sub::Main, patch: json!({"metadata": {"ownerReferences": owners}}) }
}
