//! Webhooks that change or refuse writes: which of them a write concerns, what they are asked, and what their answers
//! mean. How they are reached is handed in as a [`Caller`], so that a plane has no socket. Never here: requests.
//!
//! Rules are compared with the version of a request alone: `matchPolicy: Equivalent` is treated as `Exact`.

mod check;
mod hooks;
mod review;
mod rules;
mod run;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::plane::User;
use crate::status::Named;
use crate::storage::Object;

pub(crate) use check::{check, check_conditions, check_rule, check_word};
pub(crate) use hooks::{Cache, Conditions, Phase, all_hold, conditions};
pub(crate) use review::request;
pub(crate) use rules::Reach;
pub(crate) use run::{Site, mutate, validate};

/// Reaches webhooks.
pub trait Caller: Send + Sync {
    /// Posts the body, as JSON, and waits for the answer as long as the call says. What is returned as an error is shown to
    /// whoever wrote: `dial tcp 127.0.0.1:1: connect: connection refused`.
    fn call(&self, call: WebhookCall) -> BoxFuture<'_, Result<WebhookAnswer, String>>;
}

/// A call of a webhook.
#[derive(Clone, Debug)]
pub struct WebhookCall {
    /// `https://host/path?timeout=10s`; of a service `https://name.namespace.svc:443/path?timeout=10s`.
    pub url: String,
    /// The service that is meant, if it is one.
    pub service: Option<ServiceReference>,
    /// Certificates in PEM that vouch for the webhook. Empty: those of the system do.
    pub ca: Vec<u8>,
    /// How long to wait for the answer.
    pub timeout: Duration,
    /// An `AdmissionReview`.
    pub body: Bytes,
}

/// A port of a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The port.
    pub port: u16,
}

/// What a webhook answered.
#[derive(Clone, Debug)]
pub struct WebhookAnswer {
    /// HTTP status code.
    pub code: u16,
    /// The body.
    pub body: Bytes,
}

/// What a write is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// Everything about a write but the object.
#[derive(Clone, Debug)]
pub(crate) struct Attributes<'a> {
    pub operation: Operation,
    /// Group, version and kind of the object.
    pub kind: [&'a str; 3],
    /// Group, version and plural of the resource.
    pub resource: [&'a str; 3],
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// Empty for each object of a collection that is deleted.
    pub name: &'a str,
    /// Empty for kinds without namespaces; of a namespace its own name.
    pub namespace: &'a str,
    /// The namespace, where there is one.
    pub home: Option<&'a Object>,
    pub user: &'a User,
    pub is_dry_run: bool,
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub options: Value,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

impl Attributes<'_> {
    /// How the object is named in refusals.
    pub(crate) fn named(&self) -> Named<'_> {
        let name = if self.name.is_empty() { "Unknown" } else { self.name };
        Named { kind: self.resource[2], group: self.resource[0], name }
    }
}
