//! Lease, for leader election and for the heartbeats of Nodes. The one kind that is written whole.

use serde::{Deserialize, Serialize};

use crate::ObjectMeta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// A lease.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lease {
    /// Object metadata without `managedFields`.
    #[serde(default, deserialize_with = "crate::meta::lite")]
    pub metadata: ObjectMeta,
    /// Who holds it, and since when.
    #[serde(default)]
    pub spec: LeaseSpec,
}

crate::resource!(Lease, NamespaceResourceScope, "coordination.k8s.io", "v1", "Lease", "leases");

/// Who holds a lease, and since when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseSpec {
    /// Identity of the holder; empty when released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder_identity: Option<String>,
    /// Seconds after the last renewal that others must wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// When the holder got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<MicroTime>,
    /// When the holder renewed it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<MicroTime>,
    /// How often it changed hands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<i32>,
}
