//! What to do to a set's Machines: take over, let go, make, remove.

use mapi_api::names::{self, reason};
use mapi_api::{Key, MachineSet, Object};
use serde_json::{Map, Value, json};

use super::membership::{self, Membership};
use super::naming::{self, Names};
use super::validity::{Problem, Validity};
use super::victims::{self, Policy};
use super::{Facts, Member};
use crate::{Action, Kind, Target};

/// Machines that one pass makes at most: about a second of an API server's time, so that a set that grows by thousands
/// still reports every second, and a wrong number that is taken back has cost little.
pub(super) const PASS_MAX: usize = 512;

/// Largest batch. More requests at once than an API server answers at once, so that it never idles; and the most that
/// are wasted when a quota refuses.
pub(super) const BATCH_MAX: usize = 64;

/// What to do to Machines.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// In order.
    pub actions: Vec<Action>,
    /// Whether an orphan is taken over.
    pub adopts: bool,
    /// Whether more is to be made than fits into one pass.
    pub is_capped: bool,
    /// Whether something would have to be done that the spec does not allow.
    pub is_blocked: bool,
    /// A part of the spec that is needed only now and cannot be used.
    pub problem: Option<Problem>,
}

/// Decides what to do.
pub(super) fn work(facts: &Facts<'_>, validity: &Validity, membership: &Membership<'_>) -> Work {
    let mut work = Work::default();
    if validity.selector.is_err() {
        work.is_blocked = true;
        return work;
    }
    let Membership { members, to_adopt, to_release } = membership;
    let moves = to_adopt.iter().map(|machine| membership::adopt(facts.set, machine));
    let moves: Vec<_> =
        moves.chain(to_release.iter().map(|machine| membership::release(facts.set, machine))).collect();
    work.adopts = !to_adopt.is_empty();
    if !moves.is_empty() {
        work.actions.push(Action::Batch(moves));
    }
    let Ok(replicas) = validity.replicas else {
        work.is_blocked = true;
        return work;
    };
    if replicas > members.len() {
        work.is_blocked = validity.template.is_err();
        if !work.is_blocked {
            let missing = replicas - members.len();
            work.is_capped = missing > PASS_MAX;
            work.actions.extend(create(facts, missing.min(PASS_MAX)));
        }
    } else if replicas < members.len() {
        match Policy::parse(facts.set.spec.delete_policy.as_deref()) {
            Ok(policy) => {
                let victims = victims::pick(policy, members, members.len() - replicas, facts.now);
                work.actions
                    .push(Action::Batch(victims.iter().map(|victim| delete(facts.set, victim)).collect()));
            }
            Err(policy) => {
                let what = format_args!(
                    "unsupported delete policy {policy}, must be one of 'Random', 'Newest', or 'Oldest'"
                );
                work.is_blocked = true;
                work.problem = Some(Problem::new(reason::INVALID_FIELD, "spec.deletePolicy", what));
            }
        }
    }
    work
}

/// The set's next round must see this write, even if the victim was an orphan until now.
fn delete(set: &MachineSet, victim: &Member) -> Action {
    Action::Delete(Target {
        owner_uid: Some(set.uid().into()),
        ..Target::of(Kind::Machine, &*victim.machine)
    })
}

/// Makes Machines in batches that double: whatever refuses one refuses few (weakness 14). A batch that fails ends the
/// plan.
fn create(facts: &Facts<'_>, count: usize) -> Vec<Action> {
    let set = facts.set;
    let taken = facts.owned.iter().chain(facts.orphans).map(|member| member.machine.name());
    let mut names = Names::new(set.name(), taken, facts.entropy);
    // Creations without an answer come first, under their old names: they may have taken effect (weakness 12).
    let pending: Vec<_> = facts.pending.iter().filter(|name| names.reserve(name)).cloned().collect();
    let mut chosen = pending;
    chosen.truncate(count);
    while chosen.len() < count {
        chosen.push(names.draw());
    }
    let blueprint = blueprint(set);
    let mut actions = chosen.into_iter().map(|name| create_one(set, &blueprint, name));
    sizes(count).into_iter().map(|size| Action::Batch(actions.by_ref().take(size).collect())).collect()
}

/// Sizes of the batches of `count` creations.
pub(super) fn sizes(count: usize) -> Vec<usize> {
    let mut sizes = vec![];
    let (mut rest, mut size) = (count, 1);
    while rest > 0 {
        let next = size.min(rest);
        sizes.push(next);
        rest -= next;
        size = (size * 2).min(BATCH_MAX);
    }
    sizes
}

/// A Machine of the set without its name. The template's spec is copied whole, fields that this version does not know
/// included; of the template's metadata only labels and annotations count.
fn blueprint(set: &MachineSet) -> Value {
    let template = &set.spec.template;
    let mut metadata = Map::new();
    let prefix = naming::prefix(set.name());
    if prefix.len() <= 253 {
        // The server refuses a longer one, even if it is not used.
        metadata.insert("generateName".into(), prefix.into());
    }
    metadata.insert("namespace".into(), json!(set.metadata.namespace));
    if !template.metadata.labels.is_empty() {
        metadata.insert("labels".into(), json!(template.metadata.labels));
    }
    if !template.metadata.annotations.is_empty() {
        metadata.insert("annotations".into(), json!(template.metadata.annotations));
    }
    // Saves the machine controller a write for each Machine.
    metadata.insert("finalizers".into(), json!([names::finalizer::MACHINE]));
    metadata.insert("ownerReferences".into(), json!([membership::owner_reference(set)]));
    let spec = template.spec.as_ref().map_or_else(|| json!({}), |spec| spec.value());
    json!({
        "apiVersion": names::API_VERSION,
        "kind": names::KIND_MACHINE,
        "metadata": metadata,
        "spec": spec,
    })
}

fn create_one(set: &MachineSet, blueprint: &Value, name: String) -> Action {
    let mut object = blueprint.clone();
    let key = Key::new(set.metadata.namespace.as_deref().unwrap_or_default(), &name);
    object["metadata"]["name"] = name.into();
    Action::CreateMachine { owner_uid: set.uid().into(), key, object }
}
