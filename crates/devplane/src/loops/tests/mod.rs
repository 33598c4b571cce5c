//! What the loops do, in virtual time. Never here: requests.

mod budgets;
mod crds;
mod expiry;
mod garbage;
mod namespaces;
mod nodes;
mod pods;
