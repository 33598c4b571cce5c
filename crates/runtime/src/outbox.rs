//! What a store has to tell, in order. Never here: what is told.
//!
//! Changes are queued while the store is locked, so that their order is that of the store, and told by whoever finds
//! nobody else telling, with no lock held. A subscriber may therefore read and write the store.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::freshness::Waiter;
use crate::store::{Change, Undecodable};

type Subscriber<T> = Arc<dyn Fn(&Change<T>) + Send + Sync>;
type UndecodableSubscriber = Arc<dyn Fn(&Undecodable) + Send + Sync>;

pub(crate) enum Item<T> {
    Change(Change<T>),
    Undecodable(Undecodable),
    Run(Waiter),
    /// Somebody new, and what is present.
    Subscribe(Subscriber<T>, Vec<Change<T>>),
    SubscribeUndecodable(UndecodableSubscriber, Vec<Undecodable>),
}

pub(crate) struct Outbox<T>(Mutex<Inner<T>>);

struct Inner<T> {
    items: VecDeque<Item<T>>,
    is_telling: bool,
    subscribers: Arc<Vec<Subscriber<T>>>,
    undecodable_subscribers: Arc<Vec<UndecodableSubscriber>>,
}

impl<T> Outbox<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Inner {
            items: VecDeque::new(),
            is_telling: false,
            subscribers: Arc::default(),
            undecodable_subscribers: Arc::default(),
        }))
    }

    pub(crate) fn push(&self, items: impl IntoIterator<Item = Item<T>>) {
        self.lock().items.extend(items);
    }

    /// Tells everything, unless somebody is telling already, who will tell this too.
    pub(crate) fn deliver(&self) {
        while let Some(turn) = self.turn() {
            match turn.item {
                Item::Change(change) => turn.subscribers.iter().for_each(|f| f(&change)),
                Item::Undecodable(found) => turn.undecodable_subscribers.iter().for_each(|f| f(&found)),
                Item::Run(f) => f(),
                Item::Subscribe(f, present) => {
                    present.iter().for_each(|change| f(change));
                    drop(turn.subscribers);
                    Arc::make_mut(&mut self.lock().subscribers).push(f);
                }
                Item::SubscribeUndecodable(f, present) => {
                    present.iter().for_each(|found| f(found));
                    drop(turn.undecodable_subscribers);
                    Arc::make_mut(&mut self.lock().undecodable_subscribers).push(f);
                }
            }
            drop(turn.telling);
        }
    }

    fn turn(&self) -> Option<Turn<'_, T>> {
        let mut inner = self.lock();
        if inner.is_telling {
            return None;
        }
        let Some(item) = inner.items.pop_front() else {
            inner.items.shrink_to(16);
            return None;
        };
        inner.is_telling = true;
        Some(Turn {
            item,
            subscribers: inner.subscribers.clone(),
            undecodable_subscribers: inner.undecodable_subscribers.clone(),
            telling: Telling(self),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Turn<'a, T> {
    item: Item<T>,
    subscribers: Arc<Vec<Subscriber<T>>>,
    undecodable_subscribers: Arc<Vec<UndecodableSubscriber>>,
    telling: Telling<'a, T>,
}

/// Ends a turn even when a subscriber panics, so that others are still told.
struct Telling<'a, T>(&'a Outbox<T>);

impl<T> Drop for Telling<'_, T> {
    fn drop(&mut self) {
        self.0.lock().is_telling = false;
    }
}
