//! What a cloud said about one machine.

use std::time::Duration;

use mapi_api::RawJson;
use mapi_api::machine::Address;

use crate::CloudError;

/// What a cloud said about one machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Sighting {
    /// It did not answer.
    Unknown,
    /// No live instance. A terminated instance is none.
    Absent,
    /// A live instance.
    Present(Box<Instance>),
}

/// A live instance, in the words of the Machine API.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Instance {
    /// Identity, equal to the Node's `spec.providerID`.
    pub provider_id: Option<String>,
    /// Addresses, in the order in which they shall be shown.
    pub addresses: Vec<Address>,
    /// State in the cloud's own word; becomes an annotation.
    pub state: String,
    /// Region, empty if there is none.
    pub region: String,
    /// Zone, empty if there is none.
    pub zone: String,
    /// Size, empty if there is none.
    pub instance_type: String,
    /// Whether the cloud may take it away.
    pub is_interruptible: bool,
    /// Why it will never work, if the cloud says so. Fails the Machine for good.
    pub fatal: Option<String>,
    /// When to look again although nothing announced a change. `None`: when something changes.
    pub look_again: Option<Duration>,
}

/// What a cloud was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Reading.
    Observe,
    /// Making the instance.
    Create,
    /// Bringing a live instance in line.
    Update,
    /// Removing.
    Delete,
}

/// What stopped a question.
#[derive(Debug)]
pub struct Failure {
    /// What was being done.
    pub activity: Activity,
    /// What went wrong.
    pub error: CloudError,
}

/// A named reason not to proceed yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// One word in CamelCase.
    pub reason: &'static str,
    /// For people; no ids, counts or times that change each round.
    pub message: String,
    /// When to ask again at the latest.
    pub again: Duration,
}

/// The answer to one question: the sighting after the last step that was taken.
#[derive(Debug)]
pub struct Answer {
    /// What was seen last.
    pub sighting: Sighting,
    /// What the steps that went through were doing, in order.
    pub taken: Vec<Activity>,
    /// What stopped the question before it was done.
    pub failure: Option<Failure>,
    /// What is being waited for.
    pub gate: Option<Gate>,
    /// The new `status.providerStatus`. `None` leaves the old one.
    pub provider_status: Option<RawJson>,
}

impl Answer {
    /// Whether an instance was created in the course of this question.
    pub fn has_created(&self) -> bool {
        self.taken.contains(&Activity::Create)
    }
}
