//! The world that end-to-end tests run in: a control plane with our CRDs and roles, the controllers and the
//! simulated cloud, each a process of its own.
//!
//! A test is a user or another controller. It makes objects, watches until the world is as it should be, and looks at
//! that. A method that fails panics at the line of the test that called it, with the last states of the objects and
//! the ends of the logs. Never here: a sleep, a poll of the API, or anything that a test asserts.

mod chance;
mod draft;
mod embedded;
mod kubectl;
mod plane;
mod program;
mod record;
mod report;
mod scope;
mod talk;
mod watch;
mod workload;
mod world;

pub use mapi_api::{Machine, MachineHealthCheck, MachineSet, Node, Object, SimulatedInstance};

pub use crate::{
    chance::Chance,
    draft::{Draft, HasMachine},
    kubectl::Answer,
    plane::Plane,
    program::{Program, Signal, binary},
    record::{Change, Recording},
    scope::{Kind, Ns, Scope},
    talk::{Heard, Talk},
    workload::{pod_node, pod_phase},
    world::{Options, World, free_port},
};

/// Runs `work` and panics in the name of whoever called the method that this is in.
#[track_caller]
fn or_panic<T>(work: impl Future<Output = anyhow::Result<T>>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        match work.await {
            Ok(value) => value,
            Err(error) => panic!("at {caller}:\n{error:#}"),
        }
    }
}

/// The same for work that is done.
#[track_caller]
fn or_panic_now<T>(result: anyhow::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("{error:#}"))
}
