//! All decisions, pure: functions of values, with no client, clock, randomness, environment or log in reach.
//!
//! Every controller is `observe → decide → act`; this crate is `decide`. A decision takes [facts](machine::Facts) and
//! gives a [`Plan`]: actions as data, when to look again, and the gates that explain why nothing more is done.

pub mod capacity;
pub mod drain;
pub mod health;
pub mod machine;
pub mod machine_set;
pub mod migration;
pub mod node_link;
pub mod patch;
pub mod plan;
mod spread;

pub use plan::{Action, Gate, Kind, Measure, Plan, Requeue, Sub, Target};
