//! The shell around [`mapi_core::capacity`]: asks the cloud of a set's template how large one machine is.
//! Never here: what is annotated or complained about.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use mapi_api::{Key, MachineSet, Object, names};
use mapi_cloud::{Capacity, CloudError, Service};
use mapi_core::capacity::{self, Decision, Facts, Outcome};
use mapi_core::machine_set::{Template, provider_spec};
use mapi_runtime::Error;
use mapi_runtime::queue::{Backoff, Queue};
use mapi_runtime::store::{Change, Origin};
use mapi_runtime::worker::{self, Requeue};
use tokio::task::JoinHandle;

use crate::Context;
use crate::apply::apply;

/// Begins the controller. It ends when the context's stop is asked for and its rounds have ended.
pub fn start(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let shell = Arc::new(Shell {
        context: Arc::clone(context),
        queue: Queue::new(names::reporter::CAPACITY, Backoff::default()),
        told: Mutex::default(),
    });
    let listening = Arc::clone(&shell);
    context.sets.subscribe(move |change| listening.changed(change));
    vec![tokio::spawn(async move {
        let Context { stop, concurrency, .. } = &*shell.context;
        let running = Arc::clone(&shell);
        let reconcile = move |key| Arc::clone(&running).reconcile(key);
        worker::run_until(stop, &shell.queue, *concurrency, reconcile).await;
    })]
}

struct Shell {
    context: Arc<Context>,
    queue: Queue<Key>,
    /// What stands to be complained about, by set. Losing it costs a repeated event.
    told: Mutex<HashMap<Key, String>>,
}

impl Shell {
    fn changed(&self, change: &Change<MachineSet>) {
        match change {
            Change::Added(set, Origin::List) => self.queue.add_low(set.key()),
            Change::Added(set, Origin::Watch) | Change::Removed(set) => self.queue.add(set.key()),
            Change::Updated { old, new } => {
                if capacity::is_relevant(old, new) {
                    self.queue.add(new.key());
                }
            }
        }
    }

    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Requeue, Error> {
        let context = &*self.context;
        if !context.sets.is_fresh_or_requeues(&key, &self.queue, &key) {
            return Ok(Requeue::Done);
        }
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        let Some(set) = context.sets.get(&key) else { return Ok(Requeue::Done) };
        let template = Template::judge(&context.clouds, &set);
        let facts =
            Facts { set: &set, template: &template, told: told.as_deref(), is_gate_on: context.migration };
        let Outcome { plan, told } = match capacity::decide(&facts) {
            Decision::Done(outcome) => outcome,
            Decision::Ask => capacity::settle(&facts, self.ask(&set).await),
        };
        if let Some(told) = told {
            self.told.lock().unwrap_or_else(PoisonError::into_inner).insert(key, told);
        }
        apply(context, plan).await
    }

    async fn ask(&self, set: &MachineSet) -> Result<Option<Capacity>, CloudError> {
        let Ok(Some(spec)) = provider_spec(set) else { return Ok(None) };
        match self.context.clouds.of(Some(&spec)) {
            Service::By(cloud) => cloud.capacity(&spec).await,
            Service::Missing | Service::Unknown { .. } => Ok(None),
        }
    }
}
