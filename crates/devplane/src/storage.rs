//! All objects, and what happened to them: one revision counts all changes. Never here: what a change may be.
//!
//! An object is kept as the text that is sent. What is asked of it often, labels and the like, is kept beside it.
//! The changes of a while are kept with what was there before, so that a watch can begin in the past and a list can be
//! continued as it was.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Weak};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::Notify;

use crate::kinds::{Bucket, Kind, select};

/// Changes of one bucket that are kept. More than a watch falls behind while it is read at all; a burst of some thousand
/// creates must not end it.
const HISTORY: usize = 8192;

/// Five minutes: what etcd keeps behind a Kubernetes API server by default.
const HISTORY_AGE: SignedDuration = SignedDuration::from_mins(5);

/// Where an object is in its bucket. Sorted as lists are: by namespace, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Empty for kinds without namespaces.
    pub namespace: String,
    pub name: String,
}

/// One state of an object.
#[derive(Debug)]
pub(crate) struct Object {
    pub key: Key,
    pub uid: String,
    /// `metadata.resourceVersion`.
    pub revision: u64,
    pub labels: Vec<(String, String)>,
    /// What field selectors ask of it, in the order of [`Kind::selectable`].
    pub fields: Vec<(&'static str, String)>,
    pub owners: Vec<Owner>,
    /// Whether it has a deletion timestamp.
    pub is_deleting: bool,
    /// The version that it was written in.
    pub api_version: String,
    /// The whole object, as it is sent.
    pub json: String,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub is_controller: bool,
    /// `blockOwnerDeletion`.
    pub blocks: bool,
}

/// Something that happened to an object.
#[derive(Debug)]
pub(crate) struct Change {
    pub bucket: Bucket,
    pub revision: u64,
    at: Timestamp,
    /// The state before; `None` for a new object.
    pub before: Option<Arc<Object>>,
    /// The state after; of a deleted object its last one, with the revision of the deletion.
    pub now: Arc<Object>,
    pub is_deletion: bool,
}

/// A revision that is asked for is not kept any more; this is the oldest that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compacted(pub u64);

/// One page of a list.
pub(crate) struct Page {
    pub objects: Vec<Arc<Object>>,
    /// How many follow; 0 at the end.
    pub remaining: usize,
}

#[derive(Default)]
struct Collection {
    objects: BTreeMap<Key, Arc<Object>>,
    history: VecDeque<Arc<Change>>,
    /// Changes up to this revision are not kept.
    floor: u64,
    /// Who is woken by a change. A permit waits for who is busy, so no change is missed.
    watchers: Vec<Weak<Notify>>,
}

/// All objects.
pub(crate) struct Storage {
    revision: u64,
    floor: u64,
    collections: HashMap<Bucket, Collection>,
    /// What the loops have not seen yet.
    unseen: Vec<Arc<Change>>,
}

impl Object {
    fn new(kind: &Kind, value: &Value, revision: u64) -> Self {
        let metadata = &value["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let labels = metadata["labels"].as_object().into_iter().flatten();
        let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        Object {
            key: Key { namespace: text(&metadata["namespace"]), name: text(&metadata["name"]) },
            uid: text(&metadata["uid"]),
            revision,
            labels: labels.map(|(name, value)| (name.clone(), text(value))).collect(),
            fields: kind.selectable.iter().map(|path| (*path, select::field(value, path))).collect(),
            owners: owners.map(Owner::new).collect(),
            is_deleting: metadata["deletionTimestamp"].is_string(),
            api_version: text(&value["apiVersion"]),
            json: value.to_string(),
        }
    }

    /// The object to change. It was made by us, so it can be read.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.json).expect("what is stored was written from a value")
    }
}

impl Owner {
    fn new(reference: &Value) -> Self {
        let text = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
        let is = |name: &str| reference[name].as_bool().unwrap_or_default();
        Owner {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            is_controller: is("controller"),
            blocks: is("blockOwnerDeletion"),
        }
    }
}

impl Storage {
    /// An empty storage.
    pub(crate) fn new() -> Self {
        Storage { revision: 1, floor: 1, collections: HashMap::new(), unseen: Vec::new() }
    }

    /// The revision of the newest change.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// An object as it is now.
    pub(crate) fn get(&self, bucket: &Bucket, key: &Key) -> Option<&Arc<Object>> {
        self.collections.get(bucket)?.objects.get(key)
    }

    /// All objects of a bucket, or those of a namespace, as they are now, sorted by key.
    pub(crate) fn iter<'a>(
        &'a self,
        bucket: &Bucket,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Object>> + use<'a> {
        let objects = self.collections.get(bucket).map(|collection| &collection.objects);
        let from = Key { namespace: namespace.unwrap_or_default().to_owned(), name: String::new() };
        let is_inside =
            move |object: &&Arc<Object>| namespace.is_none_or(|namespace| object.key.namespace == namespace);
        objects
            .into_iter()
            .flat_map(move |objects| objects.range(from.clone()..))
            .map(|(_, object)| object)
            .take_while(is_inside)
    }

    /// How many objects a bucket holds.
    pub(crate) fn count(&self, bucket: &Bucket) -> usize {
        self.collections.get(bucket).map_or(0, |collection| collection.objects.len())
    }

    /// Keeps a new state of an object, or a new object, under the next revision, which it writes into it.
    pub(crate) fn put(&mut self, now: Timestamp, kind: &Kind, mut value: Value) -> Arc<Object> {
        self.revision += 1;
        value["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let object = Arc::new(Object::new(kind, &value, self.revision));
        let collection = self.collections.entry(kind.bucket.clone()).or_default();
        let before = collection.objects.insert(object.key.clone(), object.clone());
        self.note(now, kind, before, object.clone(), false);
        object
    }

    /// Takes an object away. `last` is what is told about it.
    pub(crate) fn remove(&mut self, now: Timestamp, kind: &Kind, mut last: Value) -> Arc<Object> {
        self.revision += 1;
        last["metadata"]["resourceVersion"] = self.revision.to_string().into();
        let object = Arc::new(Object::new(kind, &last, self.revision));
        let collection = self.collections.entry(kind.bucket.clone()).or_default();
        let before = collection.objects.remove(&object.key);
        self.note(now, kind, before, object.clone(), true);
        object
    }

    fn note(
        &mut self,
        at: Timestamp,
        kind: &Kind,
        before: Option<Arc<Object>>,
        now: Arc<Object>,
        is_deletion: bool,
    ) {
        let bucket = kind.bucket.clone();
        let change = Arc::new(Change { bucket, revision: self.revision, at, before, now, is_deletion });
        let collection = self.collections.entry(kind.bucket.clone()).or_default();
        collection.history.push_back(change.clone());
        while let Some(oldest) = collection.history.front()
            && (collection.history.len() > HISTORY || at.duration_since(oldest.at) > HISTORY_AGE)
        {
            collection.floor = oldest.revision;
            collection.history.pop_front();
        }
        self.unseen.push(change);
        collection.watchers.retain(|watcher| watcher.upgrade().map(|watcher| watcher.notify_one()).is_some());
    }

    /// Forgets all changes up to now: watches and lists cannot begin in the past any more.
    pub(crate) fn compact(&mut self) {
        self.floor = self.revision;
        for collection in self.collections.values_mut() {
            collection.history.clear();
        }
    }

    /// What happened since this was last asked.
    pub(crate) fn take_unseen(&mut self) -> Vec<Arc<Change>> {
        std::mem::take(&mut self.unseen)
    }

    /// Whether the loops have something to see.
    pub(crate) fn has_unseen(&self) -> bool {
        !self.unseen.is_empty()
    }

    /// Wakes `watcher` at each change of a bucket, as long as it is kept.
    pub(crate) fn wake(&mut self, bucket: &Bucket, watcher: &Arc<Notify>) {
        self.collections.entry(bucket.clone()).or_default().watchers.push(Arc::downgrade(watcher));
    }

    /// The changes of a bucket after a revision, the oldest first, at most `limit`.
    pub(crate) fn changes(
        &self,
        bucket: &Bucket,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Change>>, Compacted> {
        let Some(collection) = self.collections.get(bucket) else {
            return if after < self.floor { Err(Compacted(self.floor)) } else { Ok(Vec::new()) };
        };
        let floor = collection.floor.max(self.floor);
        if after < floor {
            return Err(Compacted(floor));
        }
        let from = collection.history.partition_point(|change| change.revision <= after);
        Ok(collection.history.range(from..).take(limit).cloned().collect())
    }

    /// A part of a bucket as it was at a revision: what follows `after`, and passes `is_wanted`, at most `limit`
    /// objects (0 = all).
    pub(crate) fn page(
        &self,
        bucket: &Bucket,
        revision: u64,
        after: Option<&Key>,
        limit: usize,
        is_wanted: impl Fn(&Object) -> bool,
    ) -> Result<Page, Compacted> {
        let mut overlay: BTreeMap<&Key, Option<&Arc<Object>>> = BTreeMap::new();
        let changes =
            if revision < self.revision { self.changes(bucket, revision, usize::MAX)? } else { Vec::new() };
        // The oldest change after the revision tells what was there at it.
        for change in changes.iter().rev() {
            overlay.insert(&change.now.key, change.before.as_ref());
        }
        let lower = after.map_or(Bound::Unbounded, Bound::Excluded);
        let empty = BTreeMap::new();
        let objects = self.collections.get(bucket).map_or(&empty, |collection| &collection.objects);
        let unchanged =
            objects.range::<Key, _>((lower, Bound::Unbounded)).filter(|(key, _)| !overlay.contains_key(*key));
        let mut found: Vec<&Arc<Object>> =
            unchanged.map(|(_, object)| object).filter(|object| is_wanted(object)).collect();
        let is_after = |key: &Key| after.is_none_or(|after| key > after);
        let changed = overlay.iter().filter(|(key, _)| is_after(key)).filter_map(|(_, object)| *object);
        let count = found.len();
        found.extend(changed.filter(|object| is_wanted(object)));
        if found.len() > count {
            found.sort_by(|a, b| a.key.cmp(&b.key));
        }
        let taken = if limit == 0 { found.len() } else { limit.min(found.len()) };
        Ok(Page { remaining: found.len() - taken, objects: found.into_iter().take(taken).cloned().collect() })
    }
}
