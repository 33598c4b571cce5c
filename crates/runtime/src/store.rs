//! One shared cache for one kind: objects, indexes, subscribers and freshness.
//!
//! For: every reader of a kind in the process. Never here: a client (see `watch`) or a decision. Nothing here blocks,
//! and no lock is held while a subscriber runs.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::runtime::watcher;
use mapi_api::{Key, Object};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::freshness::{Evidence, Holds};
pub use crate::lenient::Lenient;
use crate::outbox::{Item, Outbox};
use crate::writes::{ApiError, Deleted};

/// Computes the values under which an object is found. Must not panic.
pub type IndexFn<T> = fn(&T) -> Vec<String>;

/// A cache. Clones share it.
pub struct Store<T>(Arc<Inner<T>>);

struct Inner<T> {
    indexes: &'static [(&'static str, IndexFn<T>)],
    state: RwLock<State<T>>,
    outbox: Mutex<Outbox<T>>,
    synced: watch::Sender<bool>,
    unsettled: Notify,
}

struct State<T> {
    objects: BTreeMap<Key, Entry<T>>,
    /// By index, then value: the keys, sorted.
    indexes: Vec<BTreeMap<Box<str>, Vec<Key>>>,
    undecodable: BTreeMap<Key, (u64, Undecodable)>,
    holds: Holds,
    /// Number of the last list begun.
    round: u64,
    /// Highest version in it so far.
    listed: u64,
}

struct Entry<T> {
    object: Arc<T>,
    round: u64,
}

/// Where an addition came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A list, or the objects present when somebody subscribed: not urgent.
    List,
    /// A watch: it happened just now.
    Watch,
}

/// What happened to an object.
#[derive(Debug)]
pub enum Change<T> {
    /// It is new.
    Added(Arc<T>, Origin),
    /// It changed and has the same UID.
    Updated {
        /// Before.
        old: Arc<T>,
        /// After.
        new: Arc<T>,
    },
    /// It was deleted, or was not in a later list, or its name has another UID now.
    Removed(Arc<T>),
}

/// An object that is on the server and cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
    /// Why, without values.
    pub error: String,
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Object + Send + Sync + 'static> Store<T> {
    /// An empty cache with these indexes.
    pub fn new(indexes: &'static [(&'static str, IndexFn<T>)]) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            indexes: indexes.iter().map(|_| BTreeMap::new()).collect(),
            undecodable: BTreeMap::new(),
            holds: Holds::default(),
            round: 0,
            listed: 0,
        };
        Self(Arc::new(Inner {
            indexes,
            state: RwLock::new(state),
            outbox: Mutex::default(),
            synced: watch::Sender::new(false),
            unsettled: Notify::new(),
        }))
    }

    /// The object of a key.
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.read().objects.get(key).map(|entry| entry.object.clone())
    }

    /// The objects that an index finds under a value, sorted by key.
    pub fn by(&self, index: &'static str, value: &str) -> Vec<Arc<T>> {
        let position = self.0.indexes.iter().position(|(name, _)| *name == index);
        let position = position.expect("the index is one of those that the store was made with");
        let state = self.read();
        let keys = state.indexes[position].get(value).map(Vec::as_slice).unwrap_or_default();
        keys.iter().filter_map(|key| state.objects.get(key)).map(|entry| entry.object.clone()).collect()
    }

    /// The objects of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        let state = self.read();
        let from_here = state.objects.range(Key::new(namespace, "")..);
        let here = from_here.take_while(|(key, _)| &*key.namespace == namespace);
        here.map(|(_, entry)| entry.object.clone()).collect()
    }

    /// All objects, sorted by key.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.read().objects.values().map(|entry| entry.object.clone()).collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is complete and was told to all subscribers.
    pub fn is_synced(&self) -> bool {
        *self.0.synced.borrow()
    }

    /// Waits for that.
    pub async fn synced(&self) {
        let mut synced = self.0.synced.subscribe();
        // The sender lives as long as `self`, so this ends with the value true.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Calls `f` for every change, in order, outside locks. Objects that are present are told as additions first.
    pub fn subscribe(&self, f: impl Fn(&Change<T>) + Send + Sync + 'static) {
        {
            let state = self.read();
            let present = state.objects.values().map(|entry| entry.object.clone()).collect();
            self.outbox().push(Item::Subscribe(Arc::new(f), present));
        }
        self.deliver();
    }

    /// Calls `f` for every version of an object that cannot be decoded, also for those that are known already.
    pub fn on_undecodable(&self, f: impl Fn(&Undecodable) + Send + Sync + 'static) {
        {
            let state = self.read();
            let present = state.undecodable.values().map(|(_, found)| found.clone()).collect();
            self.outbox().push(Item::SubscribeUndecodable(Arc::new(f), present));
        }
        self.deliver();
    }

    /// The objects whose latest version cannot be decoded. Where an earlier version could, the cache still has that one:
    /// an object that cannot be read is no reason to act as if it were gone.
    pub fn undecodable(&self) -> Vec<Undecodable> {
        self.read().undecodable.values().map(|(_, found)| found.clone()).collect()
    }

    /// Says that a write begins after which `hold` must not be worked on until the cache shows the result.
    pub fn begin_write(&self, hold: &Key) -> Write<T> {
        self.write().holds.begin(hold);
        Write { store: self.clone(), hold: Some(hold.clone()) }
    }

    /// Whether the cache shows every write that was announced for `hold`.
    pub fn is_fresh(&self, hold: &Key) -> bool {
        self.read().holds.is_fresh(hold)
    }

    /// Calls `f` once `hold` is fresh, at once if it is.
    pub fn when_fresh(&self, hold: &Key, f: impl FnOnce() + Send + 'static) {
        let ready = self.write().holds.wait(hold, Box::new(f));
        if let Some(f) = ready {
            f();
        }
    }

    /// The one way in. Events must come from one watch, in its order.
    pub fn handle(&self, event: watcher::Event<Lenient<T>>) {
        match event {
            watcher::Event::Init => {
                let mut state = self.write();
                state.round = state.holds.relist_begun();
                state.listed = 0;
            }
            watcher::Event::InitApply(object) => self.apply(object, Origin::List),
            watcher::Event::Apply(object) => self.apply(object, Origin::Watch),
            watcher::Event::Delete(object) => self.delete(&object),
            watcher::Event::InitDone => self.list_complete(),
        }
        self.deliver();
    }

    /// Resolves when a write ended whose evidence is not there yet.
    pub(crate) async fn unsettled(&self) {
        self.0.unsettled.notified().await;
    }

    /// When the evidence that is missing longest should have come.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.read().holds.due()
    }

    fn apply(&self, object: Lenient<T>, origin: Origin) {
        let (key, version) = (object.key(), number(object.version()));
        match object.into_result() {
            Ok(object) => {
                let values = self.values(&object);
                let mut state = self.write();
                state.put(&key, Arc::new(object), values, self.0.indexes).map(|change| match change {
                    Change::Added(object, _) => Change::Added(object, origin),
                    other => other,
                });
            }
            Err(_) => {}
        }
        let _ = version;
    }
}
