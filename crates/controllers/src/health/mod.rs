//! Shell of the health checks: looks at a check when it, one of its Machines, a Node of theirs or a remediation request
//! changes. Never here: what health is and how it is restored, which are in `core::health`.

mod look;
#[cfg(test)]
mod tests;
mod wake;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mapi_api::{Key, MachineHealthCheck, Object, names};
use mapi_core::health::{
    self, Decision, Facts, Memory, Opening, Outcome, Request, Settings, Target, Template, TemplateRef,
};
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Store};
use mapi_runtime::worker::Requeue;
use mapi_runtime::{Error, worker};
use tokio::task::JoinHandle;

use self::look::Found;
use crate::Context;
use crate::apply::apply;
use crate::requests::{RequestKind, Requests, Watches};

/// A minute at most: templates are not watched, and one that was missing should be found soon after it is made.
const BACKOFF: Backoff = Backoff { base: Duration::from_millis(5), max: Duration::from_secs(60) };

/// Begins to check. The task ends when the context's stop is asked for and what it was doing has ended.
pub fn start(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let queue = Queue::new(names::reporter::HEALTH, BACKOFF);
    let shell = Arc::new(Shell {
        requests: wake::watches(context, &queue),
        context: context.clone(),
        queue: queue.clone(),
        notes: Mutex::default(),
    });
    shell.subscribe();
    let context = context.clone();
    vec![tokio::spawn(async move {
        // I13: nothing is decided before all Nodes are known.
        let synced = async {
            tokio::join!(context.checks.synced(), context.machines.synced(), context.nodes.synced())
        };
        tokio::select! { () = context.stop.cancelled() => return, _ = synced => {} }
        let reconcile = move |key| {
            let shell = shell.clone();
            async move { shell.reconcile(key).await }
        };
        worker::run_until(&context.stop, &queue, context.concurrency, reconcile).await;
    })]
}

struct Shell {
    context: Arc<Context>,
    queue: Queue<Key>,
    requests: Watches,
    notes: Mutex<HashMap<Key, Notes>>,
}

/// What the shell keeps of a check between passes. All of it can be lost.
#[derive(Clone, Default)]
struct Notes {
    memory: Arc<Memory>,
    /// Nodes that the server said are gone, so that it is asked once.
    gone: Arc<BTreeSet<look::Gone>>,
}

impl Shell {
    fn subscribe(self: &Arc<Self>) {
        let shell = self.clone();
        self.context.checks.subscribe(move |change| shell.check_changed(change));
        let shell = self.clone();
        self.context.machines.subscribe(move |change| {
            for key in wake::checks_of_machine(&shell.context.checks, change) {
                wake::soon(&shell.queue, key);
            }
        });
        let shell = self.clone();
        self.context.nodes.subscribe(move |change| {
            for key in wake::checks_of_node(&shell.context.checks, &shell.context.machines, change) {
                wake::soon(&shell.queue, key);
            }
        });
    }

    fn check_changed(&self, change: &Change<MachineHealthCheck>) {
        let (check, may_drop_a_kind) = match change {
            Change::Added(check, _) => (check, false),
            Change::Updated { old, new } => (new, wake::request_kind(old) != wake::request_kind(new)),
            Change::Removed(check) => (check, true),
        };
        if may_drop_a_kind {
            let all = self.context.checks.list();
            self.requests.keep(&all.iter().filter_map(|check| wake::request_kind(check)).collect());
        }
        wake::soon(&self.queue, check.key());
    }

    async fn reconcile(&self, key: Key) -> Result<Requeue, Error> {
        let context = &self.context;
        if !context.checks.is_fresh(&key) {
            self.wake_when_fresh(&context.checks, &key, key.clone());
            return Ok(Requeue::Done);
        }
        let Some(check) = context.checks.get(&key) else {
            lock(&self.notes).remove(&key);
            return apply(context, health::forget(&key)).await;
        };
        let settings = match health::open(&check, context.clock.now()) {
            Opening::Examine(settings) => settings,
            Opening::Done(plan) => return apply(context, plan).await,
        };
        let requests = match &settings.template {
            None => None,
            Some(template) => match self.requests.read(&RequestKind::of(template), &key.namespace) {
                Requests::Pending => return Ok(Requeue::Done),
                Requests::Known(known) => Some(Ok(known)),
                Requests::Unreadable(error) => Some(Err(error)),
            },
        };
        let notes = lock(&self.notes).get(&key).cloned().unwrap_or_default();
        let found = look::look(context, &key.namespace, &settings, &notes.gone).await?;
        let gone = found.iter().filter_map(Found::gone).collect();
        let outcome = self.decide(&check, &settings, &found, requests.as_ref(), &notes.memory).await;
        let Outcome { plan, memory, repairs, waiting } = outcome;
        lock(&self.notes).insert(key.clone(), Notes { memory: Arc::new(memory), gone: Arc::new(gone) });
        for machine in waiting {
            self.wake_when_fresh(&context.machines, &machine, key.clone());
        }
        for (machine, cause) in &repairs {
            tracing::info!(check = %key, %machine, %cause, "repairing a machine");
        }
        apply(context, plan).await
    }

    async fn decide(
        &self,
        check: &MachineHealthCheck,
        settings: &Settings,
        found: &[Found],
        requests: Option<&Result<BTreeMap<String, Request>, String>>,
        memory: &Memory,
    ) -> Outcome {
        let targets: Vec<Target<'_>> = found.iter().map(Found::target).collect();
        let facts = Facts {
            check,
            settings,
            targets: &targets,
            requests: match requests {
                None => health::Requests::Unused,
                Some(Ok(known)) => health::Requests::Known(known),
                Some(Err(error)) => health::Requests::Unreadable(error),
            },
            memory,
            is_migration_on: self.context.migration,
            now: self.context.clock.now(),
        };
        match health::decide(&facts) {
            Decision::Done(outcome) => outcome,
            Decision::FetchTemplate(reference, assessment) => {
                let template = self.template(&check.key().namespace, &reference).await;
                health::settle(&facts, &assessment, &template)
            }
        }
    }

    async fn template(&self, namespace: &str, reference: &TemplateRef) -> Template {
        let TemplateRef { api_version, kind, name } = reference;
        let writer = &self.context.writer;
        let plural = match writer.resource_of(api_version, kind).await {
            Ok(Some(plural)) => plural,
            Ok(None) => return Template::Missing,
            Err(error) => return Template::Failed(error.to_string()),
        };
        match writer.get_dynamic(api_version, &plural, &Key::new(namespace, name)).await {
            Ok(Some(object)) => Template::Found(object),
            Ok(None) => Template::Missing,
            Err(error) => Template::Failed(error.to_string()),
        }
    }

    fn wake_when_fresh<T: Object + Send + Sync + 'static>(&self, store: &Store<T>, hold: &Key, key: Key) {
        let queue = self.queue.clone();
        store.when_fresh(hold, move || wake::soon(&queue, key));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
