//! The data structure inside a store: objects, indexes, undecodable objects. Never here: locks, callbacks, time.

use std::collections::BTreeMap;
use std::sync::Arc;

use mapi_api::{Key, Object};

use crate::lenient::Broken;
use crate::store::{Change, IndexFn, Origin, Undecodable};

/// Named functions that compute the values under which an object is found.
pub(crate) type Indexes<T> = &'static [(&'static str, IndexFn<T>)];

pub(crate) struct Cache<T: 'static> {
    functions: Indexes<T>,
    objects: BTreeMap<Key, Entry<T>>,
    /// By index, then value: the keys, sorted. Most values have one key, so a vector is smaller than a set.
    indexes: Vec<BTreeMap<Box<str>, Vec<Key>>>,
    undecodable: BTreeMap<Key, Poison>,
    /// Number of the last list begun. What a complete list did not renew is gone.
    round: u64,
}

struct Entry<T> {
    object: Arc<T>,
    round: u64,
}

struct Poison {
    found: Undecodable,
    version: Option<String>,
    round: u64,
}

impl<T: Object> Cache<T> {
    pub(crate) fn new(functions: Indexes<T>) -> Self {
        let indexes = functions.iter().map(|_| BTreeMap::new()).collect();
        Self { functions, objects: BTreeMap::new(), indexes, undecodable: BTreeMap::new(), round: 0 }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<T>> {
        self.objects.get(key).map(|entry| &entry.object)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.objects.values().map(|entry| &entry.object)
    }

    pub(crate) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<T>> {
        let from_here = self.objects.range(Key::new(namespace, "")..);
        from_here.take_while(move |(key, _)| &*key.namespace == namespace).map(|(_, entry)| &entry.object)
    }

    pub(crate) fn by(&self, index: &str, value: &str) -> impl Iterator<Item = &Arc<T>> {
        let position = self.functions.iter().position(|(name, _)| *name == index);
        let position = position.expect("the index is one of those that the store was made with");
        let keys = self.indexes[position].get(value).map(Vec::as_slice).unwrap_or_default();
        keys.iter().filter_map(|key| self.get(key))
    }

    pub(crate) fn undecodable(&self) -> impl Iterator<Item = &Undecodable> {
        self.undecodable.values().map(|poison| &poison.found)
    }

    pub(crate) fn has(&self, key: &Key, uid: &str) -> bool {
        self.get(key).is_some_and(|object| object.uid() == uid)
            || self.undecodable.get(key).is_some_and(|poison| poison.found.uid == uid)
    }

    pub(crate) fn begin_list(&mut self) {
        self.round += 1;
    }

    /// Takes out what the list did not have.
    pub(crate) fn end_list(&mut self) -> Vec<Change<T>> {
        let round = self.round;
        self.undecodable.retain(|_, poison| poison.round == round);
        let stale = self.objects.iter().filter(|(_, entry)| entry.round != round);
        let stale: Vec<Key> = stale.map(|(key, _)| key.clone()).collect();
        stale.iter().filter_map(|key| self.take(key)).collect()
    }

    /// Puts an object in. A name with another UID is another object, whose predecessor's deletion was missed.
    pub(crate) fn put(&mut self, object: T, origin: Origin) -> Vec<Change<T>> {
        let key = object.key();
        self.undecodable.remove(&key);
        let round = self.round;
        let before = self.objects.get_mut(&key).map(|entry| {
            entry.round = round;
            entry.object.clone()
        });
        let object = Arc::new(object);
        match before {
            Some(before) if before.uid() == object.uid() => {
                if !before.version().is_empty() && before.version() == object.version() {
                    return Vec::new();
                }
                self.reindex(&key, Some(&before), Some(&object));
                self.objects.insert(key, Entry { object: object.clone(), round });
                vec![Change::Updated { old: before, new: object }]
            }
            before => {
                self.reindex(&key, before.as_deref(), Some(&object));
                self.objects.insert(key, Entry { object: object.clone(), round });
                before.map(Change::Removed).into_iter().chain([Change::Added(object, origin)]).collect()
            }
        }
    }

    /// Notes an object that cannot be decoded. An earlier version of the same object stays: that it cannot be read is no
    /// reason to act as if it were gone. The second value is set when there is something new to tell.
    pub(crate) fn put_broken(
        &mut self,
        key: Key,
        broken: Broken,
    ) -> (Option<Change<T>>, Option<Undecodable>) {
        let Broken { metadata, error } = broken;
        let found = Undecodable { key: key.clone(), uid: metadata.uid.unwrap_or_default(), error };
        let round = self.round;
        let is_another = self.get(&key).is_some_and(|object| object.uid() != found.uid);
        let removed = if is_another { self.take(&key) } else { None };
        if let Some(entry) = self.objects.get_mut(&key) {
            entry.round = round;
        }
        let poison = Poison { found: found.clone(), version: metadata.resource_version, round };
        let known = self.undecodable.insert(key, poison);
        let version = self.undecodable.get(&found.key).map(|poison| &poison.version);
        let is_new = known.is_none_or(|known| known.found != found || Some(&known.version) != version);
        (removed, is_new.then_some(found))
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<Change<T>> {
        self.undecodable.remove(key);
        self.take(key)
    }

    #[cfg(test)]
    pub(crate) fn is_drained(&self) -> bool {
        self.objects.is_empty() && self.undecodable.is_empty() && self.indexes.iter().all(BTreeMap::is_empty)
    }

    fn take(&mut self, key: &Key) -> Option<Change<T>> {
        let entry = self.objects.remove(key)?;
        self.reindex(key, Some(&entry.object), None);
        Some(Change::Removed(entry.object))
    }

    fn reindex(&mut self, key: &Key, old: Option<&T>, new: Option<&T>) {
        for ((_, values_of), index) in self.functions.iter().zip(&mut self.indexes) {
            let values = |object: Option<&T>| object.map(values_of).unwrap_or_default();
            let (old, new) = (values(old), values(new));
            if old == new {
                continue;
            }
            for value in &old {
                unlist(index, value, key);
            }
            for value in new {
                let keys = index.entry(value.into()).or_insert_with(|| Vec::with_capacity(1));
                if let Err(position) = keys.binary_search(key) {
                    keys.insert(position, key.clone());
                }
            }
        }
    }
}

/// Removes a key from under a value, and gives memory back.
fn unlist(index: &mut BTreeMap<Box<str>, Vec<Key>>, value: &str, key: &Key) {
    let Some(keys) = index.get_mut(value) else { return };
    if let Ok(position) = keys.binary_search(key) {
        keys.remove(position);
    }
    if keys.is_empty() {
        index.remove(value);
    } else if keys.len() * 4 < keys.capacity() {
        keys.shrink_to(keys.len() * 2);
    }
}
