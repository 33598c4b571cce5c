//! Mechanism that every controller shares: caches, queues, writes, leader election, events, metrics and their endpoints.
//!
//! For: what is the same whatever is decided. Never here: a decision about a Machine, a cloud, a controller's name.

pub mod client;
pub mod clock;
pub mod election;
pub mod events;
pub mod metrics;
pub mod queue;
pub mod serve;
pub mod store;
pub mod watch;
pub mod worker;
pub mod writes;

pub use tokio_util::sync::CancellationToken;

/// Any failure, as a shell hands it on: only its chain is printed, nothing is decided by it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
