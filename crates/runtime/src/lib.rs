//! Mechanism that every controller shares: caches, queues, writes, leader election, events, metrics and their endpoints.
//!
//! For: what is the same whatever is decided. Never here: a decision about a Machine, a cloud, a controller's name.

mod api_error;
mod cache;
pub mod client;
pub mod clock;
mod dynamic;
pub mod election;
pub mod events;
mod freshness;
mod govern;
mod lenient;
pub mod metrics;
mod outbox;
pub mod queue;
mod review;
pub mod serve;
pub mod store;
#[cfg(test)]
mod testing;
mod tls;
pub mod watch;
pub mod worker;
pub mod writes;

pub use tokio_util::sync::CancellationToken;

/// Any failure, as a shell hands it on: only its chain is printed, nothing is decided by it.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
