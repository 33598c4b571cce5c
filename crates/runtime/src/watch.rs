//! Fills a store from a list and a watch. Never here: what the objects mean.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use mapi_api::Object;
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::CancellationToken;
use crate::store::{Lenient, Store};
use crate::worker::chain;

/// Which namespaces are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every namespace, or a cluster-scoped kind.
    All,
    /// One namespace.
    Namespace(String),
}

/// Which objects are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Field selector.
    pub fields: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
}

/// Five seconds between relists that are asked for: a store that misses much evidence does not list without pause.
const RELIST_PAUSE: Duration = Duration::from_secs(5);

/// Lists and watches a kind into a store until `stop`. Errors are logged and tried again with back-off.
///
/// The task ends early only if a subscriber of the store panics.
pub fn run_watch<T>(
    client: kube::Client,
    scope: Scope,
    filter: Filter,
    store: Store<T>,
    stop: CancellationToken,
) -> JoinHandle<()>
where
    T: Object + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let api: Api<Lenient<T>> = match &scope {
        Scope::All => Api::all_with(client, &()),
        Scope::Namespace(namespace) => Api::namespaced_with(client, namespace, &()),
    };
    let config = watcher::Config {
        field_selector: filter.fields,
        label_selector: filter.labels,
        page_size: Some(500),
        ..watcher::Config::default()
    };
    tokio::spawn(async move {
        let forever = async {
            loop {
                watch_until_relist(api.clone(), config.clone(), &store).await;
            }
        };
        tokio::select! { biased; () = stop.cancelled() => {}, () = forever => {} }
    })
}

/// Returns when evidence of a write is overdue, so that only a new list can bring it.
async fn watch_until_relist<T>(api: Api<Lenient<T>>, config: watcher::Config, store: &Store<T>)
where
    T: Object + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static,
{
    let earliest = Instant::now() + RELIST_PAUSE;
    let mut events = pin!(watcher(api, config).default_backoff());
    let mut is_listing = true;
    // Evidence may be missing from before this list. It is looked at again when the list is complete.
    let mut look_at: Option<Instant> = None;
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(event)) => {
                    let is_end = matches!(event, watcher::Event::InitDone);
                    is_listing = (is_listing && !is_end) || matches!(event, watcher::Event::Init);
                    store.handle(event);
                    if is_end {
                        look_at = store.due().map(|due| due.max(earliest));
                    }
                }
                Some(Err(error)) => {
                    let kind = T::kind(&());
                    tracing::warn!(%kind, error = chain(&error), "watch interrupted, trying again");
                }
                None => return,
            },
            () = store.unsettled(), if look_at.is_none() => look_at = store.due().map(|due| due.max(earliest)),
            () = sleep_until(look_at.unwrap_or(earliest)), if look_at.is_some() => {
                match store.due() {
                    Some(due) if due <= Instant::now() && !is_listing => return,
                    Some(due) => look_at = Some(due.max(Instant::now() + Duration::from_secs(1))),
                    None => look_at = None,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    use futures::stream;
    use http::{Request, Response};
    use http_body_util::StreamBody;
    use hyper::body::{Bytes, Frame};
    use kube::client::Body;
    use mapi_api::Key;
    use mapi_api::lease::Lease;
    use serde_json::{Value, json};

    use super::*;

    type Paths = Arc<Mutex<Vec<String>>>;

    /// A client whose lists have `items`, and whose watches tell `events` and then stay silent. The first list fails.
    fn server(items: Value, events: Vec<String>) -> (kube::Client, Paths) {
        let paths = Paths::default();
        let log = paths.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().to_string();
            log.lock().unwrap().push(path.clone());
            let is_first = log.lock().unwrap().len() == 1;
            let is_watch = path.contains("watch=true");
            let list = json!({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1",
                "metadata": {"resourceVersion": "10"}, "items": items});
            let lines = if is_watch { events.clone() } else { vec![list.to_string()] };
            let frames = lines
                .into_iter()
                .map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(format!("{line}\n")))));
            let silence =
                if is_watch { stream::pending().left_stream() } else { stream::empty().right_stream() };
            let body = StreamBody::new(stream::iter(frames.collect::<Vec<_>>()).chain(silence));
            let status = if is_first { 500 } else { 200 };
            async move { Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap()) }
        });
        (kube::Client::new(service, "default"), paths)
    }

    fn lease(name: &str, version: &str) -> Value {
        json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": version}})
    }

    /// The type comes first, as the API server writes it: what follows is then parsed without a copy.
    fn event(type_: &str, object: &Value) -> String {
        format!(r#"{{"type":"{type_}","object":{object}}}"#)
    }

    fn lists(paths: &Paths) -> usize {
        paths.lock().unwrap().iter().filter(|path| !path.contains("watch=true")).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_is_filled_by_list_and_watch_after_an_error_and_past_a_poison_object() {
        let mut poison = lease("poison", "11");
        poison["spec"] = "no".into();
        let bookmark = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"resourceVersion": "12"}});
        let events =
            vec![event("ADDED", &poison), event("BOOKMARK", &bookmark), event("ADDED", &lease("b", "13"))];
        let (client, paths) = server(json!([lease("a", "9")]), events);
        let store: Store<Lease> = Store::new(&[]);
        let stop = CancellationToken::new();
        let filter = Filter { fields: Some("x=y".to_owned()), labels: None };
        let scope = Scope::Namespace("ns".to_owned());
        let watch = run_watch(client, scope, filter, store.clone(), stop.clone());
        store.synced().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let names: Vec<String> = store.list().iter().map(|lease| lease.name().to_owned()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(store.undecodable().len(), 1);
        let path = paths.lock().unwrap()[1].clone();
        assert!(path.starts_with("/apis/coordination.k8s.io/v1/namespaces/ns/leases?"), "{path}");
        assert!(path.contains("limit=500") && path.contains("fieldSelector=x%3Dy"), "{path}");
        stop.cancel();
        watch.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn evidence_that_a_watch_does_not_bring_comes_with_a_relist_and_only_then() {
        let (client, paths) = server(json!([lease("a", "9")]), Vec::new());
        let store: Store<Lease> = Store::new(&[]);
        let _watch =
            run_watch(client, Scope::All, Filter::default(), store.clone(), CancellationToken::new());
        store.synced().await;
        let hold = Key::new("owner", "u");
        // Nothing missing: no list. A version that never comes: one list. An unknown outcome: one list, sooner.
        for (write, seconds) in [(None, 200), (Some("99"), 40), (Some("opaque"), 10)] {
            let before = lists(&paths);
            if let Some(version) = write {
                store.begin_write(&hold).done(version);
                assert!(!store.is_fresh(&hold));
            }
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            assert!(store.is_fresh(&hold), "{write:?}");
            assert_eq!(lists(&paths) - before, usize::from(write.is_some()), "{write:?}");
        }
    }
}
