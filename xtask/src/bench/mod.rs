//! `cargo xtask bench`: what a fleet costs on a real API server, and how far that is from the best possible.
//!
//! Each number of machines gets a fresh control plane (etcd, API server with audit log, controller manager), on which the
//! release binary runs twice: `controllers --simulated-cloud external` and `simulated-cloud`, each with the generated
//! role of its account. Machines have timing profile `instant` and pods off; one MachineHealthCheck looks at all of them.
//!
//! 1. **Up.** A set of no machines is raised to N. The time runs from just before that write until a watch has shown N
//!    Machines that are Running with a Node each. The simulated cloud sends no heartbeats meanwhile. Five seconds later
//!    memory is read. Once the controllers have written nothing for two seconds, the audit log tells all writes since
//!    their start, refused ones too, and the kernel what CPU their process took since its start.
//! 2. **Rest.** The simulated cloud is replaced by one that sends heartbeats. Once every Node has its Lease, a minute of
//!    the audit log is counted.
//! 3. **Down.** The set goes to 0, heartbeats on. The time runs until a watch has shown the last Machine go. Nothing of
//!    the simulated cloud may be left then.
//! 4. **Bare loop.** On another fresh control plane without our processes, a loop of the product's own client and writer,
//!    32 requests in flight, does every write that the server accepted on the way up, under the same accounts: the same
//!    number of creates of the same objects, of patches of the object and of patches of its status. Bodies are those of
//!    objects that the run left, with a mark that changes each time so that no patch is free for the server. This loop
//!    waits for nobody and decides nothing: the time that the API server takes for these writes is the least possible.
//!
//! Silence is not punished: the controller manager's grace for silent nodes is an hour, so that without heartbeats the
//! Nodes of the first phase stay as they are.
//!
//! Never here: a figure that is not measured in the same run.

mod audit;
mod bare;
mod census;
mod proc;
mod report;
mod run;
mod sample;
mod world;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;

use crate::workspace;

/// Arguments of `bench`.
#[derive(clap::Args)]
pub struct Args {
    /// Numbers of machines, each on a control plane of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 5000], value_parser = clap::value_parser!(u32).range(1..=20_000))]
    machines: Vec<u32>,
    /// Seconds to count writes at rest. `0` leaves that out.
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// How to print the figures.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// How to print the figures.
#[derive(Clone, Copy, ValueEnum)]
enum Output {
    /// Text, 80 columns wide.
    Table,
    /// A JSON array with an object for each number of machines.
    Json,
}

/// Measures and prints.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let binary = binary()?;
    if cfg!(debug_assertions) {
        say("built without optimisation: the bare loop takes longer than it must, `make bench` builds with");
    }
    // As many threads as the product has.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut reports = Vec::new();
    for machines in &args.machines {
        let report = runtime.block_on(run::run(&binary, *machines, Duration::from_secs(args.idle)))?;
        if matches!(args.output, Output::Table) {
            println!("{}", report::table(&report));
        }
        reports.push(report);
    }
    if matches!(args.output, Output::Json) {
        println!("{}", serde_json::to_string_pretty(&reports)?);
    }
    Ok(())
}

/// The release binary: what `make build` left, else what cargo left.
fn binary() -> anyhow::Result<PathBuf> {
    let places = ["bin/machine-api-operator", "target/release/machine-api-operator"];
    match places.iter().map(|place| workspace::root().join(place)).find(|path| path.is_file()) {
        Some(path) => Ok(path),
        None => bail!("no release binary: run `make build` first; looked for {}", places.join(" and ")),
    }
}

/// Progress for whoever waits.
fn say(text: &str) {
    eprintln!("bench: {text}");
}
