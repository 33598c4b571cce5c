//! The far side of the simulated cloud: in the controllers' process, or by itself.

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use mapi_runtime::CancellationToken;
use mapi_runtime::client::{self, ClientOptions};
use mapi_runtime::clock::SystemClock;
use tokio::task::JoinHandle;

use crate::args::SimulatedCloudArgs;

/// User agent of the cloud, near side and far side.
const USER_AGENT: &str = concat!("machine-api-simulated-cloud/", env!("CARGO_PKG_VERSION"));

/// Instances that are worked on at once.
const CONCURRENCY: usize = 32;

/// The far side, ready to run.
pub struct Part {
    /// A client of its own.
    pub client: kube::Client,
    /// The only namespace of instances, if there is one.
    pub namespace: Option<String>,
    /// Whether Leases are renewed.
    pub heartbeats: bool,
    /// Cancelled when it shall end.
    pub stop: CancellationToken,
}

impl Part {
    /// Runs it in a task of its own.
    pub fn spawn(self) -> JoinHandle<()> {
        let Self { client, namespace, heartbeats, stop } = self;
        let ended = stop.clone();
        let options = mapi_simcloud::Options {
            client,
            namespace,
            clock: Arc::new(SystemClock),
            stop,
            heartbeats,
            concurrency: CONCURRENCY,
        };
        tokio::spawn(async move {
            if let Err(error) = mapi_simcloud::run(options).await {
                tracing::error!(%error, "the simulated cloud ended");
                ended.cancel();
            }
        })
    }
}

/// How the cloud's own client behaves. Of the requests in flight, the far side wants as many again for heartbeats as for
/// work, so that a burst of work never makes a Lease late; the near side alone needs half.
pub fn client_options(has_far_side: bool) -> ClientOptions {
    ClientOptions {
        user_agent: USER_AGENT,
        qps: 0.0,
        burst: 0,
        in_flight: if has_far_side { CONCURRENCY * 2 } else { CONCURRENCY },
        timeout: Duration::from_secs(60),
    }
}

/// A client with the cloud's own user agent.
pub fn client(config: kube::Config, has_far_side: bool) -> anyhow::Result<kube::Client> {
    client::client(config, &client_options(has_far_side)).map_err(|e| anyhow!(e))
}

/// Runs the far side until a signal.
pub async fn run(args: SimulatedCloudArgs) -> anyhow::Result<()> {
    let config = client::config(args.kubeconfig.as_deref()).await.map_err(|e| anyhow!(e))?;
    let stop = CancellationToken::new();
    let part = Part {
        client: client(config, true)?,
        namespace: Some(args.namespace).filter(|n| !n.is_empty()),
        heartbeats: args.heartbeats,
        stop: stop.clone(),
    };
    let running = part.spawn();
    tracing::info!("the simulated cloud is open");
    tokio::select! {
        () = crate::controllers::stopped() => {}
        () = stop.cancelled() => {}
    }
    stop.cancel();
    running.await.map_err(|error| anyhow!("the simulated cloud ended abnormally: {error}"))
}
