//! What of an object a request may own at all. Never here: who owns it.

use serde_json::Value;

use crate::kinds::Kind;
use crate::managed::fields::{Fields, field_step};

/// What of an object a request may own. The rest it leaves as it is, whatever was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it.
    All,
    /// All but these paths.
    AllBut(&'static [&'static [&'static str]]),
    /// This field of the object.
    Only(&'static str),
}

/// What the server writes into `metadata`, and what says which object it is, is nobody's.
const NOBODYS: &[&str] = &[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

impl Reach {
    /// The reach of requests to a kind, or to a subresource of it.
    pub(crate) fn of(kind: &Kind, subresource: &str) -> Reach {
        match subresource {
            "status" if kind.is_custom() => Reach::Only("status"),
            "status" if kind.kind == "Deployment" => Reach::AllBut(&[&["spec"], &["metadata", "labels"]]),
            "status" if kind.kind == "Pod" => Reach::AllBut(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ]),
            "status" => Reach::AllBut(&[&["spec"]]),
            "" if kind.has_status => Reach::AllBut(&[&["status"]]),
            _ => Reach::All,
        }
    }

    /// Takes out of a set what is out of reach, and what is nobody's.
    pub(super) fn limit(self, fields: &mut Fields) {
        fields.remove("f:apiVersion");
        fields.remove("f:kind");
        if let Some(Value::Object(metadata)) = fields.get_mut("f:metadata") {
            metadata.remove(".");
            metadata.retain(|step, _| !NOBODYS.iter().any(|name| step.strip_prefix("f:") == Some(name)));
            if metadata.is_empty() {
                fields.remove("f:metadata");
            }
        }
        match self {
            Reach::All => {}
            Reach::AllBut(paths) => paths.iter().for_each(|path| remove(fields, path)),
            Reach::Only(name) => fields.retain(|step, _| *step == field_step(name)),
        }
    }
}

/// Takes out a path and everything below.
fn remove(fields: &mut Fields, path: &[&str]) {
    match path {
        [] => {}
        [last] => {
            fields.remove(&field_step(last));
        }
        [first, rest @ ..] => {
            let step = field_step(first);
            if let Some(Value::Object(inner)) = fields.get_mut(&step) {
                remove(inner, rest);
                if inner.is_empty() {
                    fields.remove(&step);
                }
            }
        }
    }
}
