//! Waiting by watches: who is there, and how many of them are as they shall be.
//!
//! Never here: polling of the API server.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::bail;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use super::say;
use super::world::Product;

/// How often a wait says how far it is and looks whether the product still runs.
const LOOK: Duration = Duration::from_secs(5);

/// The objects of one kind in one place, by a watch.
pub struct Census<T> {
    what: &'static str,
    events: BoxStream<'static, watcher::Result<Event<T>>>,
    is_marked: fn(&T) -> bool,
    objects: HashMap<String, bool>,
    marked: usize,
    is_complete: bool,
}

/// How many objects there are.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// All of them.
    pub all: usize,
    /// Those that are as they shall be.
    pub marked: usize,
}

impl<T> Census<T>
where
    T: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// Starts to watch. `what` names the objects that are marked, for messages.
    pub fn new(api: Api<T>, what: &'static str, is_marked: fn(&T) -> bool) -> Self {
        let events = watcher(api, watcher::Config::default()).default_backoff().boxed();
        Self { what, events, is_marked, objects: HashMap::new(), marked: 0, is_complete: false }
    }

    /// Waits until the count is as `is_enough` says. Fails when the product ends or the time is up.
    pub async fn until(
        &mut self,
        is_enough: impl Fn(Count) -> bool,
        limit: Duration,
        product: &mut Product,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + limit;
        let mut look = tokio::time::interval(LOOK);
        look.reset();
        let mut said = None;
        loop {
            let count = Count { all: self.objects.len(), marked: self.marked };
            if self.is_complete && is_enough(count) {
                return Ok(());
            }
            tokio::select! {
                event = self.events.try_next() => match event {
                    Ok(Some(event)) => self.note(event),
                    Ok(None) => bail!("the watch of {} has ended", self.what),
                    Err(error) => say(&format!("the watch of {} stumbled: {error}", self.what)),
                },
                _ = look.tick() => {
                    product.check_alive()?;
                    let Count { all, marked } = count;
                    if said.replace((all, marked)) != Some((all, marked)) {
                        say(&format!("{marked} of {all} {}", self.what));
                    }
                    if Instant::now() > deadline {
                        let limit_s = limit.as_secs();
                        let logs = product.log_tails();
                        bail!("{marked} of {all} {} after {limit_s} s, which are not enough\n{logs}", self.what);
                    }
                }
            }
        }
    }

    /// Waits until the first list is read, so that a later change is seen as it comes.
    pub async fn begun(mut self, product: &mut Product) -> anyhow::Result<Self> {
        /// A list of some thousand objects takes a second or two.
        const LIMIT: Duration = Duration::from_secs(60);
        self.until(|_| true, LIMIT, product).await?;
        Ok(self)
    }

    fn note(&mut self, event: Event<T>) {
        match event {
            Event::Init => {
                self.objects.clear();
                self.is_complete = false;
                self.marked = 0;
            }
            Event::InitDone => self.is_complete = true,
            Event::InitApply(object) | Event::Apply(object) => {
                let is_marked = (self.is_marked)(&object);
                let before = self.objects.insert(object.name_any(), is_marked);
                self.marked = self.marked + usize::from(is_marked) - usize::from(before == Some(true));
            }
            Event::Delete(object) => {
                let before = self.objects.remove(&object.name_any());
                self.marked -= usize::from(before == Some(true));
            }
        }
    }
}
