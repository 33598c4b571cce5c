//! Heartbeats of all Nodes: one timer for all of them, and writes of their own.
//!
//! Never here: whether a Node speaks, which is decided elsewhere. Renewals go through no queue that other work could
//! fill: late ones would look like sick Nodes to everybody else.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mapi_api::lease::Lease;
use mapi_api::simulated_instance::Heartbeat;
use mapi_api::{Key, Node, Object, names};
use mapi_runtime::clock::Clock;
use mapi_runtime::metrics::{self, IntCounter};
use mapi_runtime::writes::{ApiError, Preconditions, Sub, Writer};
use mapi_runtime::{CancellationToken, Error};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};

use crate::node::{self, LEASE_NAMESPACE, Readiness};

/// Thirty-two renewals in flight: at 5 ms each that is 6,000 a second, more than a small API server takes.
const IN_FLIGHT: u32 = 32;

/// A second until a renewal that failed is tried again: four tries fit into the shortest lease in use.
const RETRY: Duration = Duration::from_secs(1);

/// Nine tenths of a period: after a restart every Lease is renewed within one, the way to the server included.
const SPREAD: f64 = 0.9;

/// Three: one that is out of date, one after a look, one for somebody who was faster.
const TRIES: usize = 3;

/// What is said for one Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse {
    /// Name of the Node.
    pub node: String,
    /// UID of the Node.
    pub node_uid: String,
    /// What it says of itself.
    pub readiness: Readiness,
    /// How often.
    pub heartbeat: Heartbeat,
}

/// The heartbeats of all instances. Clones share them.
#[derive(Clone)]
pub struct Heartbeats(Arc<Inner>);

struct Inner {
    writer: Writer,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Notify,
    late: IntCounter,
    renewed: IntCounter,
}

#[derive(Default)]
struct State {
    beats: HashMap<Key, Beat>,
    due: BTreeSet<(Instant, Key)>,
}

struct Beat {
    pulse: Option<Pulse>,
    next: Option<Instant>,
    next_status: Instant,
    is_late: bool,
    /// What was last seen of the Lease. Locked while it is written, so that a Lease that is removed is not renewed meanwhile.
    lease: Arc<tokio::sync::Mutex<Memory>>,
}

/// What was last seen of a Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Memory {
    /// Nothing is known: this process did not write it.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// This one.
    Seen { uid: String, version: String },
}

impl Memory {
    fn of(lease: &Lease) -> Self {
        Self::Seen { uid: lease.uid().into(), version: lease.version().into() }
    }
}

impl Heartbeats {
    /// None yet.
    pub fn new(writer: Writer, clock: Arc<dyn Clock>) -> Self {
        let counter = |name, help| metrics::counter(name, help, &[]).with_label_values::<&str>(&[]);
        Self(Arc::new(Inner {
            writer,
            clock,
            state: Mutex::default(),
            changed: Notify::new(),
            late: counter(
                "sim_heartbeat_late_total",
                "Renewals of Leases that came later than half a lease after they were due.",
            ),
            renewed: counter("sim_heartbeat_writes_total", "Renewals of Leases of simulated Nodes."),
        }))
    }

    /// Lets a Node speak. One that has just registered speaks at once, any other within the first period at a
    /// moment that depends on the instance, so that renewals are spread.
    pub fn speak(&self, instance: &Key, pulse: Pulse, is_new: bool) {
        let now = Instant::now();
        let mut state = self.state();
        let beat = state.beats.entry(instance.clone()).or_insert_with(|| Beat::silent(now, is_new));
        if beat.pulse.as_ref() == Some(&pulse) {
            return;
        }
        let is_other_node = beat.pulse.as_ref().is_none_or(|old| old.node_uid != pulse.node_uid);
        let status_period = pulse.heartbeat.status.0;
        let renew = pulse.heartbeat.lease_renew.0;
        beat.pulse = Some(pulse);
        if !is_other_node {
            return;
        }
        beat.next_status = now + status_period;
        let next = if is_new { now } else { now + renew.mul_f64(SPREAD * phase(instance)) };
        state.schedule(instance, next);
        drop(state);
        self.0.changed.notify_one();
    }

    /// Lets a Node fall silent. Its Lease stays as it is.
    pub fn silence(&self, instance: &Key) {
        let mut state = self.state();
        state.unschedule(instance);
        if let Some(beat) = state.beats.get_mut(instance) {
            beat.pulse = None;
        }
    }

    /// Forgets an instance that is gone.
    pub fn forget(&self, instance: &Key) {
        let mut state = self.state();
        state.unschedule(instance);
        state.beats.remove(instance);
    }

    /// Forgets an instance and removes its Lease, after a renewal that is on its way.
    pub async fn remove(&self, instance: &Key, node: &str) -> Result<(), ApiError> {
        self.silence(instance);
        let memory = self.state().beats.get(instance).map(|beat| Arc::clone(&beat.lease));
        let memory = memory.unwrap_or_default();
        let mut known = memory.lock().await;
        let key = Key::new(LEASE_NAMESPACE, node);
        let uid = match std::mem::take(&mut *known) {
            Memory::Seen { uid, version: _ } => Some(uid),
            Memory::Absent => None,
            Memory::Unknown => {
                let lease = self.0.writer.get::<Lease>(&key).await?;
                lease.filter(|lease| is_ours(lease, instance)).map(|lease| lease.uid().to_owned())
            }
        };
        if let Some(uid) = uid {
            self.0.writer.delete::<Lease>(&key, Preconditions::uid(&uid)).await?;
        }
        self.state().beats.remove(instance);
        Ok(())
    }

    /// Renews Leases as they fall due, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let permits = Arc::new(Semaphore::new(IN_FLIGHT as usize));
        tokio::select! { biased; () = stop.cancelled() => {}, () = self.dispatch(&permits) => {} }
        // Renewals that are on their way end first.
        let _ = permits.acquire_many(IN_FLIGHT).await;
    }

    async fn dispatch(&self, permits: &Arc<Semaphore>) {
        loop {
            let earliest = self.state().due.first().map(|(at, _)| *at);
            let due = async {
                match earliest {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.0.changed.notified() => continue,
                () = due => {}
            }
            // The permit is taken first: what is due is chosen when it can be sent, the longest overdue first.
            let Ok(permit) = Arc::clone(permits).acquire_owned().await else { return };
            let Some((instance, planned)) = self.state().take_due(Instant::now()) else { continue };
            let this = self.clone();
            tokio::spawn(async move {
                this.beat(&instance, planned).await;
                drop(permit);
            });
        }
    }

    async fn beat(&self, instance: &Key, planned: Instant) {
        let Some((pulse, memory)) = self.begin(instance, planned) else { return };
        let outcome = async {
            let mut known = memory.lock().await;
            // It may have fallen silent while a renewal before this one was on its way.
            if self.state().is_speaking(instance, &pulse) {
                self.renew(instance, &pulse, &mut known).await?;
                self.repeat_status(instance, &pulse).await?;
            }
            Ok::<_, Error>(())
        };
        let next = match outcome.await {
            Ok(()) => (planned + pulse.heartbeat.lease_renew.0).max(Instant::now()),
            Err(error) => {
                let error = mapi_runtime::worker::chain(&*error);
                tracing::warn!(%instance, node = pulse.node, error, "heartbeat failed, trying again");
                Instant::now() + RETRY
            }
        };
        let mut state = self.state();
        // A change meanwhile has made its own appointment.
        let is_open =
            state.beats.get(instance).is_some_and(|beat| beat.pulse.is_some() && beat.next.is_none());
        if is_open {
            state.schedule(instance, next);
            drop(state);
            self.0.changed.notify_one();
        }
    }

    fn begin(&self, instance: &Key, planned: Instant) -> Option<(Pulse, Arc<tokio::sync::Mutex<Memory>>)> {
        let mut state = self.state();
        let beat = state.beats.get_mut(instance)?;
        let pulse = beat.pulse.clone()?;
        let is_late = planned.elapsed() > pulse.heartbeat.lease_duration.0 / 2;
        if is_late {
            self.0.late.inc();
            if !beat.is_late {
                tracing::warn!(%instance, node = pulse.node, "heartbeat is late by more than half a lease");
            }
        }
        beat.is_late = is_late;
        Some((pulse, Arc::clone(&beat.lease)))
    }

    async fn renew(&self, instance: &Key, pulse: &Pulse, known: &mut Memory) -> Result<(), ApiError> {
        let key = Key::new(LEASE_NAMESPACE, &pulse.node);
        let seconds = i32::try_from(pulse.heartbeat.lease_duration.0.as_secs()).unwrap_or(i32::MAX);
        let wanted =
            || node::lease(&instance.name, (&pulse.node, &pulse.node_uid), seconds, self.0.clock.now());
        // A version that is out of date, and a Lease that somebody removed, are found out by trying.
        for _ in 0..TRIES {
            if *known == Memory::Unknown {
                *known = self.look(instance, &key).await?;
            }
            let answer = match &*known {
                Memory::Seen { uid, version } => {
                    let mut whole: Lease = serde_json::from_value(wanted()).expect("a lease of ours is one");
                    whole.metadata.uid = Some(uid.clone());
                    whole.metadata.resource_version = Some(version.clone());
                    self.0.writer.replace(&whole).await
                }
                Memory::Unknown | Memory::Absent => self.0.writer.create(LEASE_NAMESPACE, &wanted()).await,
            };
            *known = Memory::Unknown;
            match answer {
                Ok(lease) => {
                    *known = Memory::of(&lease);
                    self.0.renewed.inc();
                    return Ok(());
                }
                Err(e) if e.is_conflict() || e.is_already_exists() || e.is_not_found() => {}
                Err(e) => return Err(e),
            }
        }
        Err(ApiError::new(409, "Conflict", format!("lease `{key}` changes faster than it can be renewed")))
    }

    async fn look(&self, instance: &Key, key: &Key) -> Result<Memory, ApiError> {
        match self.0.writer.get::<Lease>(key).await? {
            None => Ok(Memory::Absent),
            Some(lease) if is_ours(&lease, instance) => Ok(Memory::of(&lease)),
            Some(_) => Err(ApiError::new(
                409,
                "Conflict",
                format!("lease `{key}` is not that of instance `{instance}`"),
            )),
        }
    }

    async fn repeat_status(&self, instance: &Key, pulse: &Pulse) -> Result<(), ApiError> {
        let now = Instant::now();
        {
            let mut state = self.state();
            let Some(beat) = state.beats.get_mut(instance).filter(|beat| beat.next_status <= now) else {
                return Ok(());
            };
            beat.next_status = now + pulse.heartbeat.status.0;
        }
        let patch = node::beat(&pulse.readiness, self.0.clock.now());
        match self.0.writer.strategic_patch::<Node>(&Key::cluster(&pulse.node), Sub::Status, &patch).await {
            Ok(_) => Ok(()),
            Err(e) if e.is_not_found() => Ok(()),
            Err(e) => Err(e),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beat {
    fn silent(now: Instant, is_new: bool) -> Self {
        let memory = if is_new { Memory::Absent } else { Memory::Unknown };
        let lease = Arc::new(tokio::sync::Mutex::new(memory));
        Self { pulse: None, next: None, next_status: now, is_late: false, lease }
    }
}

impl State {
    fn schedule(&mut self, instance: &Key, at: Instant) {
        self.unschedule(instance);
        if let Some(beat) = self.beats.get_mut(instance) {
            beat.next = Some(at);
            self.due.insert((at, instance.clone()));
        }
    }

    fn unschedule(&mut self, instance: &Key) {
        if let Some(at) = self.beats.get_mut(instance).and_then(|beat| beat.next.take()) {
            self.due.remove(&(at, instance.clone()));
        }
    }

    fn take_due(&mut self, now: Instant) -> Option<(Key, Instant)> {
        let (at, instance) = self.due.first().filter(|(at, _)| *at <= now).cloned()?;
        self.unschedule(&instance);
        Some((instance, at))
    }

    fn is_speaking(&self, instance: &Key, pulse: &Pulse) -> bool {
        let now = self.beats.get(instance).and_then(|beat| beat.pulse.as_ref());
        now.is_some_and(|now| now.node_uid == pulse.node_uid)
    }
}

/// Only Leases that were made for this instance are touched.
fn is_ours(lease: &Lease, instance: &Key) -> bool {
    lease.label(names::label::SIMULATED_INSTANCE) == Some(&*instance.name)
}

/// Where in its period an instance speaks, from 0 to 1.
fn phase(instance: &Key) -> f64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in instance.name.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // The high bits of the hash of two names that differ at the end only are alike until they are mixed.
    state = (state ^ (state >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    f64::from(u16::try_from(state >> 48).unwrap_or(u16::MAX)) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests;
