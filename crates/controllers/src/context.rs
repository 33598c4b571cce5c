//! What all controllers of a process share: caches, the way to write, the clouds.

use std::sync::Arc;

use mapi_api::{Key, Machine, MachineHealthCheck, MachineSet, Node, Object};
use mapi_cloud::Clouds;
use mapi_runtime::clock::Clock;
use mapi_runtime::events::Recorder;
use mapi_runtime::store::Store;
use mapi_runtime::writes::Writer;
use serde::de::DeserializeOwned;
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

/// A kind that has a shared cache, and whose writes hold its keys until the cache shows them.
pub(crate) trait Stored: Object + DeserializeOwned + Send + Sync + 'static {
    /// The cache.
    fn store(context: &Context) -> &Store<Self>;
}

impl Stored for Machine {
    fn store(context: &Context) -> &Store<Self> {
        &context.machines
    }
}

impl Stored for MachineSet {
    fn store(context: &Context) -> &Store<Self> {
        &context.sets
    }
}

impl Stored for MachineHealthCheck {
    fn store(context: &Context) -> &Store<Self> {
        &context.checks
    }
}

impl Stored for Node {
    fn store(context: &Context) -> &Store<Self> {
        &context.nodes
    }
}
