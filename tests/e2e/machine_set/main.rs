//! MachineSets keep the number of their Machines, say how they stand, and carry the size of their machines for an
//! autoscaler.

mod capacity;
mod migration;
mod ownership;
mod scaling;
mod status;
mod victims;

use std::collections::BTreeSet;

use e2e::{Change, Machine, MachineSet, Ns, Object, Options, World};
use serde_json::json;

async fn world() -> World {
    World::shared(Options::default()).await
}

/// UIDs of all Machines that were ever there.
fn ever(changes: &[Change<Machine>]) -> BTreeSet<String> {
    changes.iter().map(|change| change.object().uid().to_owned()).collect()
}

fn uids(machines: &[Machine]) -> BTreeSet<String> {
    machines.iter().map(|machine| machine.uid().to_owned()).collect()
}

/// Asks for another number of Machines.
async fn resize(ns: &Ns, set: &MachineSet, replicas: usize) {
    ns.patch::<MachineSet>(set.name(), json!({"spec": {"replicas": replicas}})).await;
}

/// Makes a set of one Machine and waits until it runs: whatever the controllers had to do before is done by then.
async fn let_others_work(ns: &Ns) {
    let other = ns.machine_set("other").replicas(1).create().await;
    ns.wait_set(other.name(), |set| set.status.ready_replicas == Some(1)).await;
}

/// The Machines whose controller is this set.
fn of<'a>(set: &MachineSet, machines: &'a [Machine]) -> Vec<&'a Machine> {
    let is_ours = |machine: &&Machine| machine.controller_owner().is_some_and(|owner| owner.uid == set.uid());
    machines.iter().filter(is_ours).collect()
}
