//! The simulated cloud's far side: it plays cloud and kubelet for every `SimulatedInstance`.
//!
//! It reads no Machine and no set. What to do about an instance is decided by [`decide::advance`], which is pure; [`run`]
//! is the shell around it. It touches only Nodes, Leases and Pods of its own: those that carry the marker.

mod agent;
pub mod decide;
mod heartbeat;
pub mod life;
pub mod node;
mod pods;
pub mod rules;

pub use agent::{Options, run};
