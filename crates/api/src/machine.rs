//! Machine: one virtual or physical machine that should exist.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::{ObjectMeta, OwnerReference, RawJson, Time, names};

/// One machine. Wire type `machine.openshift.io/v1beta1` Machine.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Machine {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// What the user wants.
    #[serde(default)]
    pub spec: MachineSpec,
    /// What is known of the machine.
    #[serde(default)]
    pub status: MachineStatus,
}

crate::resource!(
    Machine,
    NamespaceResourceScope,
    names::GROUP,
    names::VERSION,
    names::KIND_MACHINE,
    "machines"
);

/// What a user wants of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MachineSpec {
    /// Which API is to own this Machine: MachineAPI, the default, or ClusterAPI. Under ClusterAPI these controllers leave
    /// it alone and its spec mirrors the Cluster API resource.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::spec_authority))]
    pub authoritative_api: Option<String>,
    /// Points in the machine's removal at which somebody else asks to be waited for.
    #[serde(default, skip_serializing_if = "LifecycleHooks::is_empty")]
    pub lifecycle_hooks: LifecycleHooks,
    /// Labels and annotations that the machine's Node shall carry. Where the Node has another value, this one wins; a key
    /// removed here stays on the Node.
    #[serde(default, skip_serializing_if = "TemplateMeta::is_empty")]
    pub metadata: TemplateMeta,
    /// Identity of the instance at the cloud, equal to the spec.providerID of its Node. Written by the machine
    /// controller; set it only to adopt an instance that exists already.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// What the cloud shall make, in the cloud's own terms: size, image, network and so on. Later changes do not reach
    /// an instance that exists.
    #[serde(default, skip_serializing_if = "ProviderSpec::is_empty")]
    pub provider_spec: ProviderSpec,
    /// Taints to add to the machine's Node. A taint that the Node has already, by key and effect, is left as it is, and
    /// none is ever removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-type" = "atomic")))]
    pub taints: Vec<Taint>,
}

/// Points in a machine's removal at which somebody else asks to be waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LifecycleHooks {
    /// While this list has an entry, the machine's Node is not drained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::map_by_name))]
    pub pre_drain: Vec<LifecycleHook>,
    /// While this list has an entry, the instance is not terminated. It is looked at after the drain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::map_by_name))]
    pub pre_terminate: Vec<LifecycleHook>,
}

impl LifecycleHooks {
    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.pre_drain.is_empty() && self.pre_terminate.is_empty()
    }
}

/// Somebody who asks to be waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LifecycleHook {
    /// Name of the hook, unique in its list, in the form of a label key: for example `example.com/move-volumes`.
    #[cfg_attr(feature = "schema", schemars(length(min = 3, max = 256), pattern(HOOK_NAME)))]
    pub name: String,
    /// Who removes the hook: the name of a controller or of a person, for whoever wonders why the machine stays.
    #[cfg_attr(feature = "schema", schemars(length(min = 3, max = 512)))]
    pub owner: String,
}

/// Form of a hook's name: that of a label key.
#[cfg(feature = "schema")]
const HOOK_NAME: &str = concat!(
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?",
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
);

/// Metadata of an object that a template makes, or of a machine's Node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TemplateMeta {
    /// Accepted and ignored: names are not taken from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Accepted and ignored: names are not taken from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// Accepted and ignored: what is made from a template is in the namespace of its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Labels to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations to set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// Accepted and ignored: whatever makes an object from a template is its owner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::owner_references"))]
    pub owner_references: Vec<OwnerReference>,
}

impl TemplateMeta {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A cloud's own description of an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderSpec {
    /// An object with an apiVersion and a kind of one of the clouds; the kind picks the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::free_object"))]
    pub value: Option<RawJson>,
}

impl ProviderSpec {
    /// Whether no value is given. A JSON null counts as none.
    pub fn is_empty(&self) -> bool {
        self.value.as_ref().is_none_or(RawJson::is_null)
    }
}

/// A taint of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Key of the taint.
    pub key: String,
    /// Value of the taint, may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate it: NoSchedule, PreferNoSchedule or NoExecute.
    pub effect: String,
    /// When the taint was added; has a meaning for NoExecute taints only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub time_added: Option<Time>,
}

/// What is known of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::schema::migration_rules))]
#[serde(rename_all = "camelCase")]
pub struct MachineStatus {
    /// Addresses of the instance, as the cloud tells them.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-type" = "atomic")))]
    pub addresses: Vec<Address>,
    /// Which API owns this Machine now: MachineAPI, ClusterAPI, or Migrating in between.
    #[serde(default, rename = "authoritativeAPI", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::status_authority))]
    pub authoritative_api: Option<String>,
    /// Observed aspects of the machine: whether its spec is valid, whether the instance exists, whether it may be drained
    /// and terminated, whether it was drained. The message of one that is not True says what it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::map_by_type))]
    pub conditions: Vec<Condition>,
    /// Why the machine failed for good, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Why the machine failed for good, as one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
    /// What was done last to the machine. Kept for compatibility: these controllers do not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_operation: Option<LastOperation>,
    /// When this status changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub last_updated: Option<Time>,
    /// The Node that the machine became. It stays when the Node goes, so that a health check can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<ObjectReference>,
    /// Where the machine is in its life: Provisioning, Provisioned, Running, Deleting or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// What is known of the instance, in the cloud's own terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::free_object"))]
    pub provider_status: Option<RawJson>,
    /// Which API was the source of the last synchronisation between the two APIs.
    #[serde(default, rename = "synchronizedAPI", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::synchronized_api))]
    pub synchronized_api: Option<String>,
    /// Generation of the owning API's object that was synchronised last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(transform = crate::schema::synchronized_generation))]
    pub synchronized_generation: Option<i64>,
}

/// An address of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Address {
    /// InternalIP, ExternalIP, InternalDNS, ExternalDNS or Hostname.
    #[serde(rename = "type")]
    pub type_: String,
    /// The address.
    pub address: String,
}

impl Address {
    /// An address of a type.
    pub fn new(type_: &str, address: impl Into<String>) -> Self {
        Self { type_: type_.into(), address: address.into() }
    }
}

/// What was done last to a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastOperation {
    /// The operation, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When its state changed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub last_updated: Option<Time>,
    /// How it stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Which kind of operation it is.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
}

/// A reference to an object, by name or identity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-map-type" = "atomic"))
)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// API group and version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// A part of the object, as a path. Not used here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object, empty for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// A version of the object. Not used here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Identity of the object: another object of the same name has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// Phases of a machine's life.
pub mod phase {
    /// No instance yet.
    pub const PROVISIONING: &str = "Provisioning";
    /// The instance exists and has an address or provider id; no Node yet.
    pub const PROVISIONED: &str = "Provisioned";
    /// The instance exists and its Node is known.
    pub const RUNNING: &str = "Running";
    /// The machine is being removed.
    pub const DELETING: &str = "Deleting";
    /// The machine will never work; only deletion leads out.
    pub const FAILED: &str = "Failed";
}

impl Machine {
    /// Phase, empty while the machine was never looked at.
    pub fn phase(&self) -> &str {
        self.status.phase.as_deref().unwrap_or_default()
    }

    /// The provider id, if a non-empty one is recorded.
    pub fn provider_id(&self) -> Option<&str> {
        self.spec.provider_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Whether the instance was once seen to have an address or a provider id.
    pub fn is_provisioned(&self) -> bool {
        self.provider_id().is_some() || !self.status.addresses.is_empty()
    }

    /// Name of the Node that the machine became.
    pub fn node_name(&self) -> Option<&str> {
        self.status.node_ref.as_ref()?.name.as_deref().filter(|n| !n.is_empty())
    }

    /// Addresses of type InternalIP, in order.
    pub fn internal_ips(&self) -> impl Iterator<Item = &str> {
        self.status.addresses.iter().filter(|a| a.type_ == "InternalIP").map(|a| a.address.as_str())
    }

    /// Whether an error is recorded that the machine will not get over.
    pub fn has_error(&self) -> bool {
        self.status.error_reason.is_some() || self.status.error_message.is_some()
    }
}

/// Decodes an explicit null as the default, as Go does.
pub fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
