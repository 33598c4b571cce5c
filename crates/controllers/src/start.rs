//! Which controllers there are, which lease each needs, and how they begin.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use mapi_api::event::{Event, EventType, Regarding};
use mapi_api::{Object, names};
use mapi_runtime::store::{Change, Store, Undecodable};
use mapi_runtime::watch::{Filter, Scope, run_watch};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use crate::{Context, capacity, drain, health, machine, machine_set, node_link};

/// One controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// Keeps the number of Machines of each MachineSet.
    MachineSet,
    /// Makes and removes the instance of each Machine.
    Machine,
    /// Drains the Node of each Machine that is being deleted.
    Drain,
    /// Links Nodes to Machines.
    NodeLink,
    /// Replaces unhealthy Machines.
    MachineHealthCheck,
    /// Annotates MachineSets with the size of their machines, for scaling from zero.
    Capacity,
}

impl Controller {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::MachineSet,
        Self::Machine,
        Self::Drain,
        Self::NodeLink,
        Self::MachineHealthCheck,
        Self::Capacity,
    ];

    /// Name as in `--only`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MachineSet => "machineset",
            Self::Machine => "machine",
            Self::Drain => "drain",
            Self::NodeLink => "nodelink",
            Self::MachineHealthCheck => "machinehealthcheck",
            Self::Capacity => "capacity",
        }
    }

    /// Name of the lease that it needs: the original's, so that an upgrade hands over instead of overlapping.
    pub fn lease(self, platform: &str) -> String {
        match self {
            Self::MachineSet => "cluster-api-provider-machineset-leader".into(),
            Self::Machine | Self::Drain | Self::Capacity => format!("cluster-api-provider-{platform}-leader"),
            Self::NodeLink => "cluster-api-provider-nodelink-leader".into(),
            Self::MachineHealthCheck => "cluster-api-provider-healthcheck-leader".into(),
        }
    }

    /// Begins its work. It ends when the context's stop is asked for and what it was doing has ended.
    pub fn start(self, context: &Arc<Context>) -> Vec<JoinHandle<()>> {
        tracing::info!(controller = %self, "starting");
        match self {
            Self::MachineSet => machine_set::start(context),
            Self::Machine => machine::start(context),
            Self::Drain => drain::start(context),
            Self::NodeLink => node_link::start(context),
            Self::MachineHealthCheck => health::start(context),
            Self::Capacity => capacity::start(context),
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Controller {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|c| c.name() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::name).join(", ");
            format!("`{text}` is no controller; allowed: {allowed}")
        })
    }
}

/// Begins to fill the shared caches.
pub fn watch(context: &Arc<Context>) -> Vec<JoinHandle<()>> {
    let metrics = context.metrics.clone();
    context.machines.subscribe(move |change| {
        if let Change::Removed(machine) = change {
            metrics.forget_machine(&machine.key());
        }
    });
    let scope = || context.namespace.clone().map_or(Scope::All, Scope::Namespace);
    vec![
        watch_one(context, scope(), &context.machines, names::KIND_MACHINE, names::reporter::MACHINE),
        watch_one(context, scope(), &context.sets, names::KIND_MACHINE_SET, names::reporter::MACHINE_SET),
        watch_one(
            context,
            scope(),
            &context.checks,
            names::KIND_MACHINE_HEALTH_CHECK,
            names::reporter::HEALTH,
        ),
        watch_one(context, Scope::All, &context.nodes, "Node", names::reporter::NODE_LINK),
    ]
}

fn watch_one<T>(
    context: &Arc<Context>,
    scope: Scope,
    store: &Store<T>,
    kind: &'static str,
    reporter: &'static str,
) -> JoinHandle<()>
where
    T: Object + DeserializeOwned + Clone + fmt::Debug + Send + Sync + 'static,
{
    let (metrics, recorder) = (context.metrics.clone(), context.recorder.clone());
    store.on_undecodable(move |Undecodable { key, uid, error }| {
        tracing::warn!(kind, object = %key, %error, "a stored object cannot be decoded and is left alone");
        metrics.undecodable(kind);
        let api_version = if kind == "Node" { "v1" } else { names::API_VERSION };
        recorder.emit(
            reporter,
            Event {
                type_: EventType::Warning,
                reason: "Undecodable",
                action: "Decode",
                note: format!("the stored {kind} cannot be decoded and is left alone: {error}"),
                regarding: Regarding { api_version, kind, key: key.clone(), uid: uid.clone() },
            },
        );
    });
    run_watch(context.writer.client.clone(), scope, Filter::default(), store.clone(), context.stop.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_controller_is_told_which_there_are() {
        assert_eq!("drain".parse(), Ok(Controller::Drain));
        assert_eq!(
            "x".parse::<Controller>(),
            Err("`x` is no controller; allowed: machineset, machine, drain, nodelink, machinehealthcheck, capacity"
                .into())
        );
    }
}
