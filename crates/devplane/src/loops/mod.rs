//! What a controller manager does of itself: garbage collection, the end of namespaces, budgets, silent nodes, expiry,
//! the life of CRDs. Each loop is a step over the state that is called when something changed or its time has come.
//! Never here: scheduling, workloads.

use jiff::Timestamp;

use crate::state::State;

/// What the loops remember between two steps.
#[derive(Default)]
pub(crate) struct Loops {}

/// Does what there is to do at `now`, and says when there is something next.
pub(crate) fn work(state: &mut State, now: Timestamp) -> Option<Timestamp> {
    let _ = (state, now);
    None
}
