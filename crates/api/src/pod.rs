//! Pod and PodDisruptionBudget, as far as a drain reads them.

use serde::Deserialize;

use crate::machine::null_is_default;
use crate::{LabelSelector, ObjectMeta};

/// A view of a Pod: what a drain needs.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What was asked of the Pod.
    #[serde(default)]
    pub spec: PodSpec,
    /// What is known of the Pod.
    #[serde(default)]
    pub status: PodStatus,
}

crate::resource!(Pod, NamespaceResourceScope, "", "v1", "Pod", "pods");

/// The fields of a Pod's spec that are read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// The Node that the Pod is bound to.
    #[serde(default)]
    pub node_name: String,
    /// Volumes.
    #[serde(default, deserialize_with = "null_is_default")]
    pub volumes: Vec<Volume>,
    /// Names of containers, for a simulated kubelet.
    #[serde(default, deserialize_with = "null_is_default")]
    pub containers: Vec<Container>,
    /// Always, OnFailure or Never.
    #[serde(default)]
    pub restart_policy: String,
}

/// A volume of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Present if the volume is an emptyDir; the content does not matter.
    #[serde(default)]
    pub empty_dir: Option<Present>,
}

/// A container of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Container {
    /// Name.
    pub name: String,
    /// Image.
    #[serde(default)]
    pub image: String,
}

/// The fields of a Pod's status that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct PodStatus {
    /// Pending, Running, Succeeded, Failed or Unknown.
    #[serde(default)]
    pub phase: String,
}

impl Pod {
    /// Whether every container ended for good.
    pub fn is_finished(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }
}

/// A view of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct PodDisruptionBudget {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What was asked.
    #[serde(default)]
    pub spec: BudgetSpec,
    /// What is known.
    #[serde(default)]
    pub status: BudgetStatus,
}

crate::resource!(
    PodDisruptionBudget,
    NamespaceResourceScope,
    "policy",
    "v1",
    "PodDisruptionBudget",
    "poddisruptionbudgets"
);

/// The fields of a budget's spec that are read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct BudgetSpec {
    /// Which Pods it protects.
    #[serde(default, deserialize_with = "null_is_default")]
    pub selector: LabelSelector,
}

/// The fields of a budget's status that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetStatus {
    /// How many Pods may be evicted now.
    #[serde(default)]
    pub disruptions_allowed: i64,
}

/// A JSON object whose content does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Present {}
