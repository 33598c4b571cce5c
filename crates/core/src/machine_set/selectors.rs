//! Which sets a Machine or a Node concerns: the reverse of a selector, without going through all sets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mapi_api::{Key, Machine, MachineSet, Node, Object, Selector, names};

/// The selectors of all sets, found by namespace and label. Sets whose selector can be met by no Machine are not in it.
#[derive(Debug, Default)]
pub struct Selectors {
    sets: HashMap<Key, Entry>,
    slots: HashMap<Slot, BTreeSet<Key>>,
}

#[derive(Debug)]
struct Entry {
    selector: Selector,
    slot: Slot,
}

/// A namespace and, if the selector asks for one, a label that a Machine must have. Each set is in one slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    namespace: Arc<str>,
    label: Option<(String, String)>,
}

impl Selectors {
    /// Takes in a set as it is now.
    pub fn put(&mut self, set: &MachineSet) {
        let key = set.key();
        self.remove(&key);
        let Ok(selector) = set.spec.selector.parse() else { return };
        if selector.is_empty() {
            return;
        }
        let slot = self.emptiest(&key, &set.spec.selector.match_labels);
        self.slots.entry(slot.clone()).or_default().insert(key.clone());
        self.sets.insert(key, Entry { selector, slot });
    }

    /// Forgets a set.
    pub fn remove(&mut self, key: &Key) {
        let Some(Entry { selector: _, slot }) = self.sets.remove(key) else { return };
        if let Some(keys) = self.slots.get_mut(&slot) {
            keys.remove(key);
            if keys.is_empty() {
                self.slots.remove(&slot);
            }
        }
    }

    /// Sets of a namespace whose selector these labels meet. A Machine without labels meets none.
    pub fn matching(&self, namespace: &str, labels: &BTreeMap<String, String>) -> Vec<Key> {
        if labels.is_empty() {
            return vec![];
        }
        let namespace: Arc<str> = namespace.into();
        let labelled = labels.iter().map(|(key, value)| Some((key.clone(), value.clone())));
        let slots = labelled.chain([None]).map(|label| Slot { namespace: Arc::clone(&namespace), label });
        let candidates = slots.filter_map(|slot| self.slots.get(&slot)).flatten();
        let matches = |key: &&Key| self.sets.get(key).is_some_and(|entry| entry.selector.matches(labels));
        candidates.filter(matches).cloned().collect()
    }

    /// The slot, among the labels that a selector asks for, that tells it best from the others: a label of the whole
    /// cluster is in every selector, one of the set in one.
    fn emptiest(&self, key: &Key, labels: &BTreeMap<String, String>) -> Slot {
        let slot = |label| Slot { namespace: Arc::clone(&key.namespace), label };
        let slots = labels.iter().map(|(key, value)| slot(Some((key.clone(), value.clone()))));
        slots.min_by_key(|slot| self.slots.get(slot).map_or(0, BTreeSet::len)).unwrap_or_else(|| slot(None))
    }
}

/// The sets that a Machine concerns: the one that controls it or, if nothing does, those that could adopt it.
pub fn sets_of(machine: &Machine, selectors: &Selectors) -> Vec<Key> {
    let namespace = machine.metadata.namespace.as_deref().unwrap_or_default();
    match (machine.controller_owner(), &machine.metadata.labels) {
        (Some(owner), _) if owner.kind == names::KIND_MACHINE_SET => vec![Key::new(namespace, &owner.name)],
        (Some(_), _) | (None, None) => vec![],
        (None, Some(labels)) => selectors.matching(namespace, labels),
    }
}

/// Whether a change of a Machine can change what its set counts or does. Most changes of a Machine cannot; a set of a
/// thousand would be looked at for each of them.
pub fn is_relevant(old: &Machine, new: &Machine) -> bool {
    let (before, after) = (&old.metadata, &new.metadata);
    before.uid != after.uid
        || before.labels != after.labels
        || before.owner_references != after.owner_references
        || old.is_deleting() != new.is_deleting()
        || old.node_name() != new.node_name()
}

/// Whether a change of a Node can change what a set counts.
pub fn is_relevant_node(old: &Node, new: &Node) -> bool {
    old.condition("Ready") != new.condition("Ready")
}
