//! The embedded control plane: a Kubernetes API server in memory, for trying the product and for testing it.
//!
//! It keeps no clock, randomness or socket of its own: time and chance are handed in as an [`Environment`], so that a
//! simulator can run it in virtual time. The HTTPS server is a shell around the service. Authorisation is not evaluated.
//! Never here: what is decided about machines; anything of the controllers.

mod admission;
mod admit;
mod audit;
mod discovery;
mod environment;
mod eviction;
mod kinds;
mod loops;
mod managed;
mod metadata;
mod negotiate;
mod openapi;
mod options;
mod patch;
mod path;
mod plane;
mod policy;
mod protobuf;
mod query;
mod schema;
mod selector;
#[cfg(feature = "server")]
pub mod server;
mod state;
mod status;
mod storage;
mod strategy;
mod table;
mod verbs;

pub use admission::{Caller, ServiceReference, WebhookAnswer, WebhookCall};
pub use audit::Audit;
pub use environment::Environment;
pub use kinds::{Served, served};
pub use openapi::references;
pub use options::Options;
pub use plane::{Body, Local, Plane, User};
