//! Events go an hour after they were last written. Never here: anything that somebody owns.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;

use crate::storage::{Change, Key};

use super::catalogue::Class;
use super::{Options, World};

/// When which event goes.
#[derive(Default)]
pub(super) struct Expiry {
    by_key: HashMap<Key, Timestamp>,
    due: BTreeSet<(Timestamp, Key)>,
}

impl Expiry {
    pub(super) fn see(&mut self, change: &Change, now: Timestamp, options: &Options) {
        let key = &change.now.key;
        if let Some(due) = self.by_key.remove(key) {
            self.due.remove(&(due, key.clone()));
        }
        if !change.is_deletion {
            let due = now + options.event_age;
            self.by_key.insert(key.clone(), due);
            self.due.insert((due, key.clone()));
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn step(&mut self, world: &mut World<'_>) {
        let Some(kind) = world.catalogue.of(Class::Event).cloned() else { return };
        while let Some((due, key)) = self.due.first().cloned()
            && due <= world.now
        {
            self.by_key.remove(&key);
            self.due.pop_first();
            if let Some(event) = world.state.storage.get(&kind.bucket, &key).cloned() {
                // Finalizers do not keep an event: nothing asks for them when it expires.
                world.state.storage.remove(world.now, &kind, event.value());
            }
        }
    }
}
