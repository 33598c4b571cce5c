//! Events of a drain: all Normal, action `Drain`, about the Machine.

use mapi_api::event::{Event, EventType, Regarding};
use mapi_api::names::{self, reporter};
use mapi_api::{Machine, Object};

use crate::Action;

pub(super) fn normal(machine: &Machine, reason: &'static str, note: impl Into<String>) -> Action {
    let regarding = Regarding {
        api_version: names::API_VERSION,
        kind: names::KIND_MACHINE,
        key: machine.key(),
        uid: machine.uid().into(),
    };
    Action::Emit {
        reporter: reporter::DRAIN,
        event: Event { type_: EventType::Normal, reason, action: "Drain", note: note.into(), regarding },
    }
}
