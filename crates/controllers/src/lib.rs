//! The shells around the decisions of `mapi-core`: one file a controller. A shell maps changes to keys, gathers facts
//! from the shared caches, asks `decide`, and hands the plan to [`apply`].
//! Never here: rules, texts and times of a decision (they are in `core`), or anything of one cloud.

pub mod apply;
pub mod capacity;
pub mod context;
pub mod drain;
pub mod health;
pub mod indexes;
pub mod machine;
pub mod machine_set;
pub mod metrics;
pub mod node_link;
pub mod requests;
pub mod rules;
pub mod start;
pub mod stores;

pub use context::Context;
