//! MachineHealthCheck: which Machines are sick, and how many may be repaired at once.

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::machine::{ObjectReference, null_is_default};
use crate::{LabelSelector, ObjectMeta, names};

/// A health check. Wire type `machine.openshift.io/v1beta1` MachineHealthCheck.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineHealthCheck {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What the user wants.
    #[serde(default)]
    pub spec: MachineHealthCheckSpec,
    /// What is known.
    #[serde(default)]
    pub status: MachineHealthCheckStatus,
}

crate::resource!(
    MachineHealthCheck,
    NamespaceResourceScope,
    names::GROUP,
    names::VERSION,
    names::KIND_MACHINE_HEALTH_CHECK,
    "machinehealthchecks"
);

// Durations and limits stay text or number as they were written: a bad one becomes a condition on its object.
/// What a user wants of a health check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckSpec {
    /// How many of the selected Machines may be unhealthy for repairs to go on, as a number or as a percentage of them,
    /// for example 2 or 40%. With more of them unhealthy nothing is repaired: the trouble is likely elsewhere. 100% by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(
        feature = "schema",
        schemars(
            schema_with = "crate::schema::int_or_string",
            extend("default" = "100%", "pattern" = "^((100|[0-9]{1,2})%|[0-9]+)$")
        )
    )]
    pub max_unhealthy: Option<serde_json::Value>,
    /// How long a Machine may take to become a Node before it counts as unhealthy, for example 10m, the default. 0 turns
    /// this off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(pattern(STARTUP_TIMEOUT), extend("default" = "10m")))]
    pub node_startup_timeout: Option<String>,
    /// Template of the request that is made for an unhealthy Machine, in the Machine's namespace, in place of deleting it.
    /// Somebody else answers the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_template: Option<ObjectReference>,
    /// Which Machines are checked. Empty means every Machine of the namespace.
    #[serde(default, deserialize_with = "null_is_default")]
    pub selector: LabelSelector,
    /// What makes a Machine unhealthy: states of its Node that last. Any one of them suffices.
    #[serde(default, deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub unhealthy_conditions: Vec<UnhealthyCondition>,
}

#[cfg(feature = "schema")]
const STARTUP_TIMEOUT: &str = r"^0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";
#[cfg(feature = "schema")]
const TIMEOUT: &str = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$";

/// A state of a Node that is unhealthy when it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnhealthyCondition {
    /// Type of the Node condition, for example Ready.
    #[serde(default, rename = "type")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub type_: String,
    /// Status of it that is unhealthy, for example Unknown.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub status: String,
    /// How long it may last, for example 300s or 5m.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(pattern(TIMEOUT)))]
    pub timeout: String,
}

/// What is known of a health check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineHealthCheckStatus {
    /// Observed aspects of the health check, foremost whether it may repair.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::map_by_type))]
    pub conditions: Vec<Condition>,
    /// How many of the selected Machines are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub current_healthy: Option<i64>,
    /// How many Machines are selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub expected_machines: Option<i64>,
    /// How many more Machines may become unhealthy before repairs stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub remediations_allowed: Option<i32>,
}
