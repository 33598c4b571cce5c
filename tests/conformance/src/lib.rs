//! One suite of requests and expected answers that runs against any Kubernetes API server.
//!
//! The cases are data, in `cases/*.yaml`; `README.md` says how they are written. Never here: what one server does
//! differently, unless a case says so with its reason.

mod case;
mod expect;
mod kubectl;
mod load;
mod python;
mod report;
mod request;
mod run;
mod target;
mod watch;
mod webhook;
mod words;

pub use crate::{run::main, target::Server};
