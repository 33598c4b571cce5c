//! Garbage collection: what is left behind when owners go. Never here: why an owner goes.
//!
//! An owner is the object that a reference names, if it has the uid of the reference; else it is gone. An object whose
//! owners are all gone is deleted. One with a living owner only loses the references to the others. An owner that is
//! deleted in the foreground waits for dependents that block it, one that orphans waits until nobody refers to it.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use crate::kinds::{Bucket, Kind, Verb};
use crate::state::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, finalizers, set_finalizers};
use crate::storage::{Change, Key, Object, Owner};

use super::World;
use super::catalogue::Class;
use super::writes::delete;

/// An object by where it is.
type Id = (Bucket, Key);

/// Who depends on whom.
#[derive(Default)]
pub(super) struct Garbage {
    /// By uid of the owner.
    families: HashMap<String, Family>,
    /// Objects to look at.
    queue: BTreeSet<Id>,
    /// Owners that wait for their dependents, by uid.
    waiting: HashMap<String, Id>,
    /// Owners that went while they had dependents: their kind may not be served any more when those are looked at.
    absent: HashSet<String>,
    /// Dependents of an owner whose kind is not served: whether it is there cannot be said.
    unresolved: BTreeSet<Id>,
}

#[derive(Default)]
struct Family {
    members: BTreeSet<Id>,
    /// How many of them the owner waits for in the foreground.
    blocking: usize,
}

/// How it is with an owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Solid,
    Gone,
    /// It waits for its dependents.
    Waiting,
    /// Its kind is not served here.
    Unknown,
}

impl Garbage {
    /// Kinds have come or gone: what could not be resolved is tried again.
    pub(super) fn kinds_changed(&mut self) {
        self.queue.append(&mut self.unresolved);
    }

    pub(super) fn see(&mut self, change: &Change, class: Class) {
        if class == Class::Event {
            return;
        }
        let id = (change.bucket.clone(), change.now.key.clone());
        let before = change.before.as_deref().map_or(&[][..], |before| &before.owners);
        let now = if change.is_deletion { &[][..] } else { &change.now.owners[..] };
        if before != now {
            self.leave(&id, before);
            self.join(&id, now);
        }
        if !change.is_deletion {
            if change.now.is_deleting || (before != now && !now.is_empty()) {
                self.queue.insert(id);
            }
            return;
        }
        self.unresolved.remove(&id);
        self.waiting.remove(&change.now.uid);
        if let Some(family) = self.families.get(&change.now.uid) {
            self.queue.extend(family.members.iter().cloned());
            self.absent.insert(change.now.uid.clone());
        }
    }

    fn leave(&mut self, id: &Id, owners: &[Owner]) {
        for owner in owners {
            if let Some(waiting) = self.waiting.get(&owner.uid) {
                self.queue.insert(waiting.clone());
            }
            let Some(family) = self.families.get_mut(&owner.uid) else { continue };
            if family.members.remove(id) {
                family.blocking -= usize::from(blocks(owners, &owner.uid));
            }
            if family.members.is_empty() {
                self.families.remove(&owner.uid);
                self.absent.remove(&owner.uid);
            }
        }
    }

    fn join(&mut self, id: &Id, owners: &[Owner]) {
        for owner in owners {
            let family = self.families.entry(owner.uid.clone()).or_default();
            if family.members.insert(id.clone()) {
                family.blocking += usize::from(blocks(owners, &owner.uid));
            }
        }
    }

    pub(super) fn step(&mut self, world: &mut World<'_>) {
        while let Some(id) = self.queue.pop_first() {
            let Some(kind) = world.catalogue.kind(&id.0).cloned() else { continue };
            let Some(object) = world.state.storage.get(&id.0, &id.1).cloned() else { continue };
            if object.is_deleting {
                self.end(world, &kind, &object);
            } else if !object.owners.is_empty() && kind.verbs.contains(&Verb::Delete) {
                self.judge(world, &kind, &object);
            }
        }
    }

    /// Decides about an object that has owners.
    fn judge(&mut self, world: &mut World<'_>, kind: &Kind, object: &Object) {
        let of = |owner: &Owner| self.standing(world, object, owner);
        let all: Vec<(Standing, &Owner)> = object.owners.iter().map(|owner| (of(owner), owner)).collect();
        let has = |wanted: Standing| all.iter().any(|(standing, _)| *standing == wanted);
        if has(Standing::Unknown) {
            self.unresolved.insert((kind.bucket.clone(), object.key.clone()));
            return;
        }
        if has(Standing::Solid) {
            let lost = all.iter().filter(|(standing, _)| *standing != Standing::Solid);
            let lost: Vec<&str> = lost.map(|(_, owner)| owner.uid.as_str()).collect();
            if !lost.is_empty() {
                drop_references(world, kind, object, &lost);
            }
            return;
        }
        let has_dependents = self.families.contains_key(&object.uid);
        let propagation = if has(Standing::Waiting) && has_dependents {
            self.break_circle(world, object);
            Propagation::Foreground
        } else {
            own_propagation(object)
        };
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        delete(world.state, kind, object, options);
    }

    fn standing(&self, world: &World<'_>, dependent: &Object, owner: &Owner) -> Standing {
        if self.absent.contains(&owner.uid) {
            return Standing::Gone;
        }
        let Some(kind) = world.state.kinds.of_object(&owner.api_version, &owner.kind) else {
            return Standing::Unknown;
        };
        let namespace = &dependent.key.namespace;
        if kind.namespaced && namespace.is_empty() {
            // No such owner can be meant: a namespace would be missing.
            return Standing::Unknown;
        }
        let namespace = if kind.namespaced { namespace.clone() } else { String::new() };
        let key = Key { namespace, name: owner.name.clone() };
        match world.state.storage.get(&kind.bucket, &key) {
            Some(object) if object.uid != owner.uid => Standing::Gone,
            Some(object) if object.is_deleting && has_finalizer(object, FOREGROUND) => Standing::Waiting,
            Some(_) => Standing::Solid,
            None => Standing::Gone,
        }
    }

    /// An object that waits for its owner must not be waited for by one that it owns itself.
    fn break_circle(&self, world: &mut World<'_>, object: &Object) {
        let Some(family) = self.families.get(&object.uid) else { return };
        for id in &family.members {
            let Some(member) = world.state.storage.get(&id.0, &id.1).cloned() else { continue };
            let Some(kind) = world.catalogue.kind(&id.0).cloned() else { continue };
            if !member.is_deleting || !has_finalizer(&member, FOREGROUND) {
                continue;
            }
            let mut value = member.value();
            let references = value["metadata"]["ownerReferences"].as_array_mut().into_iter().flatten();
            for reference in references.filter(|reference| reference["blockOwnerDeletion"] == true) {
                reference["blockOwnerDeletion"] = false.into();
            }
            world.state.update(&kind, &member, value);
        }
    }

    /// Brings an object that is deleted to its end, as far as its dependents let it.
    fn end(&mut self, world: &mut World<'_>, kind: &Kind, object: &Object) {
        if has_finalizer(object, FOREGROUND) {
            let id = (kind.bucket.clone(), object.key.clone());
            let is_new = self.waiting.insert(object.uid.clone(), id).is_none();
            let Some(family) = self.families.get(&object.uid) else {
                return drop_finalizer(world, kind, object, FOREGROUND);
            };
            if is_new {
                self.queue.extend(family.members.iter().cloned());
            }
            if family.blocking == 0 {
                drop_finalizer(world, kind, object, FOREGROUND);
            }
        } else if has_finalizer(object, ORPHAN) {
            for id in self.families.get(&object.uid).into_iter().flat_map(|family| &family.members) {
                let Some(kind) = world.catalogue.kind(&id.0).cloned() else { continue };
                let Some(member) = world.state.storage.get(&id.0, &id.1).cloned() else { continue };
                drop_references(world, &kind, &member, &[&object.uid]);
            }
            drop_finalizer(world, kind, object, ORPHAN);
        }
    }
}

/// Whether an owner waits in the foreground for who has these owners.
fn blocks(owners: &[Owner], uid: &str) -> bool {
    owners.iter().any(|owner| owner.uid == uid && owner.blocks)
}

/// What the finalizers of an object say about its dependents.
fn own_propagation(object: &Object) -> Propagation {
    if has_finalizer(object, ORPHAN) {
        Propagation::Orphan
    } else if has_finalizer(object, FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    }
}

fn has_finalizer(object: &Object, name: &str) -> bool {
    // Most objects do not hold the word at all, and need not be read.
    object.json.contains(name) && finalizers(&object.value()).iter().any(|finalizer| finalizer == name)
}

fn drop_finalizer(world: &mut World<'_>, kind: &Kind, object: &Object, name: &str) {
    let mut value = object.value();
    let rest: Vec<String> = finalizers(&value).into_iter().filter(|finalizer| finalizer != name).collect();
    set_finalizers(&mut value, &rest);
    world.state.update(kind, object, value);
}

fn drop_references(world: &mut World<'_>, kind: &Kind, object: &Object, uids: &[&str]) {
    let mut value = object.value();
    let metadata = value["metadata"].as_object_mut().expect("every stored object has metadata");
    if let Some(references) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) {
        references.retain(|reference| !reference["uid"].as_str().is_some_and(|uid| uids.contains(&uid)));
        if references.is_empty() {
            metadata.remove("ownerReferences");
        }
    }
    world.state.update(kind, object, value);
}
