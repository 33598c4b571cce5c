//! One shared cache for one kind: objects, indexes, subscribers and freshness.
//!
//! For: every reader of a kind in the process. Never here: a client (see `watch`) or a decision. Nothing here waits for
//! the network, and no lock is held while a subscriber runs.

use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::runtime::watcher;
use mapi_api::{Key, Object};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::cache::{Cache, Indexes};
use crate::freshness::{Evidence, Holds};
pub use crate::lenient::Lenient;
use crate::outbox::{Item, Outbox};
use crate::queue::Queue;
use crate::writes::{ApiError, Deleted};

/// Computes the values under which an object is found. Must not panic.
pub type IndexFn<T> = fn(&T) -> Vec<String>;

/// A cache. Clones share it.
pub struct Store<T: 'static>(Arc<Inner<T>>);

struct Inner<T: 'static> {
    state: RwLock<State<T>>,
    outbox: Outbox<T>,
    synced: Arc<watch::Sender<bool>>,
    unsettled: Notify,
}

struct State<T: 'static> {
    cache: Cache<T>,
    holds: Holds,
    /// Highest version in the present list so far.
    listed: u64,
    /// Drops what nobody reads of an object.
    trim: fn(&mut T),
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
    pub fn new(indexes: Indexes<T>) -> Self {
        Self::trimmed(indexes, |_| {})
    }

    /// An empty cache that keeps of each object what `trim` leaves of it, for kinds of which only some fields are read.
    pub fn trimmed(indexes: Indexes<T>, trim: fn(&mut T)) -> Self {
        Self(Arc::new(Inner {
            state: RwLock::new(State {
                cache: Cache::new(indexes),
                holds: Holds::default(),
                listed: 0,
                trim,
            }),
            outbox: Outbox::new(),
            synced: Arc::new(watch::Sender::new(false)),
            unsettled: Notify::new(),
        }))
    }

    /// The object of a key.
    pub fn get(&self, key: &Key) -> Option<Arc<T>> {
        self.read().cache.get(key).cloned()
    }

    /// The objects that an index finds under a value, sorted by key.
    pub fn by(&self, index: &'static str, value: &str) -> Vec<Arc<T>> {
        self.read().cache.by(index, value).cloned().collect()
    }

    /// The objects of a namespace, sorted by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<T>> {
        self.read().cache.in_namespace(namespace).cloned().collect()
    }

    /// All objects, sorted by key.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.read().cache.all().cloned().collect()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.read().cache.len()
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
        // An error would mean that the sender is gone; it lives in `self`.
        let _ = synced.wait_for(|is_synced| *is_synced).await;
    }

    /// Calls `f` for every change, in order, outside locks. Objects that are present are told as additions first.
    pub fn subscribe(&self, f: impl Fn(&Change<T>) + Send + Sync + 'static) {
        {
            let state = self.read();
            let present =
                state.cache.all().map(|object| Change::Added(object.clone(), Origin::List)).collect();
            self.0.outbox.push([Item::Subscribe(Arc::new(f), present)]);
        }
        self.0.outbox.deliver();
    }

    /// Calls `f` for every version of an object that cannot be decoded, also for those that are known already.
    pub fn on_undecodable(&self, f: impl Fn(&Undecodable) + Send + Sync + 'static) {
        {
            let state = self.read();
            let present = state.cache.undecodable().cloned().collect();
            self.0.outbox.push([Item::SubscribeUndecodable(Arc::new(f), present)]);
        }
        self.0.outbox.deliver();
    }

    /// The objects whose latest version cannot be decoded. Where an earlier version could, the cache still has that one.
    pub fn undecodable(&self) -> Vec<Undecodable> {
        self.read().cache.undecodable().cloned().collect()
    }

    /// Says that a write begins after which `hold` must not be worked on until the cache shows the result.
    pub fn begin_write(&self, hold: &Key) -> Write<T> {
        self.write().holds.begin(hold);
        Write { store: self.clone(), hold: hold.clone(), is_open: true }
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

    /// Whether `hold` is fresh. If not, `key` is added to the queue once it is.
    pub fn is_fresh_or_requeues<K>(&self, hold: &Key, queue: &Queue<K>, key: &K) -> bool
    where
        K: Clone + Eq + Hash + Send + Sync + 'static,
    {
        if self.is_fresh(hold) {
            return true;
        }
        let (queue, key) = (queue.clone(), key.clone());
        self.when_fresh(hold, move || queue.add(key));
        false
    }

    /// The one way in. Events must come from one watch, in its order.
    pub fn handle(&self, event: watcher::Event<Lenient<T>>) {
        {
            let mut state = self.write();
            let items = match event {
                watcher::Event::Init => {
                    state.begin_list();
                    Vec::new()
                }
                watcher::Event::InitApply(object) => {
                    state.listed = state.listed.max(number(object.version()).unwrap_or_default());
                    state.put(object, Origin::List)
                }
                watcher::Event::Apply(object) => {
                    let version = number(object.version());
                    let items = state.put(object, Origin::Watch);
                    state.seen(version, items)
                }
                watcher::Event::Delete(object) => {
                    let items = state.remove(&object.key());
                    state.seen(number(object.version()), items)
                }
                watcher::Event::InitDone => {
                    let items = state.end_list();
                    let synced = self.0.synced.clone();
                    let is_first = !*synced.borrow();
                    let tell: Item<T> = Item::Run(Box::new(move || _ = synced.send_replace(true)));
                    items.into_iter().chain(is_first.then_some(tell)).collect()
                }
            };
            self.0.outbox.push(items);
        }
        self.0.outbox.deliver();
    }

    /// Resolves when a write ended whose evidence is not there yet.
    pub(crate) async fn unsettled(&self) {
        self.0.unsettled.notified().await;
    }

    /// When the evidence that is missing longest should have come.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.read().holds.due()
    }

    fn end_write(&self, hold: &Key, evidence: Option<Evidence>) {
        let is_fresh = {
            let mut state = self.write();
            let is_missing = |evidence: &Evidence| match evidence {
                Evidence::Gone(key, uid) => state.cache.has(key, uid),
                Evidence::Version(_) | Evidence::Relist => true,
            };
            let evidence = evidence.filter(is_missing);
            state.holds.end(hold, evidence);
            let items = state.settle([hold.clone()]);
            self.0.outbox.push(items);
            state.holds.is_fresh(hold)
        };
        if !is_fresh {
            self.0.unsettled.notify_one();
        }
        self.0.outbox.deliver();
    }

    fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.0.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Object> State<T> {
    fn begin_list(&mut self) {
        self.cache.begin_list();
        self.holds.relist_begun();
        self.listed = 0;
    }

    fn end_list(&mut self) -> Vec<Item<T>> {
        let mut items: Vec<Item<T>> = self.cache.end_list().into_iter().map(Item::Change).collect();
        let keys = self.holds.relist_complete(self.listed);
        items.extend(self.settle(keys));
        self.holds.rebuild();
        items
    }

    fn put(&mut self, object: Lenient<T>, origin: Origin) -> Vec<Item<T>> {
        let key = object.key();
        let mut items: Vec<Item<T>> = match object.into_result() {
            Ok(mut object) => {
                (self.trim)(&mut object);
                self.cache.put(object, origin).into_iter().map(Item::Change).collect()
            }
            Err(broken) => {
                let (removed, news) = self.cache.put_broken(key.clone(), *broken);
                removed.map(Item::Change).into_iter().chain(news.map(Item::Undecodable)).collect()
            }
        };
        if items.iter().any(|item| matches!(item, Item::Change(Change::Removed(_)))) {
            let keys = self.holds.waiting_for_removal(&key);
            items.extend(self.settle(keys));
        }
        items
    }

    fn remove(&mut self, key: &Key) -> Vec<Item<T>> {
        let mut items: Vec<Item<T>> = self.cache.remove(key).map(Item::Change).into_iter().collect();
        let keys = self.holds.waiting_for_removal(key);
        items.extend(self.settle(keys));
        items
    }

    /// Everything up to `version` was seen. Whoever waited for it is told after the changes.
    fn seen(&mut self, version: Option<u64>, mut items: Vec<Item<T>>) -> Vec<Item<T>> {
        if let Some(version) = version {
            let keys = self.holds.advance(version);
            items.extend(self.settle(keys));
        }
        items
    }

    fn settle(&mut self, holds: impl IntoIterator<Item = Key>) -> Vec<Item<T>> {
        let cache = &self.cache;
        let exists = |key: &Key, uid: &str| cache.has(key, uid);
        holds.into_iter().flat_map(|hold| self.holds.settle(&hold, &exists)).map(Item::Run).collect()
    }
}

/// A write that began. Dropping it says that it failed.
#[must_use = "dropping it says that the write failed"]
pub struct Write<T: Object + Send + Sync + 'static> {
    store: Store<T>,
    hold: Key,
    is_open: bool,
}

impl<T: Object + Send + Sync + 'static> Write<T> {
    /// It was accepted, and the server answered with this version. A version that is not a number counts as unseen
    /// until a relist.
    pub fn done(self, resource_version: &str) {
        self.end(Some(number(resource_version).map_or(Evidence::Relist, Evidence::Version)));
    }

    /// It changed nothing.
    pub fn failed(self) {
        self.end(None);
    }

    /// It removed the object of this key and UID.
    pub fn gone(self, key: &Key, uid: &str) {
        self.end(Some(Evidence::Gone(key.clone(), uid.to_owned())));
    }

    /// Nobody knows whether it happened: held until a relist that begins now or later, which is asked for.
    pub fn unknown(self) {
        self.end(Some(Evidence::Relist));
    }

    /// Ends a create or a patch as its answer says.
    pub fn finish(self, answer: Result<&T, &ApiError>) {
        match answer {
            Ok(object) => self.done(object.version()),
            Err(error) if error.is_unknown_outcome() => self.unknown(),
            Err(_) => self.failed(),
        }
    }

    /// Ends a delete of the object of this key and UID as its answer says.
    pub fn finish_delete(self, key: &Key, uid: &str, answer: Result<&Deleted<T>, &ApiError>) {
        match answer {
            Ok(Deleted::Gone) => self.gone(key, uid),
            Ok(Deleted::Marked(object)) => self.done(object.version()),
            Err(error) if error.is_unknown_outcome() => self.unknown(),
            Err(_) => self.failed(),
        }
    }

    fn end(mut self, evidence: Option<Evidence>) {
        self.is_open = false;
        self.store.end_write(&self.hold, evidence);
    }
}

impl<T: Object + Send + Sync + 'static> Drop for Write<T> {
    fn drop(&mut self) {
        if self.is_open {
            self.store.end_write(&self.hold, None);
        }
    }
}

/// Versions are opaque on the wire; every server that stores in etcd counts.
fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

#[cfg(test)]
mod tests;
