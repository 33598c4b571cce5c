//! The controllers put together: shared caches, clouds, events, and groups that start and end together. Whoever starts
//! them hands in clients and a token to stop them by.
//!
//! Never here: flags, signals, sockets.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use mapi_api::SimulatedInstance;
use mapi_controllers::Context;
use mapi_controllers::context::Caches;
use mapi_controllers::metrics::Metrics;
use mapi_controllers::start::{Controller, watch};
use mapi_controllers::stores::ObjectStore;
use mapi_runtime::CancellationToken;
use mapi_runtime::clock::{Clock, SystemClock};
use mapi_runtime::election::{ElectionConfig, Leadership};
use mapi_runtime::events::{Listener, Recorder};
use mapi_runtime::store::Store;
use mapi_runtime::watch::{Filter, Scope, run_watch};
use mapi_runtime::writes::Writer;
use tokio::task::{JoinHandle, JoinSet};

use crate::registry;
use crate::simulated_cloud;

/// What the controllers are made of.
pub struct Parts {
    /// Client of the controllers.
    pub client: kube::Client,
    /// Client of the simulated cloud's near side.
    pub cloud_client: kube::Client,
    /// Clouds to serve.
    pub platforms: Vec<&'static str>,
    /// The only namespace that is watched, if there is one.
    pub namespace: Option<String>,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub migration: bool,
    /// Keys that one controller works on at once.
    pub concurrency: usize,
    /// Who is told each event, beside the API server.
    pub listener: Option<Listener>,
    /// Cancelled when all of it shall end.
    pub stop: CancellationToken,
}

/// Caches that are being filled, and what every controller shares.
pub struct Assembly {
    /// What every controller shares.
    pub context: Arc<Context>,
    instances: Store<SimulatedInstance>,
    watches: Vec<JoinHandle<()>>,
    recording: JoinHandle<()>,
}

/// Controllers that run under one lease, or under none.
pub struct Group {
    /// The controllers.
    pub controllers: Vec<Controller>,
    /// The far side of the simulated cloud, if it runs with them.
    pub far_side: Option<simulated_cloud::Part>,
    /// The lease without which they do not run.
    pub lease: Option<ElectionConfig>,
}

impl Assembly {
    /// Begins to fill the caches. No controller runs yet.
    pub fn new(parts: Parts) -> Self {
        let Parts { client, cloud_client, platforms, namespace, migration, concurrency, listener, stop } =
            parts;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let writer = Writer::new(client);
        let (recorder, recording) = Recorder::new(writer.clone(), host_name(), Arc::clone(&clock));
        let recording = tokio::spawn(recording);
        let recorder = match listener {
            Some(listener) => recorder.with_listener(listener),
            None => recorder,
        };
        let mut watches = vec![];
        let instances = registry::instances();
        if platforms.contains(&"kubemark") {
            let scope = namespace.clone().map_or(Scope::All, Scope::Namespace);
            let (client, stop) = (cloud_client.clone(), stop.clone());
            watches.push(run_watch(client, scope, Filter::default(), instances.clone(), stop));
        }
        let near = ObjectStore::<SimulatedInstance>::new(instances.clone(), Writer::new(cloud_client));
        let clouds = registry::clouds(&platforms, &registry::Parts { instances: Arc::new(near) });
        let Caches { machines, sets, checks, nodes } = Caches::default();
        let metrics = Metrics::default();
        let context = Arc::new(Context {
            machines,
            sets,
            checks,
            nodes,
            writer,
            recorder,
            clock,
            clouds,
            migration,
            metrics,
            stop,
            namespace,
            concurrency,
        });
        watches.extend(watch(&context));
        Self { context, instances, watches, recording }
    }

    /// Waits until every cache is filled: the API server then serves every kind.
    pub async fn synced(&self) {
        synced(&self.context).await;
        self.instances.synced().await;
    }

    /// Starts each group once its lease is held, and releases the leases once everything that the groups were doing
    /// has ended.
    pub fn start(&self, groups: Vec<Group>) -> JoinHandle<anyhow::Result<()>> {
        let mut tasks = JoinSet::new();
        for group in groups {
            tasks.spawn(run_group(group, Arc::clone(&self.context)));
        }
        let stop = self.context.stop.clone();
        tokio::spawn(async move {
            let mut result = Ok(());
            while let Some(ended) = tasks.join_next().await {
                // The end of one group is the end of all: a lost lease must not leave half of them running.
                stop.cancel();
                let ended = ended.context("a controller ended abnormally").and_then(|r| r);
                if result.is_ok() {
                    result = ended;
                }
            }
            result
        })
    }

    /// Once all was told to stop: leaves at once, with what nobody will read.
    pub fn leave(self) {
        let Self { context: _, instances: _, watches, recording } = self;
        watches.into_iter().chain([recording]).for_each(|task| task.abort());
    }

    /// Once all was told to stop and the groups have ended: waits for the caches, and writes the last events.
    pub async fn end(self) {
        let Self { context, instances: _, watches, recording } = self;
        for task in watches {
            // A watch that panicked was logged; there is nothing left to save of it.
            let _ = task.await;
        }
        context.recorder.flush().await;
        recording.abort();
    }
}

async fn run_group(group: Group, context: Arc<Context>) -> anyhow::Result<()> {
    let Group { controllers, far_side, lease } = group;
    let stop = context.stop.clone();
    let mut leadership = None;
    if let Some(config) = lease {
        let lease = config.lease.clone();
        tracing::info!(%lease, "waiting for the lease");
        let acquired =
            Leadership::acquire(context.writer.clone(), config, Arc::clone(&context.clock), stop.clone())
                .await;
        let Some(acquired) = acquired else { return Ok(()) };
        tracing::info!(%lease, "holding the lease");
        leadership = Some((lease, acquired));
    }
    tokio::select! {
        () = synced(&context) => {}
        () = stop.cancelled() => {}
    }
    let mut tasks: Vec<JoinHandle<()>> = vec![];
    if !stop.is_cancelled() {
        tasks.extend(controllers.iter().flat_map(|controller| controller.start(&context)));
        tasks.extend(far_side.map(simulated_cloud::Part::spawn));
    }
    let mut result = Ok(());
    match &leadership {
        Some((lease, acquired)) => tokio::select! {
            () = stop.cancelled() => {}
            () = acquired.lost() => {
                result = Err(anyhow!("lost the lease `{lease}`"));
                stop.cancel();
            }
        },
        None => stop.cancelled().await,
    }
    for task in tasks {
        if let Err(error) = task.await {
            tracing::error!(%error, "a controller ended abnormally");
        }
    }
    if let Some((_, acquired)) = leadership
        && result.is_ok()
    {
        acquired.release().await;
    }
    result
}

async fn synced(context: &Context) {
    tokio::join!(
        context.machines.synced(),
        context.sets.synced(),
        context.checks.synced(),
        context.nodes.synced()
    );
}

/// Name of this host, or of this pod.
pub fn host_name() -> String {
    std::env::var("HOSTNAME")
        .ok()
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "machine-api-operator".into())
}
