//! Who a machine is, which is all that a cloud needs to find it, and what is wanted of it.

use std::collections::BTreeMap;

use mapi_api::{Key, Machine, Object, RawJson, Timestamp, names};

/// Who a machine is: enough to find and remove what was made for it, whether or not its spec can still be decoded.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Namespace and name of the Machine.
    pub key: Key,
    /// UID of the Machine; source of every idempotency token.
    pub uid: String,
    /// Cluster id, empty if the label is missing.
    pub cluster: String,
    /// Labels of the Machine.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine.
    pub annotations: BTreeMap<String, String>,
    /// Recorded provider id.
    pub provider_id: Option<String>,
    /// Recorded provider status.
    pub provider_status: Option<RawJson>,
    /// When the Machine was created.
    pub created: Option<Timestamp>,
    /// When the Machine was marked for deletion.
    pub deleted: Option<Timestamp>,
    /// The time of this question.
    pub now: Timestamp,
}

impl Identity {
    /// Who a Machine is.
    pub fn of(machine: &Machine, now: Timestamp) -> Self {
        let meta = &machine.metadata;
        Self {
            key: machine.key(),
            uid: machine.uid().into(),
            cluster: machine.label(names::label::CLUSTER).unwrap_or_default().into(),
            labels: meta.labels.clone().unwrap_or_default(),
            annotations: meta.annotations.clone().unwrap_or_default(),
            provider_id: machine.provider_id().map(Into::into),
            provider_status: machine.status.provider_status.clone(),
            created: meta.creation_timestamp.as_ref().map(|t| t.0),
            deleted: meta.deletion_timestamp.as_ref().map(|t| t.0),
            now,
        }
    }

    /// Whether an instance was once recorded for this machine.
    pub fn is_recorded(&self) -> bool {
        self.provider_id.is_some()
    }
}

/// What the machine controller asks of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Look, and bring a live instance in line with its spec; create nothing.
    Look,
    /// As `Look`, and create the instance if there is none.
    Present,
    /// Remove everything that was made for the machine.
    Absent,
}
