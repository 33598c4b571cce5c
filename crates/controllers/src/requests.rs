//! Watches of remediation requests: objects of kinds that users name in health checks, one watch a kind.
//!
//! For: one list a kind instead of a question a machine. Only metadata is read and kept.
//! Never here: what a request means.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use mapi_api::{Key, ObjectMeta};
use mapi_core::health::Request;
use mapi_runtime::writes::Writer;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A kind of requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestKind {
    /// API group and version.
    pub(crate) api_version: String,
    /// Kind.
    pub(crate) kind: String,
}

/// What is known of the requests of one kind in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    /// The first list is under way. Its namespaces are woken when it ends, however it ends.
    Pending,
    /// All of them, by name.
    Known(BTreeMap<String, Request>),
    /// They cannot be read, because of this error.
    Unreadable(String),
}

/// Called with the namespace whose requests of a kind changed; `None` is all namespaces.
type Wake = Arc<dyn Fn(&RequestKind, Option<&str>) + Send + Sync>;

/// All watches. A kind is watched from the first question about it until [`Watches::keep`] leaves it out.
pub(crate) struct Watches {
    writer: Writer,
    namespace: Option<String>,
    stop: CancellationToken,
    wake: Wake,
    kinds: Mutex<BTreeMap<RequestKind, Watched>>,
}

#[derive(Default)]
struct Watched {
    state: Arc<Mutex<State>>,
    /// Ends the watch when it is dropped.
    end: Option<DropGuard>,
}

impl Watches {
    /// No watches yet. `namespace` is the only one that is watched, if there is one.
    pub(crate) fn new(
        writer: Writer,
        namespace: Option<String>,
        stop: CancellationToken,
        wake: Wake,
    ) -> Self {
        Self { writer, namespace, stop, wake, kinds: Mutex::default() }
    }

    /// The requests of a kind in a namespace. A watch that could not begin, because the kind is not served, begins anew
    /// with each question: whoever asks is in back-off.
    pub(crate) fn read(&self, kind: &RequestKind, namespace: &str) -> Requests {
        let mut kinds = lock(&self.kinds);
        let watched = kinds.entry(kind.clone()).or_default();
        let is_watched = std::mem::replace(&mut lock(&watched.state).is_watched, true);
        if !is_watched {
            let stop = self.stop.child_token();
            let watch = Watch {
                writer: self.writer.clone(),
                namespace: self.namespace.clone(),
                kind: kind.clone(),
                state: watched.state.clone(),
                wake: self.wake.clone(),
            };
            tokio::spawn(stop.clone().run_until_cancelled_owned(watch.run()));
            watched.end = Some(stop.drop_guard());
        }
        lock(&watched.state).read(namespace)
    }

    /// Ends the watches of all other kinds.
    pub(crate) fn keep(&self, used: &BTreeSet<RequestKind>) {
        lock(&self.kinds).retain(|kind, _| used.contains(kind));
    }
}

struct Watch {
    writer: Writer,
    namespace: Option<String>,
    kind: RequestKind,
    state: Arc<Mutex<State>>,
    wake: Wake,
}

impl Watch {
    async fn run(self) {
        let RequestKind { api_version, kind } = &self.kind;
        let plural = match self.writer.resource_of(api_version, kind).await {
            Ok(Some(plural)) => plural,
            Ok(None) => return self.give_up("the server serves no such kind".into()),
            Err(error) => return self.give_up(error.to_string()),
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &plural);
        let client = self.writer.client.clone();
        let api: Api<PartialObjectMeta<DynamicObject>> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let config = watcher::Config { page_size: Some(500), ..watcher::Config::default() };
        let mut events = std::pin::pin!(watcher(api, config).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.handle(event),
                Err(error) => self.fail(error.to_string()),
            }
        }
    }

    fn handle(&self, event: Event<PartialObjectMeta<DynamicObject>>) {
        let woken = lock(&self.state).handle(event);
        match woken {
            Woken::Nobody => {}
            Woken::Namespace(namespace) => (self.wake)(&self.kind, Some(&namespace)),
            Woken::All => (self.wake)(&self.kind, None),
        }
    }

    fn give_up(&self, error: String) {
        lock(&self.state).is_watched = false;
        self.fail(error);
    }

    fn fail(&self, error: String) {
        let RequestKind { api_version, kind } = &self.kind;
        tracing::warn!(api_version, kind, error, "remediation requests cannot be watched");
        if lock(&self.state).fail(error) {
            (self.wake)(&self.kind, None);
        }
    }
}

/// What is known of one kind. A watch that is interrupted keeps what it knew: a request that is made twice is refused,
/// and one is deleted by UID.
#[derive(Default)]
struct State {
    /// Whether a watch runs.
    is_watched: bool,
    /// `None`: no list is complete yet.
    known: Option<BTreeMap<String, BTreeMap<String, Request>>>,
    listing: BTreeMap<String, BTreeMap<String, Request>>,
    error: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum Woken {
    Nobody,
    Namespace(String),
    All,
}

impl State {
    fn read(&self, namespace: &str) -> Requests {
        match (&self.known, &self.error) {
            (Some(known), _) => Requests::Known(known.get(namespace).cloned().unwrap_or_default()),
            (None, Some(error)) => Requests::Unreadable(error.clone()),
            (None, None) => Requests::Pending,
        }
    }

    /// Whether the error is news to those who wait for the first list.
    fn fail(&mut self, error: String) -> bool {
        let is_news = self.known.is_none() && self.error.as_ref() != Some(&error);
        self.error = Some(error);
        is_news
    }

    fn handle(&mut self, event: Event<PartialObjectMeta<DynamicObject>>) -> Woken {
        match event {
            Event::Init => {
                self.listing.clear();
                Woken::Nobody
            }
            Event::InitApply(object) => {
                put(&mut self.listing, &object.metadata);
                Woken::Nobody
            }
            Event::InitDone => {
                self.error = None;
                let listed = std::mem::take(&mut self.listing);
                let before = self.known.replace(listed);
                if before == self.known { Woken::Nobody } else { Woken::All }
            }
            Event::Apply(object) => {
                let is_news = self.known.as_mut().is_some_and(|known| put(known, &object.metadata));
                woken(is_news, &object.metadata)
            }
            Event::Delete(object) => {
                let is_news = self.known.as_mut().is_some_and(|known| take(known, &object.metadata));
                woken(is_news, &object.metadata)
            }
        }
    }
}

fn woken(is_news: bool, metadata: &ObjectMeta) -> Woken {
    if is_news { Woken::Namespace(key(metadata).namespace.to_string()) } else { Woken::Nobody }
}

/// Whether anything changed that is kept.
fn put(known: &mut BTreeMap<String, BTreeMap<String, Request>>, metadata: &ObjectMeta) -> bool {
    let key = key(metadata);
    let request = Request {
        uid: metadata.uid.clone().unwrap_or_default(),
        owners: metadata.owner_references.iter().flatten().map(|owner| owner.uid.clone()).collect(),
        is_deleting: metadata.deletion_timestamp.is_some(),
    };
    let namespace = known.entry(key.namespace.to_string()).or_default();
    let before = namespace.insert(key.name.to_string(), request);
    before.as_ref() != namespace.get(&*key.name)
}

fn take(known: &mut BTreeMap<String, BTreeMap<String, Request>>, metadata: &ObjectMeta) -> bool {
    let key = key(metadata);
    let Some(namespace) = known.get_mut(&*key.namespace) else { return false };
    let was_there = namespace.remove(&*key.name).is_some();
    if namespace.is_empty() {
        known.remove(&*key.namespace);
    }
    was_there
}

fn key(metadata: &ObjectMeta) -> Key {
    Key::new(metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str) -> PartialObjectMeta<DynamicObject> {
        let owners = json!([{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "uid-o"}]);
        let metadata = json!({"namespace": "ns", "name": name, "uid": uid, "ownerReferences": owners});
        serde_json::from_value(json!({ "metadata": metadata })).expect("metadata")
    }

    fn uids(state: &State) -> Vec<String> {
        match state.read("ns") {
            Requests::Known(known) => known.into_values().map(|request| request.uid).collect(),
            other => panic!("expected a list, got {other:?}"),
        }
    }

    #[test]
    fn nothing_is_told_before_the_first_list_is_complete() {
        let mut state = State::default();
        state.handle(Event::Init);
        state.handle(Event::InitApply(object("a", "1")));
        assert_eq!(state.read("ns"), Requests::Pending);
        assert_eq!(state.handle(Event::InitDone), Woken::All);
        assert_eq!(uids(&state), ["1"]);
        assert_eq!(state.read("other"), Requests::Known(BTreeMap::new()));
    }

    #[test]
    fn only_changes_that_matter_wake_anybody() {
        let mut state = State::default();
        state.handle(Event::InitDone);
        assert_eq!(state.handle(Event::Apply(object("a", "1"))), Woken::Namespace("ns".into()));
        assert_eq!(state.handle(Event::Apply(object("a", "1"))), Woken::Nobody, "its status moved");
        assert_eq!(state.handle(Event::Delete(object("a", "1"))), Woken::Namespace("ns".into()));
        assert_eq!(state.handle(Event::Delete(object("a", "1"))), Woken::Nobody);
    }

    #[test]
    fn what_a_later_list_leaves_out_is_gone() {
        let mut state = State::default();
        state.handle(Event::InitApply(object("a", "1")));
        state.handle(Event::InitDone);
        for event in [Event::Init, Event::InitApply(object("b", "2"))] {
            state.handle(event);
        }
        assert_eq!(uids(&state), ["1"], "an unfinished list changes nothing");
        state.handle(Event::InitDone);
        assert_eq!(uids(&state), ["2"]);
    }

    #[test]
    fn an_error_is_told_until_a_list_is_complete_and_an_interruption_forgets_nothing() {
        let mut state = State::default();
        assert!(state.fail("forbidden".into()) && !state.fail("forbidden".into()));
        assert_eq!(state.read("ns"), Requests::Unreadable("forbidden".into()));
        state.handle(Event::InitApply(object("a", "1")));
        state.handle(Event::InitDone);
        assert!(!state.fail("broken".into()));
        assert_eq!(uids(&state), ["1"]);
    }
}
