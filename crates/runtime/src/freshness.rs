//! Which keys wait until the cache shows what we wrote (design decision 5). Never here: clocks that decide, and objects.
//!
//! A write ends with evidence: what the cache must show before somebody may decide by it again. A relist that began
//! after the write ended shows everything, whatever the evidence.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mapi_api::Key;
use tokio::time::{Duration, Instant};

/// Run once a key is fresh.
pub(crate) type Waiter = Box<dyn FnOnce() + Send>;

/// Half a minute: longer than any lag of a watch that still works. After it a relist is forced, because the change may
/// have left the watched selection or fallen between a list and its watch. Shorter only lists more often.
const OVERDUE: Duration = Duration::from_secs(30);

/// One second after a write whose outcome is unknown: long enough to serve many such writes with one relist.
const UNKNOWN_OVERDUE: Duration = Duration::from_secs(1);

/// What the cache must show.
#[derive(Debug)]
pub(crate) enum Evidence {
    /// Every change up to this version.
    Version(u64),
    /// That the object of this key and UID is gone.
    Gone(Key, String),
    /// A complete list, because nothing else would tell.
    Relist,
}

/// All keys that are held. Empty at rest.
#[derive(Default)]
pub(crate) struct Holds {
    holds: BTreeMap<Key, Hold>,
    by_version: BTreeMap<u64, Vec<Key>>,
    by_object: BTreeMap<Key, Vec<Key>>,
    progress: u64,
    relists_begun: u64,
    relists_complete: u64,
}

#[derive(Default)]
struct Hold {
    in_flight: u32,
    version: Option<(u64, Mark)>,
    gone: Vec<(Key, String, Mark)>,
    relist: Option<Mark>,
    /// Never locked: the mutex lets a store be shared, though a waiter alone may not be.
    waiters: Mutex<Vec<Waiter>>,
}

/// When a write ended.
#[derive(Clone, Copy)]
struct Mark {
    relists_begun: u64,
    due: Instant,
}

impl Holds {
    pub(crate) fn begin(&mut self, hold: &Key) {
        self.holds.entry(hold.clone()).or_default().in_flight += 1;
    }

    /// Ends a write. `None`: it changed nothing, or the cache shows it already.
    pub(crate) fn end(&mut self, hold: &Key, evidence: Option<Evidence>) {
        let Some(held) = self.holds.get_mut(hold) else { return };
        held.in_flight = held.in_flight.saturating_sub(1);
        let mark = |wait| Mark { relists_begun: self.relists_begun, due: Instant::now() + wait };
        match evidence {
            None => {}
            Some(Evidence::Version(version)) if version <= self.progress => {}
            Some(Evidence::Version(version)) => {
                // Versions are seen in order, so the highest stands for all. The mark is the latest: only late, never early.
                let highest = held.version.map_or(version, |(before, _)| before.max(version));
                held.version = Some((highest, mark(OVERDUE)));
                self.by_version.entry(highest).or_default().push(hold.clone());
            }
            Some(Evidence::Gone(key, uid)) => {
                self.by_object.entry(key.clone()).or_default().push(hold.clone());
                held.gone.push((key, uid, mark(OVERDUE)));
            }
            Some(Evidence::Relist) => held.relist = Some(mark(UNKNOWN_OVERDUE)),
        }
    }

    /// Runs `f` later and returns `None`, or gives it back when the key is fresh.
    pub(crate) fn wait(&mut self, hold: &Key, waiter: Waiter) -> Option<Waiter> {
        match self.holds.get_mut(hold) {
            Some(held) => {
                held.waiters.get_mut().unwrap_or_else(PoisonError::into_inner).push(waiter);
                None
            }
            None => Some(waiter),
        }
    }

    pub(crate) fn is_fresh(&self, hold: &Key) -> bool {
        !self.holds.contains_key(hold)
    }

    /// Drops the hold if all evidence is there; `exists` tells whether the cache has an object of a key and UID.
    pub(crate) fn settle(&mut self, hold: &Key, exists: &dyn Fn(&Key, &str) -> bool) -> Vec<Waiter> {
        let Some(held) = self.holds.get_mut(hold) else { return Vec::new() };
        let (progress, complete) = (self.progress, self.relists_complete);
        held.version =
            held.version.filter(|(version, mark)| progress < *version && mark.is_before_list(complete));
        held.gone.retain(|(key, uid, mark)| mark.is_before_list(complete) && exists(key, uid));
        held.relist = held.relist.filter(|mark| mark.is_before_list(complete));
        let is_held =
            held.in_flight > 0 || held.version.is_some() || !held.gone.is_empty() || held.relist.is_some();
        if is_held {
            return Vec::new();
        }
        let held = self.holds.remove(hold);
        held.map(|held| held.waiters.into_inner().unwrap_or_else(PoisonError::into_inner)).unwrap_or_default()
    }

    /// Keys to settle because everything up to `version` was seen.
    pub(crate) fn advance(&mut self, version: u64) -> Vec<Key> {
        self.progress = self.progress.max(version);
        let later = self.by_version.split_off(&self.progress.saturating_add(1));
        std::mem::replace(&mut self.by_version, later).into_values().flatten().collect()
    }

    /// Keys to settle because an object went, or its name has another UID.
    pub(crate) fn waiting_for_removal(&mut self, object: &Key) -> Vec<Key> {
        self.by_object.remove(object).unwrap_or_default()
    }

    pub(crate) fn relist_begun(&mut self) {
        self.relists_begun += 1;
    }

    /// Keys to settle because a list is complete, in which `version` was the highest. Progress is set, not raised: a
    /// server restored from a backup counts from a lower version again.
    pub(crate) fn relist_complete(&mut self, version: u64) -> Vec<Key> {
        self.relists_complete = self.relists_begun;
        self.progress = version;
        self.holds.keys().cloned().collect()
    }

    /// Forgets who waited for what and was released by a list. To be called after its keys were settled.
    pub(crate) fn rebuild(&mut self) {
        self.by_version.clear();
        self.by_object.clear();
        for (hold, held) in &self.holds {
            if let Some((version, _)) = held.version {
                self.by_version.entry(version).or_default().push(hold.clone());
            }
            for (object, _, _) in &held.gone {
                self.by_object.entry(object.clone()).or_default().push(hold.clone());
            }
        }
    }

    /// When the evidence that is missing longest should have come.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.holds.values().filter_map(Hold::due).min()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.by_version.is_empty() && self.by_object.is_empty()
    }
}

impl Hold {
    fn due(&self) -> Option<Instant> {
        let version = self.version.map(|(_, mark)| mark.due);
        let gone = self.gone.iter().map(|(_, _, mark)| mark.due).min();
        let relist = self.relist.map(|mark| mark.due);
        [version, gone, relist].into_iter().flatten().min()
    }
}

impl Mark {
    /// Whether every complete list began before the write ended, so that none proves anything.
    fn is_before_list(&self, relists_complete: u64) -> bool {
        relists_complete <= self.relists_begun
    }
}
