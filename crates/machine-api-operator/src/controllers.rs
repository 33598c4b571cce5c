//! `machine-api-operator controllers`: all controllers in one process, on one set of caches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use mapi_api::SimulatedInstance;
use mapi_controllers::Context;
use mapi_controllers::context::Caches;
use mapi_controllers::metrics::Metrics;
use mapi_controllers::start::{Controller, watch};
use mapi_controllers::stores::ObjectStore;
use mapi_runtime::CancellationToken;
use mapi_runtime::client::{self, ClientOptions};
use mapi_runtime::clock::{Clock, SystemClock};
use mapi_runtime::election::{ElectionConfig, Leadership};
use mapi_runtime::events::Recorder;
use mapi_runtime::serve;
use mapi_runtime::watch::{Filter, Scope, run_watch};
use mapi_runtime::writes::Writer;
use tokio::task::{JoinHandle, JoinSet};

use crate::args::{ControllersArgs, SimulatedCloud};
use crate::{registry, simulated_cloud};

/// User agent of the controllers; an audit log tells them from the simulated cloud by it.
const USER_AGENT: &str = concat!("machine-api-operator/", env!("CARGO_PKG_VERSION"));
/// The gate of the migration to Cluster API.
const MIGRATION_GATE: &str = "MachineAPIMigration";
/// Namespace of the leases where none is given. Source: the original's deployment.
const DEFAULT_NAMESPACE: &str = "openshift-machine-api";
/// A request to the API server that takes longer is given up and tried again: twice the server's own usual limit for
/// a slow admission webhook.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the controllers until a signal or the loss of a lease.
pub async fn run(args: Box<ControllersArgs>) -> anyhow::Result<()> {
    let platforms = registry::platforms(&args.platforms)?;
    check_election(&args)?;
    let only = if args.only.is_empty() { Controller::ALL.to_vec() } else { args.only.clone() };
    let stop = CancellationToken::new();
    let config = client::config(args.kubeconfig.as_deref()).await.map_err(|e| anyhow!(e))?;
    let options = ClientOptions {
        user_agent: USER_AGENT,
        qps: args.kube_api_qps,
        burst: args.kube_api_burst,
        in_flight: usize::from(args.max_concurrent_reconciles),
        timeout: REQUEST_TIMEOUT,
    };
    let kube = client::client(config.clone(), &options).map_err(|e| anyhow!(e))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let namespace = Some(args.namespace.clone()).filter(|n| !n.is_empty());
    let writer = Writer::new(kube.clone());
    let (recorder, recording) = Recorder::new(writer.clone(), host_name(), Arc::clone(&clock));
    let recording = tokio::spawn(recording);

    let mut background: Vec<JoinHandle<()>> = vec![];
    let instances = registry::instances();
    let far_client = simulated_cloud::client(config, args.simulated_cloud == SimulatedCloud::InProcess)?;
    if platforms.contains(&"kubemark") {
        let scope = namespace.clone().map_or(Scope::All, Scope::Namespace);
        background.push(run_watch(
            far_client.clone(),
            scope,
            Filter::default(),
            instances.clone(),
            stop.clone(),
        ));
    }
    let near = ObjectStore::<SimulatedInstance>::new(instances.clone(), Writer::new(far_client.clone()));
    let clouds = registry::clouds(&platforms, &registry::Parts { instances: Arc::new(near) });

    let Caches { machines, sets, checks, nodes } = Caches::default();
    let context = Arc::new(Context {
        machines,
        sets,
        checks,
        nodes,
        writer: writer.clone(),
        recorder: recorder.clone(),
        clock: Arc::clone(&clock),
        clouds,
        migration: gates(&args.feature_gates),
        metrics: Metrics::default(),
        stop: stop.clone(),
        namespace: namespace.clone(),
        concurrency: args.max_concurrent_reconciles.into(),
    });
    background.extend(watch(&context));

    serve_endpoints(&args, &context, &kube).await?;
    let far_side = (args.simulated_cloud == SimulatedCloud::InProcess
        && platforms.contains(&"kubemark")
        && only.contains(&Controller::Machine))
    .then(|| simulated_cloud::Part {
        client: far_client,
        namespace,
        heartbeats: args.simulated_heartbeats,
        stop: stop.clone(),
    });
    let leases = lead(&args, only, &platforms, &context, far_side);
    tokio::select! {
        () = stopped() => tracing::info!("stopping"),
        () = stop.cancelled() => {}
    }
    stop.cancel();
    let result = leases.await.context("leader election ended abnormally")?;
    for task in background {
        // A watch that panicked was logged; there is nothing left to save of it.
        let _ = task.await;
    }
    recorder.flush().await;
    recording.abort();
    result
}

/// Groups the controllers by lease, starts each group once its lease is held, and releases the leases once everything
/// that the groups were doing has ended.
fn lead(
    args: &ControllersArgs,
    only: Vec<Controller>,
    platforms: &[&str],
    context: &Arc<Context>,
    mut far_side: Option<simulated_cloud::Part>,
) -> JoinHandle<anyhow::Result<()>> {
    let platform = platforms.first().copied().unwrap_or("none");
    let mut groups: BTreeMap<String, Vec<Controller>> = BTreeMap::new();
    for controller in only {
        groups.entry(controller.lease(platform)).or_default().push(controller);
    }
    let mut tasks = JoinSet::new();
    for (lease, controllers) in groups {
        let part = if controllers.contains(&Controller::Machine) { far_side.take() } else { None };
        let config = args.leader_elect.then(|| election(args, lease));
        tasks.spawn(run_group(config, controllers, Arc::clone(context), part));
    }
    let stop = context.stop.clone();
    tokio::spawn(async move {
        let mut result = Ok(());
        while let Some(ended) = tasks.join_next().await {
            // The end of one group is the end of the process: a lost lease must not leave half of it running.
            stop.cancel();
            let ended = ended.context("a controller ended abnormally").and_then(|r| r);
            if result.is_ok() {
                result = ended;
            }
        }
        result
    })
}

async fn run_group(
    election: Option<ElectionConfig>,
    controllers: Vec<Controller>,
    context: Arc<Context>,
    far_side: Option<simulated_cloud::Part>,
) -> anyhow::Result<()> {
    let stop = context.stop.clone();
    let mut leadership = None;
    if let Some(config) = election {
        let lease = config.lease.clone();
        tracing::info!(%lease, "waiting for the lease");
        let acquired =
            Leadership::acquire(context.writer.clone(), config, Arc::clone(&context.clock), stop.clone())
                .await;
        let Some(acquired) = acquired else { return Ok(()) };
        tracing::info!(%lease, "holding the lease");
        leadership = Some((lease, acquired));
    }
    let synced = async {
        tokio::join!(
            context.machines.synced(),
            context.sets.synced(),
            context.checks.synced(),
            context.nodes.synced()
        )
    };
    tokio::select! {
        _ = synced => {}
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

/// A holder must give up before others may take over, and must have time for more than one attempt until then.
fn check_election(args: &ControllersArgs) -> anyhow::Result<()> {
    let ControllersArgs {
        leader_elect_lease_duration: duration,
        leader_elect_renew_deadline: renew,
        leader_elect_retry_period: retry,
        ..
    } = args;
    if renew >= duration {
        bail!(
            "--leader-elect-renew-deadline: {renew:?} must be shorter than the lease duration, {duration:?}"
        );
    }
    if retry >= renew {
        bail!("--leader-elect-retry-period: {retry:?} must be shorter than the renew deadline, {renew:?}");
    }
    Ok(())
}

fn election(args: &ControllersArgs, lease: String) -> ElectionConfig {
    let namespace =
        [args.leader_elect_resource_namespace.as_str(), args.namespace.as_str(), DEFAULT_NAMESPACE]
            .into_iter()
            .find(|n| !n.is_empty())
            .expect("the last one is not empty");
    ElectionConfig {
        namespace: namespace.into(),
        lease,
        identity: format!("{}_{}", host_name(), start_token()),
        duration: args.leader_elect_lease_duration,
        renew: args.leader_elect_renew_deadline,
        retry: args.leader_elect_retry_period,
    }
}

async fn serve_endpoints(
    args: &ControllersArgs,
    context: &Arc<Context>,
    kube: &kube::Client,
) -> anyhow::Result<()> {
    let checks = serve::Checks::default();
    checks.healthz("ping", || Ok(()));
    let caches = Arc::clone(context);
    checks.readyz("caches", move || {
        let synced = [
            ("machines", caches.machines.is_synced()),
            ("machinesets", caches.sets.is_synced()),
            ("machinehealthchecks", caches.checks.is_synced()),
            ("nodes", caches.nodes.is_synced()),
        ];
        let missing: Vec<_> =
            synced.iter().filter(|(_, is_synced)| !is_synced).map(|(name, _)| *name).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("not read yet: {}", missing.join(", "))) }
    });
    let stop = || context.stop.clone();
    let health = serve::health(&args.health_addr, checks, stop()).await;
    if let Some(serving) = health.map_err(|e| anyhow!("--health-addr: {e}"))? {
        tracing::info!(address = %serving.address, "serving health");
    }
    let metrics =
        serve::metrics(&args.metrics_bind_address, args.tls_dir.clone(), kube.clone(), stop()).await;
    if let Some(serving) = metrics.map_err(|e| anyhow!("--metrics-bind-address: {e}"))? {
        tracing::info!(address = %serving.address, "serving metrics");
    }
    Ok(())
}

/// Whether the gate of the migration is on. Unknown gates are said and ignored: the operator may know more than we do.
fn gates(gates: &[(String, bool)]) -> bool {
    for (name, _) in gates.iter().filter(|(name, _)| name != MIGRATION_GATE) {
        tracing::info!(gate = %name, "this feature gate means nothing here");
    }
    gates.iter().rev().find(|(name, _)| name == MIGRATION_GATE).is_some_and(|(_, is_on)| *is_on)
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

/// Tells two runs on one host apart.
fn start_token() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/uuid")
        .map_or_else(|_| std::process::id().to_string(), |token| token.trim().to_owned())
}

/// Ends with SIGTERM or SIGINT.
pub async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_the_migration_gate_counts() {
        let on =
            |list: &[(&str, bool)]| gates(&list.iter().map(|(n, v)| ((*n).into(), *v)).collect::<Vec<_>>());
        assert!(!on(&[]));
        assert!(on(&[("MachineAPIMigration", false), ("MachineAPIMigration", true), ("Other", false)]));
    }

    #[test]
    fn controllers_of_one_lease_share_it() {
        assert_eq!(Controller::Drain.lease("aws"), Controller::Machine.lease("aws"));
    }
}
