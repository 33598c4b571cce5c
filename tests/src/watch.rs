//! Waiting: a watch of some objects until they are as they should be.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use futures::{Stream, StreamExt as _, pin_mut};
use kube::{
    Api, ResourceExt as _,
    api::DynamicObject,
    core::ApiResource,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::time::{Instant, timeout_at};

use crate::{Kind, World, report};

/// How often a wait without news looks whether the product still runs: its death ends the wait at once, not at the
/// deadline.
const LOOK: Duration = Duration::from_secs(1);

/// Which objects are watched.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) config: watcher::Config,
    /// In words, for a report.
    pub(crate) what: String,
}

/// What happened to a watched object.
pub(crate) enum News {
    /// It is there, with this content.
    Now(Box<DynamicObject>),
    /// It is gone.
    Gone(Box<DynamicObject>),
    /// The first list is complete.
    Listed,
}

impl Target {
    /// Objects of a kind in a namespace, or of a cluster-scoped kind.
    pub(crate) fn new<K: Kind>(world: &World, namespace: Option<&str>) -> Target {
        let resource = ApiResource::erase::<K>(&());
        let client = world.client().clone();
        let (api, place) = match namespace {
            Some(name) => (Api::namespaced_with(client, name, &resource), format!(" of namespace `{name}`")),
            None => (Api::all_with(client, &resource), String::new()),
        };
        Target { api, config: watcher::Config::default(), what: format!("{}{place}", resource.plural) }
    }

    /// The one of a name.
    pub(crate) fn named(mut self, name: &str) -> Target {
        self.what = format!("{} named `{name}`", self.what);
        self.config = self.config.fields(&format!("metadata.name={name}"));
        self
    }

    /// Those with labels.
    pub(crate) fn labelled(mut self, selector: &str) -> Target {
        self.what = format!("{} labelled `{selector}`", self.what);
        self.config = self.config.labels(selector);
        self
    }

    /// Every change from now on. Objects that were lost sight of during a break are reported as gone.
    pub(crate) fn news(&self) -> impl Stream<Item = Result<Vec<News>, watcher::Error>> + Send + use<> {
        let mut known: BTreeMap<String, DynamicObject> = BTreeMap::new();
        let mut listing: BTreeMap<String, DynamicObject> = BTreeMap::new();
        watcher(self.api.clone(), self.config.clone()).default_backoff().map(move |event| {
            Ok(match event? {
                watcher::Event::Init => {
                    listing.clear();
                    vec![]
                }
                watcher::Event::InitApply(object) => {
                    listing.insert(key(&object), object);
                    vec![]
                }
                watcher::Event::InitDone => relist(&mut known, std::mem::take(&mut listing)),
                watcher::Event::Apply(object) => {
                    known.insert(key(&object), object.clone());
                    vec![News::Now(Box::new(object))]
                }
                watcher::Event::Delete(object) => {
                    known.remove(&key(&object));
                    vec![News::Gone(Box::new(object))]
                }
            })
        })
    }
}

/// A target may span all namespaces.
fn key(object: &DynamicObject) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// The differences between what was known and a new list.
fn relist(known: &mut BTreeMap<String, DynamicObject>, listed: BTreeMap<String, DynamicObject>) -> Vec<News> {
    let before = std::mem::replace(known, listed);
    let is_lost = |object: &DynamicObject| {
        known.get(&key(object)).is_none_or(|now| now.metadata.uid != object.metadata.uid)
    };
    let is_new = |object: &&DynamicObject| {
        before
            .get(&key(object))
            .is_none_or(|then| then.metadata.resource_version != object.metadata.resource_version)
    };
    let now = known.values().filter(is_new).map(|object| News::Now(Box::new(object.clone())));
    let gone =
        before.values().filter(|object| is_lost(object)).map(|object| News::Gone(Box::new(object.clone())));
    gone.chain(now).chain([News::Listed]).collect()
}

/// Watches until the objects together are as they should be, and returns them, sorted by name.
///
/// `read` makes of an object what is looked at; what it cannot read ends the wait.
pub(crate) async fn until<V>(
    world: &World,
    target: &Target,
    patience: Duration,
    read: impl Fn(&DynamicObject) -> anyhow::Result<V>,
    mut is_reached: impl FnMut(&[&V]) -> bool,
) -> anyhow::Result<Vec<V>> {
    let deadline = Instant::now() + patience;
    let mut seen: BTreeMap<String, (DynamicObject, V)> = BTreeMap::new();
    let mut is_listed = false;
    let mut trouble = None;
    let news = target.news();
    pin_mut!(news);
    loop {
        match timeout_at(deadline.min(Instant::now() + LOOK), news.next()).await {
            Ok(Some(Ok(changes))) => {
                for change in changes {
                    is_listed |= take(&mut seen, change, &read)?;
                }
                if is_listed && is_reached(&seen.values().map(|(_, object)| object).collect::<Vec<_>>()) {
                    return Ok(seen.into_values().map(|(_, object)| object).collect());
                }
            }
            Ok(Some(Err(error))) => trouble = Some(error),
            Ok(None) => anyhow::bail!("the watch of {} ended", target.what),
            Err(_) => {
                world.check_programs()?;
                if Instant::now() >= deadline {
                    let last: Vec<&DynamicObject> = seen.values().map(|(object, _)| object).collect();
                    return Err(report::timed_out(world, target, patience, &last).with_trouble(trouble));
                }
            }
        }
    }
}

/// Notes one change. Says whether it was the end of a list.
fn take<V>(
    seen: &mut BTreeMap<String, (DynamicObject, V)>,
    news: News,
    read: impl Fn(&DynamicObject) -> anyhow::Result<V>,
) -> anyhow::Result<bool> {
    match news {
        News::Listed => return Ok(true),
        News::Now(object) => {
            let typed = read(&object)?;
            seen.insert(key(&object), (*object, typed));
        }
        News::Gone(object) => drop(seen.remove(&key(&object))),
    }
    Ok(false)
}

/// The typed view of an object.
pub(crate) fn decode<K: Kind>(object: &DynamicObject) -> anyhow::Result<K> {
    serde_json::to_value(object)
        .and_then(serde_json::from_value)
        .with_context(|| format!("cannot read {} `{}`", K::kind(&()), object.name_any()))
}
