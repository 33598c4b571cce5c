//! `machine-api-operator controllers`: all controllers in one process, on one set of caches.
//!
//! Never here: what they are made of, which is `assembly`'s.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use mapi_controllers::Context;
use mapi_controllers::start::Controller;
use mapi_runtime::CancellationToken;
use mapi_runtime::client::{self, ClientOptions};
use mapi_runtime::election::ElectionConfig;
use mapi_runtime::serve;

use crate::args::{ControllersArgs, SimulatedCloud};
use crate::assembly::{Assembly, Group, Parts, host_name};
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
    let namespace = Some(args.namespace.clone()).filter(|n| !n.is_empty());
    let has_far_side = args.simulated_cloud == SimulatedCloud::InProcess;
    let far_client = simulated_cloud::client(config, has_far_side)?;

    let assembly = Assembly::new(Parts {
        client: kube.clone(),
        cloud_client: far_client.clone(),
        platforms: platforms.clone(),
        namespace: namespace.clone(),
        migration: gates(&args.feature_gates),
        concurrency: args.max_concurrent_reconciles.into(),
        listener: None,
        stop: stop.clone(),
    });
    serve_endpoints(&args, &assembly.context, &kube).await?;
    let far_side = (has_far_side && platforms.contains(&"kubemark") && only.contains(&Controller::Machine))
        .then(|| {
            let heartbeats = args.simulated_heartbeats;
            simulated_cloud::Part { client: far_client, namespace, heartbeats, stop: stop.clone() }
        });
    let running = assembly.start(groups(&args, only, &platforms, far_side));
    tokio::select! {
        () = stopped() => tracing::info!("stopping"),
        () = stop.cancelled() => {}
    }
    stop.cancel();
    let result = running.await.context("leader election ended abnormally")?;
    assembly.end().await;
    result
}

/// The controllers by lease. The far side of the simulated cloud goes with the controller `machine`.
fn groups(
    args: &ControllersArgs,
    only: Vec<Controller>,
    platforms: &[&str],
    mut far_side: Option<simulated_cloud::Part>,
) -> Vec<Group> {
    let platform = platforms.first().copied().unwrap_or("none");
    let mut by_lease: BTreeMap<String, Vec<Controller>> = BTreeMap::new();
    for controller in only {
        by_lease.entry(controller.lease(platform)).or_default().push(controller);
    }
    let group = |(lease, controllers): (String, Vec<Controller>)| Group {
        far_side: if controllers.contains(&Controller::Machine) { far_side.take() } else { None },
        controllers,
        lease: args.leader_elect.then(|| election(args, lease)),
    };
    by_lease.into_iter().map(group).collect()
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
