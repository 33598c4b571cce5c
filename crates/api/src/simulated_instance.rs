//! SimulatedInstance: one instance of the simulated cloud. Its spec is the whole request, its status the whole answer.
//!
//! The near side (the cloud `kubemark`) creates and deletes these objects and patches `spec.faults`. The far side, which
//! plays cloud and kubelet, alone writes `status`.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::Span;
use crate::fault::Fault;
use crate::machine::{Address, Taint, null_is_default};
use crate::{ObjectMeta, names};

/// One instance of the simulated cloud. Wire type `simulation.machine.openshift.io/v1alpha1` SimulatedInstance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedInstance {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What was asked of the cloud.
    #[serde(default)]
    pub spec: SimulatedInstanceSpec,
    /// What became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SimulatedInstanceStatus>,
}

crate::resource!(
    SimulatedInstance,
    NamespaceResourceScope,
    names::SIMULATION_GROUP,
    "v1alpha1",
    names::KIND_SIMULATED_INSTANCE,
    "simulatedinstances"
);

/// What was asked of the simulated cloud. Fixed when the instance is created, but for the faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SimulatedInstanceSpec {
    /// The Machine that the instance is for.
    pub machine_ref: MachineRef,
    /// Idempotency token of the request: the UID of the Machine.
    pub token: String,
    /// Size of the instance by name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    /// Region of the instance.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Zone of the instance.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Whether the cloud may take the instance away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interruptible: bool,
    /// Resources of the instance, as quantities: cpu, memory, pods and others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub capacity: BTreeMap<String, String>,
    /// How long the steps of the instance's life take.
    #[serde(default, skip_serializing_if = "Timing::is_default")]
    pub timing: Timing,
    /// How the Node says that it lives.
    #[serde(default, skip_serializing_if = "Heartbeat::is_default")]
    pub heartbeat: Heartbeat,
    /// Faults to inject.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub faults: Vec<Fault>,
    /// Whether pods that are bound to the Node are played too: off or fast.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(!default, schema_with = "pod_modes"))]
    pub pods: PodMode,
    /// The Node that the instance becomes.
    pub node: NodeWish,
    /// Addresses that the instance has once it runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub addresses: Vec<Address>,
}

/// The Machine that an instance is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineRef {
    /// Namespace of the Machine.
    pub namespace: String,
    /// Name of the Machine.
    pub name: String,
    /// UID of the Machine.
    pub uid: String,
}

/// How long the steps of an instance's life take. Variation between instances is already in the values, so that a
/// restarted simulation goes on exactly as it would have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// How long a new instance stays unseen by whoever looks for it.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub create_visible: Span,
    /// From Pending to Starting.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub provision: Span,
    /// From Starting to Running; the addresses appear then.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub boot: Span,
    /// From Running until there is a Node.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub join: Span,
    /// From there until the Node is Ready.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub ready: Span,
    /// From Stopping to Stopped.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub stop: Span,
    /// From the request to terminate until the instance is gone.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub delete: Span,
    /// How long a pod takes to stop; its own grace period if that is shorter.
    #[serde(default, skip_serializing_if = "Span::is_unset")]
    pub pod_stop: Span,
}

impl Timing {
    /// Whether every step takes no time.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a Node says that it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Heartbeat {
    /// How long a renewal of the Node's Lease is good for; 40s by default.
    pub lease_duration: Span,
    /// How often the Lease is renewed; 10s by default.
    pub lease_renew: Span,
    /// How often the Node's status is written although nothing changed; 5m by default.
    pub status: Span,
}

impl Default for Heartbeat {
    /// What a kubelet does.
    fn default() -> Self {
        Self { lease_duration: Span::seconds(40), lease_renew: Span::seconds(10), status: Span::seconds(300) }
    }
}

impl Heartbeat {
    /// Whether it is a kubelet's.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether pods are played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PodMode {
    /// Pods stay as they are; a deleted pod never goes.
    Off,
    /// Pods run as soon as they are bound, and go soon after they are deleted.
    #[default]
    Fast,
}

/// The Node that an instance becomes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeWish {
    /// Name of the Node.
    pub name: String,
    /// Identity of the instance, written to the Node's spec.providerID.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Labels of the Node; the marker of simulated Nodes is always added.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Taints that the Node registers with.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub taints: Vec<Taint>,
    /// What of the capacity pods may use, as quantities.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub allocatable: BTreeMap<String, String>,
    /// Processor architecture, in Go's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Operating system, in Go's words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operating_system: String,
    /// Version of the kubelet; that of the API server if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubelet_version: String,
}

/// Where an instance is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum InstanceState {
    /// It waits for a host.
    #[default]
    Pending,
    /// It boots.
    Starting,
    /// It runs and has addresses.
    Running,
    /// It shuts down.
    Stopping,
    /// It is switched off, and exists all the same.
    Stopped,
    /// It is being removed.
    Terminating,
}

impl InstanceState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Starting, Self::Running, Self::Stopping, Self::Stopped, Self::Terminating];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
            Self::Terminating => "Terminating",
        }
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What became of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SimulatedInstanceStatus {
    /// Where the instance is in its life: Pending, Starting, Running, Stopping, Stopped or Terminating.
    #[cfg_attr(feature = "schema", schemars(schema_with = "states"))]
    pub state: InstanceState,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub state_since: Option<MicroTime>,
    /// When it goes on to the next state by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub next_transition_at: Option<MicroTime>,
    /// When the instance ran for the first time. The Node's life and most faults count from then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub running_since: Option<MicroTime>,
    /// Addresses; none before the instance runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub addresses: Vec<Address>,
    /// What stands in the way. NodeRegistered is False while something else has the name of the Node; while nothing was
    /// ever in the way there is no entry.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::map_by_type))]
    pub conditions: Vec<Condition>,
}

impl SimulatedInstance {
    /// Where the instance is in its life. A request to terminate counts at once.
    pub fn state(&self) -> InstanceState {
        if self.metadata.deletion_timestamp.is_some() {
            return InstanceState::Terminating;
        }
        self.status.as_ref().map_or(InstanceState::Pending, |status| status.state)
    }
}

#[cfg(feature = "schema")]
fn states(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": InstanceState::ALL.map(InstanceState::name)})
}

#[cfg(feature = "schema")]
fn pod_modes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["off", "fast"], "default": "fast"})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_open_is_not_written() {
        let text =
            serde_json::to_string(&Timing { boot: Span::seconds(5), ..Timing::default() }).expect("text");
        assert_eq!(text, r#"{"boot":"5s"}"#);
    }

    #[test]
    fn every_state_is_written_as_it_is_named() {
        for state in InstanceState::ALL {
            assert_eq!(serde_json::to_string(&state).expect("text"), format!("\"{state}\""));
        }
    }

    #[test]
    fn an_empty_object_decodes_to_the_defaults() {
        let instance: SimulatedInstance = serde_json::from_str("{}").expect("an instance");
        assert_eq!(instance.state(), InstanceState::Pending);
        assert_eq!(instance.spec.heartbeat.lease_renew, Span::seconds(10));
    }
}
