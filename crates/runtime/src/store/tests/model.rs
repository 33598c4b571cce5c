//! The store against a model, under random events, missed events and lists.

use std::collections::BTreeMap;

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;

/// What happens to a name on the server, and whether the watch sees it.
#[derive(Clone, Debug)]
enum Happening {
    Set { name: usize, holders: String, is_seen: bool },
    Delete { name: usize, is_seen: bool },
    Poison { name: usize },
    BrokenList { until: usize },
    Relist,
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let name = 0..NAMES.len();
    let set = (name.clone(), "[xyz](,[xyz]){0,2}", any::<bool>());
    let one = prop_oneof![
        6 => set.prop_map(|(name, holders, is_seen)| Happening::Set { name, holders, is_seen }),
        3 => (name.clone(), any::<bool>()).prop_map(|(name, is_seen)| Happening::Delete { name, is_seen }),
        1 => name.clone().prop_map(|name| Happening::Poison { name }),
        1 => name.prop_map(|until| Happening::BrokenList { until }),
        2 => Just(Happening::Relist),
    ];
    proptest::collection::vec(one, 0..60)
}

/// The server, and what the store should have.
#[derive(Default)]
struct Model {
    version: u64,
    uids: u64,
    server: BTreeMap<Key, Lease>,
    cached: BTreeMap<Key, Lease>,
    /// After an event was missed the watch is interrupted: only a list goes on.
    is_interrupted: bool,
}

impl Model {
    fn happen(&mut self, store: &Store<Lease>, happening: &Happening) {
        self.version += 1;
        match happening {
            Happening::Set { name, holders, is_seen } => {
                let key = lease(NAMES[*name], "", 0, "").key();
                let uid = self.server.get(&key).map(|lease| lease.uid().to_owned()).unwrap_or_else(|| {
                    self.uids += 1;
                    self.uids.to_string()
                });
                let object = lease(NAMES[*name], &uid, self.version, holders);
                self.server.insert(key.clone(), object.clone());
                self.is_interrupted |= !is_seen;
                if !self.is_interrupted {
                    self.cached.insert(key, object.clone());
                    store.handle(Event::Apply(ok(object)));
                }
            }
            Happening::Delete { name, is_seen } => {
                let key = lease(NAMES[*name], "", 0, "").key();
                let Some(mut object) = self.server.remove(&key) else { return };
                object.metadata.resource_version = Some(self.version.to_string());
                self.is_interrupted |= !is_seen;
                if !self.is_interrupted {
                    self.cached.remove(&key);
                    store.handle(Event::Delete(ok(object)));
                }
            }
            Happening::Poison { name } => {
                let key = lease(NAMES[*name], "", 0, "").key();
                if let Some(object) = self.server.get(&key).filter(|_| !self.is_interrupted) {
                    store.handle(Event::Apply(Lenient::broken(object.metadata.clone(), "bad")));
                }
            }
            Happening::BrokenList { until } => {
                store.handle(Event::Init);
                for (key, object) in self.server.iter().take(*until) {
                    self.cached.insert(key.clone(), object.clone());
                    store.handle(Event::InitApply(ok(object.clone())));
                }
                self.is_interrupted = true;
            }
            Happening::Relist => {
                list(store, &self.server.values().cloned().collect::<Vec<_>>());
                self.cached = self.server.clone();
                self.is_interrupted = false;
            }
        }
    }
}

/// Name, UID, version: enough to tell objects of the model apart.
fn identity(lease: &Lease) -> (Key, String, String) {
    (lease.key(), lease.uid().to_owned(), lease.version().to_owned())
}

proptest! {
    #[test]
    fn the_store_its_indexes_and_its_subscribers_agree_with_the_model(happenings in happenings()) {
        let store = Store::new(INDEXES);
        let replayed: Arc<Mutex<BTreeMap<Key, Lease>>> = Arc::default();
        let mirror = replayed.clone();
        // A subscriber that applies what it is told, and checks that each difference fits what it had.
        store.subscribe(move |change| {
            let mut mirror = mirror.lock().unwrap();
            match change {
                Change::Added(new, _) => assert!(mirror.insert(new.key(), (**new).clone()).is_none()),
                Change::Updated { old, new } => {
                    let before = mirror.insert(new.key(), (**new).clone()).expect("updated what was there");
                    assert_eq!(identity(&before), identity(old));
                    assert_ne!(old.version(), new.version());
                }
                Change::Removed(old) => {
                    let before = mirror.remove(&old.key()).expect("removed what was there");
                    assert_eq!(identity(&before), identity(old));
                }
            }
        });
        let mut model = Model::default();
        for happening in &happenings {
            model.happen(&store, happening);
            let have: Vec<_> = store.list().iter().map(|lease| identity(lease)).collect();
            let want: Vec<_> = model.cached.values().map(identity).collect();
            prop_assert_eq!(&have, &want);
            let told: Vec<_> = replayed.lock().unwrap().values().map(identity).collect();
            prop_assert_eq!(&told, &want);
            for value in ["x", "y", "z", "w"] {
                let found: Vec<_> = store.by("holder", value).iter().map(|lease| identity(lease)).collect();
                let all = model.cached.values();
                let scan: Vec<_> = all.filter(|lease| holder(lease).iter().any(|h| h == value)).map(identity).collect();
                prop_assert_eq!(found, scan);
            }
            for namespace in ["one", "two"] {
                prop_assert!(store.in_namespace(namespace).iter().all(|lease| &*lease.key().namespace == namespace));
            }
            prop_assert_eq!(store.in_namespace("one").len() + store.in_namespace("two").len(), store.len());
        }
        list(&store, &[]);
        prop_assert!(store.is_empty() && store.read().cache.is_drained());
    }
}
