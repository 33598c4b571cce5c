//! The suite against the embedded control plane. Never here: a case.

use std::process::ExitCode;

fn main() -> ExitCode {
    conformance::main(conformance::Server::Devplane)
}
