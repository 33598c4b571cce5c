//! What all controllers of a process share: caches, the way to write, the clouds.

use std::sync::Arc;

use mapi_api::{Key, Machine, MachineHealthCheck, MachineSet, Node};
use mapi_cloud::Clouds;
use mapi_core::Kind;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::store::Store;
use mapi_runtime::writes::Writer;
use tokio_util::sync::CancellationToken;

use crate::indexes;
use crate::metrics::Metrics;

/// What all controllers of a process share.
pub struct Context {
    /// Machines of the watched namespaces.
    pub machines: Store<Machine>,
    /// MachineSets of the watched namespaces.
    pub sets: Store<MachineSet>,
    /// MachineHealthChecks of the watched namespaces.
    pub checks: Store<MachineHealthCheck>,
    /// All Nodes.
    pub nodes: Store<Node>,
    /// The way to write, under the controllers' user agent.
    pub writer: Writer,
    /// The way to tell events.
    pub recorder: Recorder,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The clouds that this process serves.
    pub clouds: Clouds,
    /// Whether the feature gate `MachineAPIMigration` is on.
    pub migration: bool,
    /// Metrics of the controllers.
    pub metrics: Metrics,
    /// Cancelled when the process shall stop.
    pub stop: CancellationToken,
    /// The only namespace that is watched, if there is one.
    pub namespace: Option<String>,
    /// Keys that one controller works on at once.
    pub concurrency: usize,
}

/// The four shared caches, empty.
pub struct Caches {
    /// Machines.
    pub machines: Store<Machine>,
    /// MachineSets.
    pub sets: Store<MachineSet>,
    /// MachineHealthChecks.
    pub checks: Store<MachineHealthCheck>,
    /// Nodes.
    pub nodes: Store<Node>,
}

impl Default for Caches {
    fn default() -> Self {
        Self {
            machines: Store::new(indexes::MACHINE),
            sets: Store::new(&[]),
            checks: Store::new(&[]),
            nodes: Store::new(indexes::NODES),
        }
    }
}

/// The hold that a MachineSet waits for: creations and deletions of its Machines that the cache has not shown yet.
pub fn owner_hold(uid: &str) -> Key {
    Key::new("owner", uid)
}

impl Context {
    /// Begins a write to an object: until its end, and until the cache shows it, nobody acts on the object.
    pub(crate) fn begin_write(&self, kind: Kind, hold: &Key) -> Hold {
        match kind {
            Kind::Machine => Hold::Machine(self.machines.begin_write(hold)),
            Kind::MachineSet => Hold::Set(self.sets.begin_write(hold)),
            Kind::MachineHealthCheck => Hold::Check(self.checks.begin_write(hold)),
            Kind::Node => Hold::Node(self.nodes.begin_write(hold)),
        }
    }
}

/// A write under way, of whatever kind.
pub(crate) enum Hold {
    Machine(mapi_runtime::store::Write<Machine>),
    Set(mapi_runtime::store::Write<MachineSet>),
    Check(mapi_runtime::store::Write<MachineHealthCheck>),
    Node(mapi_runtime::store::Write<Node>),
}

impl Hold {
    /// The write ended with this version.
    pub(crate) fn done(self, version: &str) {
        match self {
            Self::Machine(write) => write.done(version),
            Self::Set(write) => write.done(version),
            Self::Check(write) => write.done(version),
            Self::Node(write) => write.done(version),
        }
    }

    /// The object with this UID is gone: whoever waits goes on once the cache has lost it.
    pub(crate) fn gone(self, key: &Key, uid: &str) {
        match self {
            Self::Machine(write) => write.gone(key, uid),
            Self::Set(write) => write.gone(key, uid),
            Self::Check(write) => write.gone(key, uid),
            Self::Node(write) => write.gone(key, uid),
        }
    }
}
