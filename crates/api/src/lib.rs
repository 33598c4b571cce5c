//! Wire types of the Machine API, and the few Kubernetes kinds seen through its eyes.
//!
//! For: one definition of every field, label, annotation, finalizer, reason and message that is on the wire.
//! Never here: decisions, clients, clocks. Types of built-in kinds are *views*: they hold the fields that we read and
//! are never sent back whole (design decision 3); every write of ours is a patch of named fields.

pub mod condition;
pub mod duration;
pub mod event;
pub mod fault;
pub mod lease;
pub mod machine;
pub mod machine_health_check;
pub mod machine_set;
pub mod meta;
pub mod misfit;
pub mod names;
pub mod node;
pub mod pod;
pub mod quantity;
pub mod raw;
pub mod rbac;
pub mod salvage;
#[cfg(feature = "schema")]
pub mod schema;
pub mod selector;
pub mod simulated_instance;

pub use condition::{Condition, ConditionStatus, Conditions};
pub use machine::Machine;
pub use machine_health_check::MachineHealthCheck;
pub use machine_set::MachineSet;
pub use meta::{Key, Object, ObjectMeta, OwnerReference, Time};
pub use misfit::Misfit;
pub use node::Node;
pub use pod::{Pod, PodDisruptionBudget};
pub use raw::RawJson;
pub use selector::{LabelSelector, Selector};
pub use simulated_instance::SimulatedInstance;

/// Timestamps everywhere: nanosecond precision in memory, whole seconds or microseconds on the wire.
pub use jiff::Timestamp;
