//! The suite against kube-apiserver with kube-controller-manager. Never here: a case.

use std::process::ExitCode;

fn main() -> ExitCode {
    conformance::main(conformance::Server::Real)
}
