//! SimulatedInstance: one instance of the simulated cloud. Its spec is the whole request, its status the whole answer.



use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::fault::Fault;
use crate::machine::null_is_default;
use crate::{ObjectMeta, names};

/// One instance of the simulated cloud. Wire type `simulation.machine.openshift.io/v1alpha1` SimulatedInstance.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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

/// What was asked of the simulated cloud.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedInstanceSpec {
    /// Faults to inject.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub faults: Vec<Fault>,
}

/// What became of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedInstanceStatus {
    /// Observed aspects.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub conditions: Vec<Condition>,
}
