//! A queue of keys. A key is worked on once at a time, and never lost: added while it is worked on, it comes again.
//!
//! For: what wakes controllers. Never here: what is done with a key. Waiting needs no timer while nothing is delayed.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::metrics::QueueMetrics;

/// How long a key waits after its n-th failure in a row: `base` doubled n times, at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub base: Duration,
    /// At most.
    pub max: Duration,
}

impl Default for Backoff {
    /// 5 ms to 1,000 s, as users know it from other controllers.
    fn default() -> Self {
        Self { base: Duration::from_millis(5), max: Duration::from_secs(1000) }
    }
}

impl Backoff {
    fn after(self, failures: u32) -> Duration {
        self.base.saturating_mul(2_u32.saturating_pow(failures)).min(self.max)
    }
}

/// Every sixteenth key comes from the low lane, so that a busy high lane does not starve it.
const LOW_SHARE: u64 = 16;

/// Above this capacity, a set that ran empty gives its memory back.
const KEEP_CAPACITY: usize = 256;

/// A queue. Clones share it.
pub struct Queue<K>(Arc<Inner<K>>);

struct Inner<K> {
    name: &'static str,
    backoff: Backoff,
    state: Mutex<State<K>>,
    changed: Notify,
    metrics: QueueMetrics,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    High,
    Low,
}

struct State<K> {
    /// Keys to be worked on, by lane and age.
    ready: BTreeMap<(Lane, u64), (K, Instant)>,
    /// Every key that wants work: its place in `ready`, or the lane it will get when it is done.
    dirty: HashMap<K, Place>,
    processing: HashMap<K, Instant>,
    delayed: BTreeMap<(Instant, u64), K>,
    delayed_until: HashMap<K, (Instant, u64)>,
    failures: HashMap<K, u32>,
    sequence: u64,
    taken: u64,
    is_closed: bool,
}

#[derive(Clone, Copy)]
enum Place {
    Ready(Lane, u64),
    AfterDone(Lane),
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue. The name is the `name` label of its metrics.
    pub fn new(name: &'static str, backoff: Backoff) -> Self {
        let state = State {
            ready: BTreeMap::new(),
            dirty: HashMap::new(),
            processing: HashMap::new(),
            delayed: BTreeMap::new(),
            delayed_until: HashMap::new(),
            failures: HashMap::new(),
            sequence: 0,
            taken: 0,
            is_closed: false,
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        Self(Arc::new(Inner { name, backoff, state, changed, metrics: QueueMetrics::new(name) }))
    }

    /// The name of the queue.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Adds a key, unless it waits already.
    pub fn add(&self, key: K) {
        self.put(&mut self.lock(), key, Lane::High);
    }

    /// Adds a key that may wait until others are done: objects of the first list, periodic looks.
    pub fn add_low(&self, key: K) {
        self.put(&mut self.lock(), key, Lane::Low);
    }

    /// Adds a key later. Of several delays of a key the earliest wins.
    pub fn add_after(&self, key: K, delay: Duration) {
        let mut state = self.lock();
        if state.is_closed {
            return;
        }
        if delay.is_zero() {
            return self.put(&mut state, key, Lane::High);
        }
        // A delay beyond what the clock can say is cut to a year.
        let year = Duration::from_secs(365 * 24 * 3600);
        let due = (Instant::now() + delay.min(year), state.next_sequence());
        match state.delayed_until.get(&key).copied() {
            Some(earlier) if earlier.0 <= due.0 => return,
            Some(later) => _ = state.delayed.remove(&later),
            None => {}
        }
        state.delayed.insert(due, key.clone());
        state.delayed_until.insert(key, due);
        drop(state);
        self.0.changed.notify_one();
    }

    /// Adds a key after its back-off and counts a failure. Returns how long it waits.
    pub fn add_backoff(&self, key: K) -> Duration {
        let delay = {
            let mut state = self.lock();
            let failures = state.failures.entry(key.clone()).or_default();
            let delay = self.0.backoff.after(*failures);
            *failures = failures.saturating_add(1);
            delay
        };
        self.0.metrics.retries.inc();
        self.add_after(key, delay);
        delay
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        let mut state = self.lock();
        state.failures.remove(key);
        give_back(&mut state.failures);
    }

    /// Waits for a key and takes it. `None`: the queue is closed. Whoever takes a key must call [`Queue::done`].
    pub async fn next(&self) -> Option<K> {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            changed.as_mut().enable();
            let due = {
                let mut state = self.lock();
                if state.is_closed {
                    return None;
                }
                let now = Instant::now();
                while let Some(key) = state.take_due(now) {
                    self.put(&mut state, key, Lane::High);
                }
                if let Some((key, since)) = state.take_ready() {
                    state.processing.insert(key.clone(), now);
                    self.0.metrics.depth.dec();
                    self.0.metrics.waited.observe(now.duration_since(since).as_secs_f64());
                    return Some(key);
                }
                state.delayed.first_key_value().map(|((at, _), _)| *at)
            };
            match due {
                Some(at) => tokio::select! { () = changed => {}, () = sleep_until(at) => {} },
                None => changed.await,
            }
        }
    }

    /// Gives a key back. If it was added meanwhile, it is ready again.
    pub fn done(&self, key: &K) {
        let mut state = self.lock();
        if let Some(since) = state.processing.remove(key) {
            self.0.metrics.worked.observe(since.elapsed().as_secs_f64());
        }
        if let Some(Place::AfterDone(lane)) = state.dirty.remove(key) {
            self.enqueue(&mut state, key.clone(), lane);
        }
        give_back(&mut state.processing);
        give_back(&mut state.dirty);
    }

    /// Ends the queue: nothing more is given out or taken in.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.0.metrics.depth.sub(state.ready.len() as i64);
        state.ready.clear();
        state.delayed.clear();
        state.delayed_until.clear();
        drop(state);
        self.0.changed.notify_waiters();
        self.0.changed.notify_one();
    }

    /// How many keys are ready.
    pub fn len(&self) -> usize {
        self.lock().ready.len()
    }

    /// Whether no key is ready.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How often a key failed in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.lock().failures.get(key).copied().unwrap_or_default()
    }

    fn put(&self, state: &mut State<K>, key: K, lane: Lane) {
        if state.is_closed {
            return;
        }
        match state.dirty.get(&key).copied() {
            Some(Place::Ready(Lane::Low, place)) if lane == Lane::High => {
                let Some((key, since)) = state.ready.remove(&(Lane::Low, place)) else { return };
                state.dirty.insert(key.clone(), Place::Ready(Lane::High, place));
                state.ready.insert((Lane::High, place), (key, since));
            }
            Some(Place::AfterDone(Lane::Low)) if lane == Lane::High => {
                state.dirty.insert(key, Place::AfterDone(Lane::High));
            }
            Some(Place::Ready(..) | Place::AfterDone(_)) => {}
            None => {
                self.0.metrics.adds.inc();
                if state.processing.contains_key(&key) {
                    state.dirty.insert(key, Place::AfterDone(lane));
                } else {
                    self.enqueue(state, key, lane);
                }
            }
        }
    }

    fn enqueue(&self, state: &mut State<K>, key: K, lane: Lane) {
        if state.is_closed {
            return;
        }
        let place = state.next_sequence();
        state.dirty.insert(key.clone(), Place::Ready(lane, place));
        state.ready.insert((lane, place), (key, Instant::now()));
        self.0.metrics.depth.inc();
        self.0.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn take_due(&mut self, now: Instant) -> Option<K> {
        let first = self.delayed.first_entry().filter(|first| first.key().0 <= now)?;
        let key = first.remove();
        self.delayed_until.remove(&key);
        give_back(&mut self.delayed_until);
        Some(key)
    }

    fn take_ready(&mut self) -> Option<(K, Instant)> {
        self.taken = self.taken.wrapping_add(1);
        let low = self.ready.last_key_value().map(|(place, _)| place.0) == Some(Lane::Low);
        let (key, since) = if low && self.taken.is_multiple_of(LOW_SHARE) {
            let oldest = *self.ready.range((Lane::Low, 0)..).next()?.0;
            self.ready.remove(&oldest)?
        } else {
            self.ready.pop_first()?.1
        };
        self.dirty.remove(&key);
        Some((key, since))
    }
}

fn give_back<K: Eq + Hash, V>(map: &mut HashMap<K, V>) {
    if map.is_empty() && map.capacity() > KEEP_CAPACITY {
        map.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests;
