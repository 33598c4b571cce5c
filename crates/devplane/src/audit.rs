//! What is noted of writes, for those who ask for it. Never here: where the notes go.

use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::environment::micros;
use crate::path::Target;
use crate::plane::User;

/// Takes notes of requests that write: each an event of `audit.k8s.io` at level `Metadata`, as far as it is known here.
pub type Audit = dyn Fn(&Value) + Send + Sync;

/// A request that writes, as it came in.
pub(crate) struct Noted {
    method: Method,
    target: Target,
    agent: String,
    received: Timestamp,
}

impl Noted {
    /// What is to be noted of a request; `None` for one that only reads, and for what is no resource.
    pub(crate) fn of(method: &Method, path: &str, agent: &str, received: Timestamp) -> Option<Noted> {
        if matches!(*method, Method::GET | Method::HEAD) {
            return None;
        }
        let target = Target::parse(path)?;
        Some(Noted { method: method.clone(), target, agent: agent.into(), received })
    }

    /// The event, now that there is an answer.
    pub(crate) fn event(&self, user: &User, code: u16, answered: Timestamp) -> Value {
        let Noted { method, target, agent, received } = self;
        let verb = match (method, &target.name) {
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, None) => "deletecollection",
            _ => "delete",
        };
        let mut object = json!({ "resource": target.plural, "apiVersion": target.version });
        let parts = [
            ("apiGroup", Some(&target.group).filter(|group| !group.is_empty())),
            ("namespace", target.namespace.as_ref()),
            ("name", target.name.as_ref()),
            ("subresource", target.subresource.as_ref()),
        ];
        for (field, value) in parts {
            if let Some(value) = value {
                object[field] = value.as_str().into();
            }
        }
        json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "stage": "ResponseComplete",
            "verb": verb,
            "user": { "username": user.name, "groups": user.groups },
            "userAgent": agent,
            "objectRef": object,
            "responseStatus": { "code": code },
            "requestReceivedTimestamp": micros(*received),
            "stageTimestamp": micros(answered),
        })
    }
}
