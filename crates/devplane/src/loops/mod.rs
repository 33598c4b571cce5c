//! What a controller manager does of itself: garbage collection, the end of namespaces, budgets, silent nodes, expiry,
//! the life of CRDs. Each loop is a step over the state that is called when something changed or its time has come.
//! Never here: scheduling, workloads.
//!
//! A loop sees each change once and keeps what it needs to know in an index of its own, so that a step costs what
//! changed and not what there is.

mod budgets;
mod catalogue;
pub(crate) mod crds;
mod expiry;
mod garbage;
mod namespaces;
mod nodes;
mod pods;
mod taints;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod views;
pub(crate) mod writes;

use jiff::Timestamp;

use crate::options::Options;
use crate::state::State;
use crate::storage::Change;

use catalogue::{Catalogue, Class};

pub(crate) use budgets::{set_allowed, sync_failure};

/// Rounds of one call. A chain of owners takes a round for each of its links; what is not done then is due at once.
const ROUNDS: usize = 256;

/// What the loops remember between two steps.
#[derive(Default)]
pub(crate) struct Loops {
    options: Options,
    catalogue: Catalogue,
    crds: crds::Crds,
    garbage: garbage::Garbage,
    namespaces: namespaces::Namespaces,
    nodes: nodes::Nodes,
    pods: pods::Pods,
    budgets: budgets::Budgets,
    expiry: expiry::Expiry,
}

/// What a step works with.
struct World<'a> {
    state: &'a mut State,
    catalogue: &'a Catalogue,
    options: &'a Options,
    now: Timestamp,
}

/// Does what there is to do at `now`, and says when there is something next.
pub(crate) fn work(state: &mut State, now: Timestamp) -> Option<Timestamp> {
    let mut loops = std::mem::take(&mut state.loops);
    let next = loops.work(state, now);
    state.loops = loops;
    next
}

impl Loops {
    /// Loops that work so.
    pub(crate) fn new(options: Options) -> Self {
        Loops { options, ..Loops::default() }
    }

    fn work(&mut self, state: &mut State, now: Timestamp) -> Option<Timestamp> {
        for _ in 0..ROUNDS {
            if self.catalogue.refresh(&state.kinds) {
                self.garbage.kinds_changed();
            }
            for change in state.storage.take_unseen() {
                self.see(&change, now);
            }
            self.step(state, now);
            if !state.storage.has_unseen() {
                return self.next();
            }
        }
        Some(now)
    }

    fn see(&mut self, change: &Change, now: Timestamp) {
        let Loops { options, catalogue, crds, garbage, namespaces, nodes, pods, budgets, expiry } = self;
        let class = catalogue.class(&change.bucket);
        garbage.see(change, class);
        namespaces.see(change, class, now);
        budgets.see(change, class);
        match class {
            Class::Crd => crds.see(change),
            Class::Node => {
                pods.see_node(change);
                nodes.see_node(change, now, options);
            }
            Class::Lease => nodes.see_lease(change, now),
            Class::Pod => pods.see_pod(change),
            Class::Event => expiry.see(change, now, options),
            Class::Namespace
            | Class::Budget
            | Class::ServiceAccount
            | Class::ConfigMap
            | Class::Scalable
            | Class::Other => crds.see_instance(change),
        }
    }

    fn step(&mut self, state: &mut State, now: Timestamp) {
        let Loops { options, catalogue, crds, garbage, namespaces, nodes, pods, budgets, expiry } = self;
        let mut world = World { state, catalogue, options, now };
        crds.step(&mut world);
        garbage.step(&mut world);
        namespaces.step(&mut world);
        nodes.step(&mut world, pods);
        pods.step(&mut world);
        budgets.step(&mut world);
        expiry.step(&mut world);
    }

    fn next(&self) -> Option<Timestamp> {
        let all = [
            self.namespaces.next(),
            self.nodes.next(),
            self.pods.next(),
            self.budgets.next(),
            self.expiry.next(),
        ];
        all.into_iter().flatten().min()
    }
}
