//! The contract between machines and clouds.
//!
//! A cloud is `observe → plan → act`: `plan` is pure, `act` does one idempotent write. [`Provider`] is what an author of
//! a cloud writes, typed; [`Cloud`] is what the machine controller uses, with the types erased and the loop written once.
//! Never here: anything of one cloud, Kubernetes clients, clocks.

pub mod capacity;
pub mod erased;
pub mod error;
pub mod finding;
pub mod identity;
pub mod laws;
pub mod provider;
pub mod registry;
pub mod sighting;
pub mod store;

pub use capacity::Capacity;
pub use erased::{Cloud, Erased};
pub use error::{CloudError, Kind};
pub use finding::{Finding, Findings, Severity};
pub use identity::{Identity, Want};
pub use provider::{Goal, Next, Provider, ProviderKind, ProviderSpec};
pub use registry::{Clouds, Service};
pub use sighting::{Activity, Answer, Failure, Gate, Instance, Sighting};
pub use store::{Objects, StoreError};
