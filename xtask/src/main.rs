//! Tasks of the project: what is generated, checked and tried out by hand.
//!
//! Each sub-command is one module with an `Args` and a `run`; here they are only listed. Never here: anything that the
//! product needs.

mod bench;
mod crd;
mod files;
mod generate;
mod matrix;
mod picture;
mod play;
mod rbac;
mod schemas;
mod tidy;
mod wire;
mod workspace;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the project")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write everything that is generated: CRDs, roles and the test matrix.
    Gen(generate::Args),
    /// Check what the compiler cannot: arrows between crates, purity, sizes and the test matrix.
    Tidy(tidy::Args),
    /// Write docs/test-matrix.md from the comments above the tests, and list the cases that have no test.
    Matrix(matrix::Args),
    /// Bring up a cluster with simulated machines to look at with kubectl. Ctrl-C ends it.
    Play(play::Args),
    /// Run the demo and make the README's picture of it, docs/demo.svg.
    Picture(picture::Args),
    /// Write the schemas that the embedded control plane has of the kinds of Kubernetes, from a real API server.
    DevplaneSchemas(schemas::Args),
    /// Write how the kinds that the embedded control plane knows are written in the binary form of Kubernetes.
    DevplaneWire(wire::Args),
    /// Measure writes, CPU and memory of fleets of several sizes on a real control plane.
    Bench(bench::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::Gen(args) => generate::run(&args),
        Task::Tidy(args) => tidy::run(&args),
        Task::Matrix(args) => matrix::run(&args),
        Task::Play(args) => play::run(&args),
        Task::Picture(args) => picture::run(&args),
        Task::DevplaneSchemas(args) => schemas::run(&args),
        Task::DevplaneWire(args) => wire::run(&args),
        Task::Bench(args) => bench::run(&args),
    }
}
