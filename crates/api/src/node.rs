//! Node, as far as these controllers read it.

use serde::{Deserialize, Serialize};

use crate::machine::{Address, Taint, null_is_default};
use crate::{ObjectMeta, Time};

/// A view of a Node: no images, no volumes, no `managedFields`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Node {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What was asked of the Node.
    #[serde(default)]
    pub spec: NodeSpec,
    /// What is known of the Node.
    #[serde(default)]
    pub status: NodeStatus,
}

crate::resource!(Node, ClusterResourceScope, "", "v1", "Node", "nodes");

/// The fields of a Node's spec that are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// Identity of the instance at the cloud.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Taints.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub taints: Vec<Taint>,
    /// Whether the Node is cordoned.
    #[serde(default)]
    pub unschedulable: bool,
}

/// The fields of a Node's status that are read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct NodeStatus {
    /// Addresses.
    #[serde(default, deserialize_with = "null_is_default")]
    pub addresses: Vec<Address>,
    /// Conditions.
    #[serde(default, deserialize_with = "null_is_default")]
    pub conditions: Vec<NodeCondition>,
}

/// A condition of a Node. Heartbeat time, reason and message are left out: nothing decides by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCondition {
    /// Type, for example Ready.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Since when.
    #[serde(default)]
    pub last_transition_time: Option<Time>,
}

impl Node {
    /// The condition of a type.
    pub fn condition(&self, type_: &str) -> Option<&NodeCondition> {
        self.status.conditions.iter().find(|c| c.type_ == type_)
    }

    /// Whether condition Ready is True.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|c| c.status == "True")
    }

    /// Whether condition Ready is Unknown: the kubelet is silent. False does not count.
    pub fn is_unreachable(&self) -> bool {
        self.condition("Ready").is_some_and(|c| c.status == "Unknown")
    }

    /// The provider id, if a non-empty one is there.
    pub fn provider_id(&self) -> Option<&str> {
        self.spec.provider_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Addresses of type InternalIP, in order.
    pub fn internal_ips(&self) -> impl Iterator<Item = &str> {
        self.status.addresses.iter().filter(|a| a.type_ == "InternalIP").map(|a| a.address.as_str())
    }
}
