//! What subscribers are told, and holds.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::runtime::watcher::Event;
use mapi_api::ObjectMeta;
use mapi_api::lease::{Lease, LeaseSpec};

use super::*;

mod model;

const INDEXES: Indexes<Lease> = &[("holder", holder)];

fn holder(lease: &Lease) -> Vec<String> {
    let holders = lease.spec.holder_identity.as_deref().unwrap_or_default();
    holders.split(',').filter(|holder| !holder.is_empty()).map(str::to_owned).collect()
}

fn lease(name: &str, uid: &str, version: u64, holders: &str) -> Lease {
    Lease {
        metadata: ObjectMeta {
            namespace: Some(if name < "c" { "one" } else { "two" }.to_owned()),
            name: Some(name.to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        spec: LeaseSpec { holder_identity: Some(holders.to_owned()), ..LeaseSpec::default() },
    }
}

fn ok(lease: Lease) -> Lenient<Lease> {
    lease.into()
}

fn list(store: &Store<Lease>, leases: &[Lease]) {
    store.handle(Event::Init);
    leases.iter().for_each(|lease| store.handle(Event::InitApply(ok(lease.clone()))));
    store.handle(Event::InitDone);
}

/// What subscribers were told, as text.
fn told(store: &Store<Lease>) -> Arc<Mutex<Vec<String>>> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = told.clone();
    store.subscribe(move |change| {
        let line = match change {
            Change::Added(new, Origin::List) => format!("listed {}@{}", new.name(), new.version()),
            Change::Added(new, Origin::Watch) => format!("added {}@{}", new.name(), new.version()),
            Change::Updated { old, new } => {
                format!("updated {}@{}>{}", new.name(), old.version(), new.version())
            }
            Change::Removed(old) => format!("removed {}@{}", old.name(), old.version()),
        };
        log.lock().unwrap().push(line);
    });
    told
}

fn take(told: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *told.lock().unwrap())
}

#[test]
fn objects_lost_during_a_relist_are_told_as_removed() {
    let store = Store::new(INDEXES);
    let told = told(&store);
    list(&store, &[lease("a", "1", 1, ""), lease("b", "1", 2, ""), lease("c", "1", 3, "")]);
    assert_eq!(take(&told), ["listed a@1", "listed b@2", "listed c@3"]);
    list(&store, &[lease("b", "1", 2, ""), lease("c", "1", 5, "")]);
    assert_eq!(take(&told), ["updated c@3>5", "removed a@1"]);
}

#[test]
fn a_trimmed_cache_keeps_what_is_left_of_each_object() {
    let store = Store::trimmed(INDEXES, |lease: &mut Lease| lease.metadata.uid = None);
    list(&store, &[lease("a", "1", 1, "x")]);
    store.handle(Event::Apply(ok(lease("b", "2", 2, "x"))));
    assert_eq!(store.by("holder", "x").iter().filter(|lease| lease.metadata.uid.is_none()).count(), 2);
}

#[test]
fn a_list_that_broke_off_removes_nothing() {
    let store = Store::new(INDEXES);
    list(&store, &[lease("a", "1", 1, ""), lease("b", "1", 2, "")]);
    let told = told(&store);
    take(&told);
    store.handle(Event::Init);
    store.handle(Event::InitApply(ok(lease("a", "1", 1, ""))));
    list(&store, &[lease("a", "1", 1, ""), lease("b", "1", 2, "")]);
    assert_eq!(take(&told), Vec::<String>::new());
}

#[test]
fn a_name_with_another_uid_is_another_object() {
    let store = Store::new(INDEXES);
    let told = told(&store);
    store.handle(Event::Apply(ok(lease("a", "1", 1, ""))));
    store.handle(Event::Apply(ok(lease("a", "2", 5, ""))));
    store.handle(Event::Delete(ok(lease("a", "2", 6, ""))));
    assert_eq!(take(&told), ["added a@1", "removed a@1", "added a@5", "removed a@5"]);
}

#[test]
fn a_late_subscriber_is_told_what_is_present_and_may_use_the_store() {
    let store = Store::new(INDEXES);
    list(&store, &[lease("a", "1", 1, "")]);
    let told = told(&store);
    assert_eq!(take(&told), ["listed a@1"]);
    let (inner, lengths) = (store.clone(), Arc::new(Mutex::new(Vec::new())));
    let log = lengths.clone();
    store.subscribe(move |change| {
        // Re-entrant on purpose: a change caused by a subscriber is told after the present one.
        if let Change::Added(new, Origin::Watch) = change
            && new.name() == "b"
        {
            inner.handle(Event::Apply(ok(lease("c", "1", 9, ""))));
        }
        log.lock().unwrap().push(inner.len());
    });
    store.handle(Event::Apply(ok(lease("b", "1", 8, ""))));
    assert_eq!(take(&told), ["added b@8", "added c@9"]);
    assert_eq!(*lengths.lock().unwrap(), [1, 3, 3]);
}

#[tokio::test]
async fn a_store_is_synced_once_the_first_list_was_told() {
    let store: Store<Lease> = Store::new(INDEXES);
    let (inner, early) = (store.clone(), Arc::new(AtomicUsize::new(0)));
    let count = early.clone();
    store.subscribe(move |_| _ = count.fetch_add(usize::from(!inner.is_synced()), Ordering::SeqCst));
    let waiter = tokio::spawn({
        let store = store.clone();
        async move { store.synced().await }
    });
    list(&store, &[lease("a", "1", 1, ""), lease("b", "1", 2, "")]);
    waiter.await.unwrap();
    assert!(store.is_synced());
    assert_eq!(early.load(Ordering::SeqCst), 2, "subscribers were told before");
}

#[test]
fn an_object_that_cannot_be_decoded_is_told_once_and_hides_nothing() {
    let store = Store::new(INDEXES);
    let told = told(&store);
    let found = Arc::new(Mutex::new(Vec::new()));
    let log = found.clone();
    store.on_undecodable(move |poison| log.lock().unwrap().push(format!("{} {}", poison.key, poison.error)));
    let broken = |uid: &str, version| Lenient::broken(lease("a", uid, version, "").metadata, "bad");
    store.handle(Event::Apply(ok(lease("a", "1", 1, "x"))));
    store.handle(Event::Apply(broken("1", 2)));
    store.handle(Event::Init);
    store.handle(Event::InitApply(broken("1", 2)));
    store.handle(Event::InitDone);
    assert_eq!(take(&found), ["one/a bad"]);
    assert_eq!(store.by("holder", "x").len(), 1, "the last readable version is kept");
    assert_eq!(store.undecodable().len(), 1);
    store.handle(Event::Apply(broken("2", 3)));
    assert_eq!(take(&told), ["added a@1", "removed a@1"], "another UID is another object");
    store.handle(Event::Apply(ok(lease("a", "2", 4, ""))));
    assert_eq!((store.undecodable(), store.len()), (Vec::new(), 1));
    store.handle(Event::Apply(broken("2", 5)));
    store.handle(Event::Delete(broken("2", 6)));
    assert_eq!((store.undecodable(), store.len()), (Vec::new(), 0));
}

/// Says whether a key is fresh, and counts the waiters that ran.
struct Held {
    store: Store<Lease>,
    hold: Key,
    ran: Arc<AtomicUsize>,
}

impl Held {
    fn new() -> Self {
        let store = Store::new(INDEXES);
        list(&store, &[lease("a", "1", 10, "")]);
        Self { store, hold: Key::new("owner", "uid"), ran: Arc::default() }
    }

    fn wait(&self) {
        let ran = self.ran.clone();
        self.store.when_fresh(&self.hold, move || _ = ran.fetch_add(1, Ordering::SeqCst));
    }

    fn state(&self) -> (bool, usize) {
        (self.store.is_fresh(&self.hold), self.ran.load(Ordering::SeqCst))
    }

    fn is_clean(&self) -> bool {
        self.store.read().holds.is_empty()
    }
}

#[test]
fn a_key_is_held_until_the_cache_shows_the_version_that_was_written() {
    let held = Held::new();
    held.wait();
    assert_eq!(held.state(), (true, 1), "nothing was written: at once");
    let (first, second) = (held.store.begin_write(&held.hold), held.store.begin_write(&held.hold));
    held.wait();
    assert!(held.store.is_fresh(&Key::new("owner", "other")));
    held.store.handle(Event::Apply(ok(lease("b", "1", 12, ""))));
    first.done("12");
    assert_eq!(held.state(), (false, 1), "the second is in flight");
    second.done("14");
    held.store.handle(Event::Apply(ok(lease("c", "1", 13, ""))));
    assert_eq!(held.state(), (false, 1));
    held.store.handle(Event::Delete(ok(lease("c", "1", 15, ""))));
    assert_eq!(held.state(), (true, 2), "a later version shows all before it");
    assert!(held.is_clean());
}

#[test]
fn a_write_that_failed_or_was_dropped_holds_nothing() {
    let held = Held::new();
    held.store.begin_write(&held.hold).failed();
    assert!(held.state().0);
    let write = held.store.begin_write(&held.hold);
    held.wait();
    drop(write);
    assert_eq!(held.state(), (true, 1));
    held.store.begin_write(&held.hold).finish(Err(&ApiError::new(409, "Conflict", "")));
    assert!(held.is_clean());
}

#[test]
fn an_unknown_outcome_holds_until_a_list_that_began_later_is_complete() {
    for end in [
        |write: Write<Lease>| write.unknown(),
        |write: Write<Lease>| write.done("opaque"),
        |write: Write<Lease>| write.finish(Err(&ApiError::new(504, "Timeout", ""))),
    ] {
        let held = Held::new();
        let write = held.store.begin_write(&held.hold);
        held.store.handle(Event::Init);
        end(write);
        held.wait();
        held.store.handle(Event::InitApply(ok(lease("a", "1", 10, ""))));
        held.store.handle(Event::InitDone);
        held.store.handle(Event::Apply(ok(lease("a", "1", 11, ""))));
        assert_eq!(held.state(), (false, 0), "that list began before the end of the write");
        list(&held.store, &[]);
        assert_eq!(held.state(), (true, 1));
        assert!(held.is_clean());
    }
}

#[test]
fn versions_within_a_list_prove_nothing_until_it_is_complete() {
    let held = Held::new();
    held.store.handle(Event::Init);
    let write = held.store.begin_write(&held.hold);
    write.done("20");
    held.store.handle(Event::InitApply(ok(lease("b", "1", 30, ""))));
    assert!(!held.state().0);
    held.store.handle(Event::InitDone);
    assert!(held.state().0);
    assert!(held.is_clean());
}

#[test]
fn a_removal_holds_until_that_object_is_gone() {
    let held = Held::new();
    let key = lease("a", "1", 0, "").key();
    held.store.begin_write(&held.hold).gone(&key, "1");
    held.store.handle(Event::Apply(ok(lease("a", "1", 11, ""))));
    assert!(!held.state().0);
    held.store.handle(Event::Apply(ok(lease("a", "2", 12, ""))));
    assert!(held.state().0, "the name has another UID");
    held.store.begin_write(&held.hold).finish_delete(&key, "2", Ok(&Deleted::Gone));
    assert!(!held.state().0);
    held.store.handle(Event::Delete(ok(lease("a", "2", 13, ""))));
    assert!(held.state().0);
    held.store.begin_write(&held.hold).gone(&key, "2");
    assert!(held.is_clean(), "it was gone before the answer came");
}

#[test]
fn waiters_run_after_the_change_was_told() {
    let held = Held::new();
    let log = told(&held.store);
    take(&log);
    held.store.begin_write(&held.hold).done("11");
    let waiter = log.clone();
    held.store.when_fresh(&held.hold, move || waiter.lock().unwrap().push("fresh".to_owned()));
    held.store.handle(Event::Apply(ok(lease("b", "1", 11, ""))));
    assert_eq!(take(&log), ["added b@11", "fresh"]);
}

#[test]
fn a_server_that_was_restored_counts_lower_again() {
    let held = Held::new();
    list(&held.store, &[lease("a", "1", 3, "")]);
    held.store.begin_write(&held.hold).done("5");
    assert!(!held.state().0, "version 10 of the former life proves nothing");
    held.store.handle(Event::Apply(ok(lease("a", "1", 5, ""))));
    assert!(held.state().0);
}
