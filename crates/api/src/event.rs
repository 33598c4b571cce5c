//! What an event says, before it is written.

use crate::Key;

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventType {
    /// Something happened as it should.
    Normal,
    /// Somebody should look.
    Warning,
}

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Regarding {
    /// API group and version, for example `machine.openshift.io/v1beta1`.
    pub api_version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Namespace and name.
    pub key: Key,
    /// UID.
    pub uid: String,
}

/// An event to be written through `events.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or Warning.
    pub type_: EventType,
    /// Why, as one word in CamelCase.
    pub reason: &'static str,
    /// What was being done, as one word.
    pub action: &'static str,
    /// Details for people. Data is never used as a format.
    pub note: String,
    /// The object it is about.
    pub regarding: Regarding,
}
