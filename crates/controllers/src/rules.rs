//! What the controllers may do at the API server. `cargo xtask gen` makes the roles from this table.
//!
//! Never here: a verb that no code of ours uses. A row goes when its last use goes.

use mapi_api::names;
use mapi_api::rbac::{NAMESPACE, Rule, Scope, rule};

/// Rules of the controllers' process.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    rule(Scope::Watched, names::GROUP, &["machines"], &["get", "list", "watch", "create", "patch", "delete"],
        "Sets make and remove Machines; finalizers, labels and the provider id are patched."),
    rule(Scope::Watched, names::GROUP, &["machines/status"], &["patch"],
        "Phase, conditions, addresses and the node reference."),
    rule(Scope::Watched, names::GROUP, &["machinesets"], &["get", "list", "watch", "patch"],
        "Annotations tell the size of machines for scaling from zero."),
    rule(Scope::Watched, names::GROUP, &["machinesets/status"], &["patch"],
        "Counts and conditions."),
    rule(Scope::Watched, names::GROUP, &["machinesets/finalizers"], &["update"],
        "Machines are owned by their set and block its foreground deletion."),
    rule(Scope::Watched, names::GROUP, &["machinehealthchecks"], &["get", "list", "watch"],
        "What health is."),
    rule(Scope::Watched, names::GROUP, &["machinehealthchecks/status"], &["patch"],
        "Counts and conditions."),
    rule(Scope::Watched, names::SIMULATION_GROUP, &["simulatedinstances"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "The near side of the simulated cloud asks for instances by these objects."),

    rule(Scope::Cluster, "", &["nodes"], &["get", "list", "watch", "patch", "delete"],
        "Nodes are linked, labelled, tainted, cordoned, and deleted with their machine."),
    rule(Scope::Cluster, "", &["pods"], &["get", "list", "watch"],
        "A drain watches the pods of its Node until they are gone."),
    rule(Scope::Cluster, "", &["pods/eviction"], &["create"],
        "A drain evicts, so that disruption budgets are heard."),
    rule(Scope::Cluster, "policy", &["poddisruptionbudgets"], &["get", "list", "watch"],
        "A blocked drain goes on when a budget changes."),
    rule(Scope::Cluster, "apps", &["daemonsets"], &["get"],
        "A drain leaves the pods of DaemonSets that exist."),
    rule(Scope::Cluster, "events.k8s.io", &["events"], &["create", "patch"],
        "Events on our objects; a series is patched."),
    rule(Scope::Cluster, "authentication.k8s.io", &["tokenreviews"], &["create"],
        "Who asks for the metrics."),
    rule(Scope::Cluster, "authorization.k8s.io", &["subjectaccessreviews"], &["create"],
        "Whether they may."),

    rule(Scope::Namespace(NAMESPACE), "coordination.k8s.io", &["leases"], &["get", "create", "update"],
        "Leader election."),
];

/// Rules for the remediation requests that this project knows. Whoever brings another kind adds a ClusterRole with the
/// same label.
#[rustfmt::skip]
pub const REMEDIATION: &[Rule] = &[
    rule(Scope::Watched, METAL3, &["metal3remediationtemplates"], &["get", "list", "watch"],
        "Templates of requests."),
    rule(Scope::Watched, METAL3, &["metal3remediations"], &["get", "list", "watch", "create", "delete"],
        "A request is made for a sick machine and deleted when it is well again."),
];

const METAL3: &str = "infrastructure.cluster.x-k8s.io";
