//! What the machine controller tells about one Machine in events.

use mapi_api::event::{Event, EventType, Regarding};
use mapi_api::names::{self, reporter};
use mapi_api::{Machine, Object};
use mapi_cloud::{Activity, Answer, Failure};

use crate::Action;

pub(super) fn normal(machine: &Machine, reason: &'static str, note: impl Into<String>) -> Action {
    emit(machine, EventType::Normal, reason, reason, note.into())
}

pub(super) fn warning(
    machine: &Machine,
    reason: &'static str,
    action: &'static str,
    note: impl Into<String>,
) -> Action {
    emit(machine, EventType::Warning, reason, action, note.into())
}

fn emit(
    machine: &Machine,
    type_: EventType,
    reason: &'static str,
    action: &'static str,
    note: String,
) -> Action {
    let regarding = Regarding {
        api_version: names::API_VERSION,
        kind: names::KIND_MACHINE,
        key: machine.key(),
        uid: machine.uid().into(),
    };
    Action::Emit { reporter: reporter::MACHINE, event: Event { type_, reason, action, note, regarding } }
}

/// What the cloud was made to do, one event a kind of doing.
pub(super) fn of_taken(machine: &Machine, answer: &Answer) -> Vec<Action> {
    let name = machine.name();
    let rows = [
        (Activity::Create, "Create", format!("created the instance of machine `{name}`")),
        (Activity::Update, "Update", format!("updated the instance of machine `{name}`")),
        (Activity::Delete, "Delete", format!("deleted the instance of machine `{name}`")),
    ];
    let taken = rows.into_iter().filter(|(activity, ..)| answer.taken.contains(activity));
    taken.map(|(_, reason, note)| normal(machine, reason, note)).collect()
}

/// What the cloud did not do. Reading has no event: its failure is a condition.
pub(super) fn of_failure(machine: &Machine, failure: &Failure) -> Option<Action> {
    let (reason, action) = match failure.activity {
        Activity::Observe => return None,
        Activity::Create => ("FailedCreate", "Create"),
        Activity::Update => ("FailedUpdate", "Update"),
        Activity::Delete => ("FailedDelete", "Delete"),
    };
    Some(warning(machine, reason, action, failure.error.to_string()))
}
