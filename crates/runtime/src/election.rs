//! Leader election through a Lease. Never here: what a leader does.
//!
//! Nobody's wall clock is believed: a candidate waits the lease's duration from the moment at which it saw the lease
//! change, by its own monotonic clock, and a leader stops before that time has passed since it last began a renewal that
//! succeeded. The times in the Lease are for people.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use mapi_api::Key;
use mapi_api::lease::{Lease, LeaseSpec};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::CancellationToken;
use crate::clock::Clock;
use crate::govern::fraction;
use crate::metrics::LEADER;
use crate::worker::chain;
use crate::writes::{ApiError, Writer};

/// Which lease, who, and how fast.
#[derive(Clone, Debug)]
pub struct ElectionConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub lease: String,
    /// Who we are; must differ between processes.
    pub identity: String,
    /// How long others wait after the last renewal. Must be longer than `renew`.
    pub duration: Duration,
    /// How long a leader goes on without a renewal.
    pub renew: Duration,
    /// Between two attempts.
    pub retry: Duration,
}

impl ElectionConfig {
    /// The times that let one restart of an API server pass without a change of leader.
    pub fn new(namespace: &str, lease: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            identity: identity.to_owned(),
            duration: Duration::from_secs(137),
            renew: Duration::from_secs(107),
            retry: Duration::from_secs(26),
        }
    }
}

/// Five seconds to release: a process that ends does not wait longer; the lease then runs out by itself.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// A lease that is held and renewed in the background. Dropping it stops the renewal and releases nothing.
pub struct Leadership {
    lost: CancellationToken,
    stop: CancellationToken,
    renewal: Option<JoinHandle<Candidate>>,
}

impl Leadership {
    /// Waits until the lease is ours. `None`: `stop` came first.
    pub async fn acquire(
        writer: Writer,
        config: ElectionConfig,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> Option<Self> {
        LEADER.with_label_values(&[&config.lease]).set(0);
        let mut candidate = Candidate { writer, config, clock, observed: None };
        let valid_until = stop.run_until_cancelled(candidate.wait()).await?;
        let (lease, identity) = (&candidate.config.lease, &candidate.config.identity);
        tracing::info!(%lease, %identity, "became leader");
        LEADER.with_label_values(&[lease]).set(1);
        let (lost, stop) = (CancellationToken::new(), CancellationToken::new());
        let renewal = tokio::spawn(candidate.keep(valid_until, lost.clone(), stop.clone()));
        Some(Self { lost, stop, renewal: Some(renewal) })
    }

    /// Resolves when the lease is lost. Whoever leads must then stop at once.
    pub fn lost(&self) -> impl Future<Output = ()> + Send + 'static {
        self.lost.clone().cancelled_owned()
    }

    /// Gives the lease up, so that another leads at once. To be called when nothing of ours is in flight any more.
    pub async fn release(mut self) {
        self.stop.cancel();
        let Some(renewal) = self.renewal.take() else { return };
        let Ok(candidate) = renewal.await else { return };
        if !self.lost.is_cancelled() {
            candidate.release().await;
        }
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

struct Candidate {
    writer: Writer,
    config: ElectionConfig,
    clock: Arc<dyn Clock>,
    observed: Option<Observed>,
}

/// The lease as it was seen, and when it was first seen to be so.
struct Observed {
    lease: Lease,
    since: Instant,
}

impl Candidate {
    /// Tries until the lease is ours. Returns until when it is without a renewal.
    async fn wait(&mut self) -> Instant {
        loop {
            let began = Instant::now();
            match timeout(self.config.renew, self.attempt()).await {
                Ok(Ok(true)) => return began + self.config.renew,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => self.log(&chain(&error)),
                Err(_) => self.log("no answer in time"),
            }
            // Candidates that started together must not go on asking together.
            sleep(self.config.retry.mul_f64(1.0 + fraction() / 5.0)).await;
        }
    }

    /// Renews until told to stop or until the lease is lost.
    async fn keep(
        mut self,
        mut valid_until: Instant,
        lost: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        let mut next = Instant::now() + self.config.retry;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(next.min(valid_until)) => {}
            }
            let began = Instant::now();
            next = began + self.config.retry;
            // The deadline is enforced here and not by the client, which may wait out a busy server.
            let answer = timeout_at(valid_until, self.attempt()).await;
            match answer {
                Ok(Ok(true)) => valid_until = began + self.config.renew,
                Ok(Ok(false)) => valid_until = began,
                Ok(Err(error)) => self.log(&chain(&error)),
                Err(_) => self.log("no answer in time"),
            }
            if Instant::now() >= valid_until {
                tracing::error!(lease = %self.config.lease, "lost the lease");
                lost.cancel();
                break;
            }
        }
        LEADER.with_label_values(&[&self.config.lease]).set(0);
        self
    }

    /// Takes or renews the lease. `false`: it is another's.
    async fn attempt(&mut self) -> Result<bool, ApiError> {
        if let Some(observed) = &self.observed
            && self.is_ours(&observed.lease)
        {
            match self.write(observed.lease.clone()).await {
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                answer => return answer,
            }
        }
        let key = Key::new(&self.config.namespace, &self.config.lease);
        let Some(lease) = self.writer.get::<Lease>(&key).await? else { return self.create().await };
        self.observe(lease.clone());
        if self.may_take(&lease) { self.write(lease).await } else { Ok(false) }
    }

    fn is_ours(&self, lease: &Lease) -> bool {
        lease.spec.holder_identity.as_deref() == Some(&*self.config.identity)
    }

    fn may_take(&self, lease: &Lease) -> bool {
        let is_free = lease.spec.holder_identity.as_deref().is_none_or(str::is_empty);
        if is_free || self.is_ours(lease) {
            return true;
        }
        let seconds = lease.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let duration = seconds.map_or(self.config.duration, Duration::from_secs);
        self.observed.as_ref().is_some_and(|observed| observed.since.elapsed() > duration)
    }

    /// Remembers a lease; the time runs anew only if its content changed.
    fn observe(&mut self, lease: Lease) {
        let unchanged = self.observed.as_ref().filter(|observed| observed.lease.spec == lease.spec);
        let since = unchanged.map_or_else(Instant::now, |observed| observed.since);
        self.observed = Some(Observed { lease, since });
    }

    async fn create(&mut self) -> Result<bool, ApiError> {
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self.config.namespace, "name": self.config.lease},
            "spec": self.spec(&LeaseSpec::default()),
        });
        match self.writer.create::<Lease>(&self.config.namespace, &body).await {
            Ok(lease) => {
                self.observe(lease);
                Ok(true)
            }
            Err(error) if error.is_already_exists() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes us into a lease that was read before. A conflict means that somebody was faster.
    async fn write(&mut self, lease: Lease) -> Result<bool, ApiError> {
        let spec = self.spec(&lease.spec);
        let was_ours = self.is_ours(&lease);
        match self.writer.replace(&Lease { spec, ..lease }).await {
            Ok(lease) => {
                self.observe(lease);
                Ok(true)
            }
            Err(error) if error.is_conflict() && !was_ours => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What we write into a lease that says `before`.
    fn spec(&self, before: &LeaseSpec) -> LeaseSpec {
        let now = MicroTime(self.clock.now());
        let is_renewal = before.holder_identity.as_deref() == Some(&*self.config.identity);
        let transitions = before.lease_transitions.unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(self.config.duration.as_secs().try_into().unwrap_or(i32::MAX)),
            acquire_time: before.acquire_time.clone().filter(|_| is_renewal).or(Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if is_renewal { transitions } else { transitions.saturating_add(1) }),
        }
    }

    async fn release(self) {
        let Some(Observed { lease, .. }) = self.observed else { return };
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            // Others use it as the time to wait; zero is refused by the server.
            lease_duration_seconds: Some(1),
            renew_time: Some(MicroTime(self.clock.now())),
            ..lease.spec.clone()
        };
        let lease = Lease { spec, ..lease };
        match timeout(RELEASE_TIMEOUT, self.writer.replace(&lease)).await {
            Ok(Ok(_)) => tracing::info!(lease = %self.config.lease, "released the lease"),
            Ok(Err(error)) => {
                tracing::warn!(lease = %self.config.lease, error = chain(&error), "cannot release")
            }
            Err(_) => tracing::warn!(lease = %self.config.lease, "cannot release: no answer in time"),
        }
    }

    fn log(&self, error: &str) {
        tracing::warn!(lease = %self.config.lease, error, "cannot take or renew the lease");
    }
}

#[cfg(test)]
mod tests;
