//! Faults that can be asked of the simulated cloud, in a providerSpec or in an annotation of a live Machine.
//!
//! Never here: what a fault does. Faults of calls are the near side's (the cloud `kubemark`), all others the far
//! side's.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::duration::Span;

/// One fault to inject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What goes wrong: CreateError, CreateErrorButCreated, CreateDuplicateVisible, StuckProvisioning, NeverJoin,
    /// NodeNotReady, NodeUnknown, NodeFlap, NodeDeleted, InstanceTerminated, InstanceStopped, DeleteStuck, ApiThrottle,
    /// ApiOutage, Quota or ZoneOutage.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kinds"))]
    pub kind: FaultKind,
    /// How long everything goes well first, for example 40s. Counted from the creation of the Machine for faults of calls
    /// (CreateError, ApiThrottle, ApiOutage, Quota, ZoneOutage on create), from the creation of the instance for
    /// StuckProvisioning, from the request to terminate for DeleteStuck, from when the Node is due to be Ready for faults of
    /// the Node, and from when the instance runs for all others. A fault that was added to a live instance counts from
    /// `since`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
    /// How long the fault lasts once it began. Without it, for as long as the fault is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// How many calls fail, for CreateError. Without it, every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub count: Option<u32>,
    /// Details that depend on the kind.
    #[serde(default, skip_serializing_if = "FaultArgs::is_empty")]
    pub args: FaultArgs,
    /// When the fault was added to a live instance. Written by the machine controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::time"))]
    pub since: Option<MicroTime>,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FaultKind {
    /// The call to create fails; nothing was made.
    CreateError,
    /// The call to create fails although the instance was made.
    CreateErrorButCreated,
    /// A new instance stays unseen for `duration`.
    CreateDuplicateVisible,
    /// The instance stays Pending or Starting.
    StuckProvisioning,
    /// The instance never becomes a Node.
    NeverJoin,
    /// The Node says that it is not Ready.
    NodeNotReady,
    /// The Node falls silent.
    NodeUnknown,
    /// The Node is Ready and not Ready in turn.
    NodeFlap,
    /// The Node object is deleted while the instance runs.
    NodeDeleted,
    /// Somebody else terminates the instance.
    InstanceTerminated,
    /// Somebody else stops the instance.
    InstanceStopped,
    /// The instance does not go when it is terminated.
    DeleteStuck,
    /// Calls are refused above a rate.
    ApiThrottle,
    /// No call is answered.
    ApiOutage,
    /// Creates are refused while the namespace has as many instances or CPUs as are allowed.
    Quota,
    /// Creates fail and Nodes fall silent in a zone.
    ZoneOutage,
}

impl FaultKind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::CreateError,
        Self::CreateErrorButCreated,
        Self::CreateDuplicateVisible,
        Self::StuckProvisioning,
        Self::NeverJoin,
        Self::NodeNotReady,
        Self::NodeUnknown,
        Self::NodeFlap,
        Self::NodeDeleted,
        Self::InstanceTerminated,
        Self::InstanceStopped,
        Self::DeleteStuck,
        Self::ApiThrottle,
        Self::ApiOutage,
        Self::Quota,
        Self::ZoneOutage,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateError => "CreateError",
            Self::CreateErrorButCreated => "CreateErrorButCreated",
            Self::CreateDuplicateVisible => "CreateDuplicateVisible",
            Self::StuckProvisioning => "StuckProvisioning",
            Self::NeverJoin => "NeverJoin",
            Self::NodeNotReady => "NodeNotReady",
            Self::NodeUnknown => "NodeUnknown",
            Self::NodeFlap => "NodeFlap",
            Self::NodeDeleted => "NodeDeleted",
            Self::InstanceTerminated => "InstanceTerminated",
            Self::InstanceStopped => "InstanceStopped",
            Self::DeleteStuck => "DeleteStuck",
            Self::ApiThrottle => "ApiThrottle",
            Self::ApiOutage => "ApiOutage",
            Self::Quota => "Quota",
            Self::ZoneOutage => "ZoneOutage",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names none of a known set of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown word")]
pub struct UnknownWord;

impl FromStr for FaultKind {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(UnknownWord)
    }
}

/// Which error a failing create gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorClass {
    /// The cloud will never accept the spec: the Machine fails for good.
    InvalidConfiguration,
    /// A quota is used up.
    Quota,
    /// Too many calls; the answer says when to come back.
    Throttle,
    /// The cloud broke.
    Internal,
    /// No answer in time, so that nobody knows whether it took effect.
    Timeout,
    /// The credentials were refused.
    Unauthorized,
}

impl ErrorClass {
    /// All classes.
    pub const ALL: [Self; 6] = [
        Self::InvalidConfiguration,
        Self::Quota,
        Self::Throttle,
        Self::Internal,
        Self::Timeout,
        Self::Unauthorized,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidConfiguration => "InvalidConfiguration",
            Self::Quota => "Quota",
            Self::Throttle => "Throttle",
            Self::Internal => "Internal",
            Self::Timeout => "Timeout",
            Self::Unauthorized => "Unauthorized",
        }
    }
}

impl FromStr for ErrorClass {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        Self::ALL.into_iter().find(|class| class.name() == text).ok_or(UnknownWord)
    }
}

/// In which state an instance is stuck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum StuckState {
    /// Before it gets a host.
    #[default]
    Pending,
    /// While it boots.
    Starting,
}

/// Details of a fault; each belongs to the kinds that its description names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FaultArgs {
    /// CreateError: which error; Internal by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "classes"))]
    pub class: Option<ErrorClass>,
    /// StuckProvisioning: in which state; Pending by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "stuck_states"))]
    pub state: Option<StuckState>,
    /// NodeNotReady: reason of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// NodeNotReady: message of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// NodeFlap: how long the Node is Ready each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Span>,
    /// NodeFlap: how long the Node is not Ready each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<Span>,
    /// NodeDeleted: whether the Node comes back; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub re_register: Option<bool>,
    /// ApiThrottle: calls a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub rps: Option<u32>,
    /// ApiThrottle: calls at once after a pause; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub burst: Option<u32>,
    /// ApiThrottle, CreateError of class Throttle: the least time that a refused caller is told to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Span>,
    /// Quota: virtual CPUs in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub cpu: Option<u32>,
    /// Quota: instances in the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub instances: Option<u32>,
    /// Quota: instances in the namespace and zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::count"))]
    pub per_zone: Option<u32>,
    /// ZoneOutage: which zone; that of the machine by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

impl FaultArgs {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Fault {
    /// A fault without details.
    pub fn new(kind: FaultKind) -> Self {
        Self { kind, after: None, duration: None, count: None, args: FaultArgs::default(), since: None }
    }

    /// When the fault begins, for one that counts from `start` unless it was added to a live instance.
    pub fn begins(&self, start: Timestamp) -> Timestamp {
        self.after.unwrap_or_default().after(self.since.as_ref().map_or(start, |since| since.0))
    }

    /// When the fault ends; `None` if it does not.
    pub fn ends(&self, start: Timestamp) -> Option<Timestamp> {
        self.duration.map(|duration| duration.after(self.begins(start)))
    }

    /// Whether the fault is on.
    pub fn is_on(&self, start: Timestamp, now: Timestamp) -> bool {
        self.begins(start) <= now && self.ends(start).is_none_or(|end| now < end)
    }

    /// Whether two faults are the same wish, whenever they were added.
    pub fn same_wish(&self, other: &Self) -> bool {
        Self { since: None, ..self.clone() } == Self { since: None, ..other.clone() }
    }

    /// Whether the fault is for an instance in this zone.
    pub fn is_for_zone(&self, zone: &str) -> bool {
        self.args.zone.as_deref().is_none_or(|wanted| wanted == zone)
    }
}

#[cfg(feature = "schema")]
fn kinds(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": FaultKind::ALL.map(FaultKind::name)})
}

#[cfg(feature = "schema")]
fn classes(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ErrorClass::ALL.map(ErrorClass::name)})
}

#[cfg(feature = "schema")]
fn stuck_states(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "string", "enum": ["Pending", "Starting"]})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn every_kind_is_written_as_it_is_named() {
        for kind in FaultKind::ALL {
            assert_eq!(serde_json::to_string(&kind).expect("text"), format!("\"{kind}\""));
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }

    #[test]
    fn a_fault_is_on_between_its_beginning_and_its_end() {
        let text = r#"{"kind":"NodeUnknown","after":"10s","duration":"5s"}"#;
        let fault: Fault = serde_json::from_str(text).expect("a fault");
        for (second, on) in [(109, false), (110, true), (114, true), (115, false)] {
            assert_eq!(fault.is_on(at(100), at(second)), on, "{second}");
        }
        assert_eq!(serde_json::to_string(&fault).expect("text"), text);
    }

    #[test]
    fn a_fault_added_to_a_live_instance_counts_from_then() {
        let fault = Fault { since: Some(MicroTime(at(500))), ..Fault::new(FaultKind::NodeUnknown) };
        assert!(!fault.is_on(at(0), at(499)) && fault.is_on(at(0), at(500)));
    }
}
