//! What the far side of the simulated cloud may do at the API server. `cargo xtask gen` makes the roles from this table.
//!
//! Never here: Machines, sets and checks. A cloud does not know them; that the role lacks them proves it.

use mapi_api::names;
use mapi_api::rbac::{Rule, Scope, rule};

/// Rules of the simulated cloud.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    rule(Scope::Watched, names::SIMULATION_GROUP, &["simulatedinstances"], &["get", "list", "watch", "patch", "delete"],
        "Instances are asked for by these objects, and held by a finalizer until they are gone. A fault terminates them."),
    rule(Scope::Watched, names::SIMULATION_GROUP, &["simulatedinstances/status"], &["patch"],
        "What became of an instance."),

    rule(Scope::Cluster, "", &["nodes"], &["get", "list", "watch", "create", "patch", "delete"],
        "The kubelet of an instance registers its Node; the cloud removes it."),
    rule(Scope::Cluster, "", &["nodes/status"], &["patch"],
        "Conditions, capacity and addresses of simulated Nodes."),
    rule(Scope::Cluster, "", &["pods"], &["get", "list", "watch", "delete"],
        "Pods on simulated Nodes end when they are told to."),
    rule(Scope::Cluster, "", &["pods/status"], &["patch"],
        "Pods on simulated Nodes run."),

    rule(Scope::Namespace("kube-node-lease"), "coordination.k8s.io", &["leases"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "Heartbeats of simulated Nodes."),
];
