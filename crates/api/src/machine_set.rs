//! MachineSet: a number of like Machines.

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::machine::{MachineSpec, TemplateMeta, null_is_default};
use crate::{LabelSelector, ObjectMeta, RawJson, names};

/// A number of like Machines. Wire type `machine.openshift.io/v1beta1` MachineSet.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MachineSet {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What the user wants.
    #[serde(default)]
    pub spec: MachineSetSpec,
    /// What is known of the set.
    #[serde(default)]
    pub status: MachineSetStatus,
}

crate::resource!(
    MachineSet,
    NamespaceResourceScope,
    names::GROUP,
    names::VERSION,
    names::KIND_MACHINE_SET,
    "machinesets"
);

// Integers are 64 bits wide here so that an out-of-range value becomes a condition on its object instead of an
// undecodable object.
/// What a user wants of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineSetSpec {
    /// Which API is to own this set: MachineAPI, the default, or ClusterAPI. Under ClusterAPI these controllers leave it
    /// alone and its spec mirrors the Cluster API resource.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::spec_authority))]
    pub authoritative_api: Option<String>,
    /// Which Machines go first when the set shrinks: Random, the default, Newest or Oldest. Under each of them a Machine
    /// with the annotation `machine.openshift.io/delete-machine` and a failed one go before the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["Random", "Newest", "Oldest"])))]
    pub delete_policy: Option<String>,
    /// Seconds that a machine's Node must have been Ready for the machine to count as available. 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i32>"))]
    pub min_ready_seconds: Option<i64>,
    /// How many Machines there shall be. 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<i32>", extend("default" = 1)))]
    pub replicas: Option<i64>,
    /// Which Machines belong to the set: those of its namespace that carry these labels and have no other owner. The
    /// template's labels must match, and the selector must not be changed once the set has Machines.
    #[serde(default, deserialize_with = "null_is_default")]
    pub selector: LabelSelector,
    /// What new Machines look like. A change does not touch Machines that exist.
    #[serde(default, deserialize_with = "null_is_default")]
    pub template: MachineTemplate,
}

/// What new Machines look like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineTemplate {
    /// Labels and annotations of new Machines.
    #[serde(default, deserialize_with = "null_is_default")]
    pub metadata: TemplateMeta,
    // Kept as text: it is copied whole into each Machine, fields that this version does not know included.
    /// Spec of new Machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<MachineSpec>"))]
    pub spec: Option<RawJson>,
}

impl MachineTemplate {
    /// The typed view of the template's spec.
    pub fn machine_spec(&self) -> Result<MachineSpec, serde_json::Error> {
        self.spec.as_ref().map_or_else(|| Ok(MachineSpec::default()), RawJson::parse)
    }
}

/// What is known of a set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::schema::migration_rules))]
#[serde(rename_all = "camelCase")]
pub struct MachineSetStatus {
    /// Which API owns this set now: MachineAPI, ClusterAPI, or Migrating in between.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::status_authority))]
    pub authoritative_api: Option<String>,
    /// Machines whose Node has been Ready for minReadySeconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Observed aspects of the set. The message of one that is not True says what is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::map_by_type))]
    pub conditions: Vec<Condition>,
    /// Kept for compatibility: these controllers report through conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Kept for compatibility: these controllers report through conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// Machines that carry all labels of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fully_labeled_replicas: Option<i32>,
    /// The selector as text, for the scale subresource and whatever reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 4096)))]
    pub label_selector: Option<String>,
    /// Generation of the spec that this status belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Machines whose Node is Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Machines of the set that are not being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Which API was the source of the last synchronisation between the two APIs.
    #[serde(default, rename = "synchronizedAPI", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::synchronized_api))]
    pub synchronized_api: Option<String>,
    /// Generation of the owning API's object that was synchronised last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::synchronized_generation))]
    pub synchronized_generation: Option<i64>,
}
