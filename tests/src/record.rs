//! Recordings: everything that a watch showed, for claims about what happened on the way.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::bail;
use futures::{StreamExt as _, pin_mut};
use tokio::{sync::watch, task::JoinSet};

use crate::{
    Kind, World, or_panic, report,
    watch::{News, Target, decode},
};

/// What happened to an object.
#[derive(Debug, Clone)]
pub enum Change<K> {
    /// It is there, with this content.
    Now(K),
    /// It is gone; this was its last content.
    Gone(K),
}

impl<K> Change<K> {
    /// The object, there or gone.
    pub fn object(&self) -> &K {
        match self {
            Change::Now(object) | Change::Gone(object) => object,
        }
    }

    /// The object if it is there.
    pub fn now(&self) -> Option<&K> {
        match self {
            Change::Now(object) => Some(object),
            Change::Gone(_) => None,
        }
    }
}

/// All changes of some objects, from their state at the beginning on. It ends with its value.
#[derive(Debug)]
pub struct Recording<K> {
    world: World,
    target: Target,
    patience: Duration,
    state: Arc<Mutex<State<K>>>,
    progress: watch::Receiver<usize>,
    _task: JoinSet<()>,
}

#[derive(Debug)]
struct State<K> {
    changes: Vec<Change<K>>,
    /// Why the recording is incomplete, if it is.
    broken: Option<String>,
}

impl<K: Kind> Recording<K> {
    /// Starts, and returns once the state at the beginning is recorded.
    pub(crate) async fn start(
        world: World,
        target: Target,
        patience: Duration,
    ) -> anyhow::Result<Recording<K>> {
        let state = Arc::new(Mutex::new(State { changes: Vec::new(), broken: None }));
        let (sender, progress) = watch::channel(0);
        let (listed, mut is_listed) = watch::channel(false);
        let news = target.news();
        let shared = Arc::clone(&state);
        let mut task = JoinSet::new();
        task.spawn(async move {
            pin_mut!(news);
            while let Some(batch) = news.next().await {
                for one in batch.into_iter().flatten() {
                    match note(&shared, one) {
                        Some(count) => drop(sender.send_replace(count)),
                        None => drop(listed.send_replace(true)),
                    }
                }
            }
        });
        let recording = Recording { world, target, patience, state, progress, _task: task };
        match tokio::time::timeout(patience, is_listed.wait_for(|listed| *listed)).await {
            Ok(Ok(_)) => Ok(recording),
            _ => bail!("cannot list {}", recording.target.what),
        }
    }

    /// What was recorded so far.
    pub fn changes(&self) -> Vec<Change<K>> {
        self.lock().changes.clone()
    }

    /// How many changes were recorded so far.
    pub fn len(&self) -> usize {
        self.lock().changes.len()
    }

    /// Whether nothing was recorded so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until what was recorded is as it should be, and returns it.
    #[track_caller]
    pub fn until(&self, is_reached: impl Fn(&[Change<K>]) -> bool) -> impl Future<Output = Vec<Change<K>>> {
        or_panic(async move {
            let mut progress = self.progress.clone();
            let reached = progress.wait_for(|_| {
                let state = self.lock();
                state.broken.is_some() || is_reached(&state.changes)
            });
            let is_late = tokio::time::timeout(self.patience, reached).await.is_err();
            let state = self.lock();
            if let Some(error) = &state.broken {
                bail!("the recording of {} broke: {error}", self.target.what);
            }
            if is_late {
                bail!(
                    "{} changes of {} were not as expected within {} s\n{}",
                    state.changes.len(),
                    self.target.what,
                    self.patience.as_secs(),
                    report::logs(&self.world, self.target.api.namespace().unwrap_or_default()),
                );
            }
            Ok(state.changes.clone())
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes a change and returns how many there are, or `None` for the end of a list.
fn note<K: Kind>(state: &Mutex<State<K>>, news: News) -> Option<usize> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let decoded = match news {
        News::Listed => return None,
        News::Now(object) => decode(&object).map(Change::Now),
        News::Gone(object) => decode(&object).map(Change::Gone),
    };
    match decoded {
        Ok(change) => state.changes.push(change),
        Err(error) => state.broken = Some(format!("{error:#}")),
    }
    Some(state.changes.len())
}
