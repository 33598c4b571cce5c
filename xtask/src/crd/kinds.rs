//! What a CRD says beside its schema: one entry a kind.
//!
//! Never here: fields of the objects.

use mapi_api::machine::{MachineSpec, MachineStatus};
use mapi_api::machine_health_check::{MachineHealthCheckSpec, MachineHealthCheckStatus};
use mapi_api::machine_set::{MachineSetSpec, MachineSetStatus};
use mapi_api::names;
use mapi_api::simulated_instance::{SimulatedInstanceSpec, SimulatedInstanceStatus};
use serde_json::Value;

use super::schema_of;

/// A kind of the product.
pub struct Kind {
    /// API group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Name of the kind.
    pub kind: &'static str,
    /// Name of the resource.
    pub plural: &'static str,
    /// Names for people in a hurry.
    pub short_names: &'static [&'static str],
    /// What `kubectl explain` says of the kind.
    pub description: &'static str,
    /// What `kubectl get` shows.
    pub columns: &'static [Column],
    /// Whether `kubectl scale` works on it.
    pub scale: bool,
    /// Whether it has fields that only some feature sets have.
    pub is_gated: bool,
    /// Whether an object without spec is refused.
    pub requires_spec: bool,
    /// Annotations of the definition.
    pub annotations: &'static [(&'static str, &'static str)],
    /// The derived schema of its spec.
    pub spec: fn() -> Value,
    /// The derived schema of its status.
    pub status: fn() -> Value,
}

/// A column of `kubectl get`.
pub struct Column {
    /// Heading.
    pub name: &'static str,
    /// Where the value is.
    pub path: &'static str,
    /// Type of the value.
    pub type_: &'static str,
    /// Whether it is shown with `-o wide` only.
    pub wide: bool,
}

const fn column(name: &'static str, type_: &'static str, path: &'static str) -> Column {
    Column { name, path, type_, wide: false }
}

const fn wide(name: &'static str, type_: &'static str, path: &'static str) -> Column {
    Column { name, path, type_, wide: true }
}

const CAPABILITY: (&str, &str) = ("capability.openshift.io/name", "MachineAPI");
const MERGED: (&str, &str) = ("api.openshift.io/merged-by-featuregates", "true");
const NOT_HOSTED: (&str, &str) = ("exclude.release.openshift.io/internal-openshift-hosted", "true");
const SELF_MANAGED: (&str, &str) = ("include.release.openshift.io/self-managed-high-availability", "true");

const fn approved(url: &'static str) -> (&'static str, &'static str) {
    ("api-approved.openshift.io", url)
}

/// Every kind of the product.
pub const KINDS: &[Kind] = &[
    Kind {
        group: names::GROUP,
        version: names::VERSION,
        kind: names::KIND_MACHINE,
        plural: "machines",
        short_names: &[],
        description: "A virtual or physical machine that becomes a Node of the cluster. Creating a Machine makes the \
                      machine exist at the cloud; deleting it drains the Node and removes the machine.",
        columns: &[
            column("Phase", "string", ".status.phase"),
            column("Type", "string", r".metadata.labels['machine\.openshift\.io/instance-type']"),
            column("Region", "string", r".metadata.labels['machine\.openshift\.io/region']"),
            column("Zone", "string", r".metadata.labels['machine\.openshift\.io/zone']"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide("Node", "string", ".status.nodeRef.name"),
            wide("ProviderID", "string", ".spec.providerID"),
            wide("State", "string", r".metadata.annotations['machine\.openshift\.io/instance-state']"),
        ],
        scale: false,
        is_gated: true,
        requires_spec: false,
        annotations: &[
            approved("https://github.com/openshift/api/pull/948"),
            MERGED,
            CAPABILITY,
            NOT_HOSTED,
            SELF_MANAGED,
        ],
        spec: schema_of::<MachineSpec>,
        status: schema_of::<MachineStatus>,
    },
    Kind {
        group: names::GROUP,
        version: names::VERSION,
        kind: names::KIND_MACHINE_SET,
        plural: "machinesets",
        short_names: &[],
        description: "A number of like Machines. The set makes Machines from its template until there are as many as \
                      asked for, and deletes what is too much.",
        columns: &[
            column("Desired", "integer", ".spec.replicas"),
            column("Current", "integer", ".status.replicas"),
            column("Ready", "integer", ".status.readyReplicas"),
            column("Available", "string", ".status.availableReplicas"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        scale: true,
        is_gated: true,
        requires_spec: false,
        annotations: &[
            approved("https://github.com/openshift/api/pull/1032"),
            MERGED,
            CAPABILITY,
            NOT_HOSTED,
            SELF_MANAGED,
        ],
        spec: schema_of::<MachineSetSpec>,
        status: schema_of::<MachineSetStatus>,
    },
    Kind {
        group: names::GROUP,
        version: names::VERSION,
        kind: names::KIND_MACHINE_HEALTH_CHECK,
        plural: "machinehealthchecks",
        short_names: &["mhc", "mhcs"],
        description: "Watches the Nodes of the selected Machines and has unhealthy Machines replaced, as long as not \
                      too many are unhealthy at once.",
        columns: &[
            column("MaxUnhealthy", "string", ".spec.maxUnhealthy"),
            column("ExpectedMachines", "integer", ".status.expectedMachines"),
            column("CurrentHealthy", "integer", ".status.currentHealthy"),
        ],
        scale: false,
        is_gated: false,
        requires_spec: false,
        annotations: &[
            approved("https://github.com/openshift/api/pull/1032"),
            MERGED,
            CAPABILITY,
            NOT_HOSTED,
            SELF_MANAGED,
        ],
        spec: schema_of::<MachineHealthCheckSpec>,
        status: schema_of::<MachineHealthCheckStatus>,
    },
    Kind {
        group: names::SIMULATION_GROUP,
        version: "v1alpha1",
        kind: names::KIND_SIMULATED_INSTANCE,
        plural: "simulatedinstances",
        short_names: &["siminst"],
        description: "An instance of the simulated cloud. The machine controller asks for it through the spec; the \
                      simulated cloud answers in the status, plays the Node, and holds the object until the instance \
                      is gone.",
        columns: &[
            column("State", "string", ".status.state"),
            column("Machine", "string", ".spec.machineRef.name"),
            column("Node", "string", ".spec.node.name"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        scale: false,
        is_gated: false,
        requires_spec: true,
        annotations: &[],
        spec: schema_of::<SimulatedInstanceSpec>,
        status: schema_of::<SimulatedInstanceStatus>,
    },
];
