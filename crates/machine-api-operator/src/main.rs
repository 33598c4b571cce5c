//! The binary: one command line for the controllers, the simulated cloud and the tools.
//! Never here: decisions, or anything of one cloud (`registry.rs` names the clouds, and nothing else does).

mod args;
mod controllers;
mod crds;
mod registry;
mod simulated_cloud;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::Crds(options) = &args.command {
        print!("{}", crds::yaml(options.feature_set));
        return ExitCode::SUCCESS;
    }
    start_logging();
    let result = run(args.command);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    // Two threads: the work is waiting for the API server, and each further thread keeps memory of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Controllers(options) => controllers::run(options).await,
            Command::SimulatedCloud(options) => simulated_cloud::run(options).await,
            Command::Crds(_) => Ok(()),
        }
    })
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
