//! The binary: one command line for the controllers, the simulated cloud and the tools.
//! Never here: decisions, or anything of one cloud (`registry.rs` names the clouds, and nothing else does).

mod args;
mod assembly;
mod controllers;
mod crds;
mod demo;
mod registry;
mod simulated_cloud;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Demo(options) => demo::run(&options),
        Command::Controllers(options) => serve(controllers::run(options)),
        Command::SimulatedCloud(options) => serve(simulated_cloud::run(options)),
        Command::Crds(options) => {
            print!("{}", crds::yaml(options.feature_set));
            ExitCode::SUCCESS
        }
    }
}

/// Runs what runs until a signal, with logs for machines and people.
fn serve(work: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    start_logging();
    match runtime().map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(work)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Two threads: the work is waiting for the API server, and each further thread keeps memory of its own.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// Structured logs on standard error: JSON lines, or plain ones where a person looks on. `RUST_LOG` filters them.
fn start_logging() {
    use std::io::IsTerminal;
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,kube_client=warn,kube_runtime=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.compact().init();
    } else {
        builder.json().flatten_event(true).init();
    }
}
