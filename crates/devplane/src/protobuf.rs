//! Bodies in the binary form of Kubernetes, which the typed clients in Go send: an envelope that names the kind, and in
//! it the object in the wire format of protobuf. Read from a table; answers are never written in it.
//!
//! Never here: whether the object is allowed.

mod envelope;
mod message;
mod special;
mod table;
mod wire;

use serde_json::Value;

use crate::kinds::component;
use crate::protobuf::envelope::Envelope;

pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// The options of deletions are the same in every group.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// What a body should hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
}

impl Expected<'static> {
    pub(crate) const DELETE_OPTIONS: Self = Expected { api_version: "v1", kind: "DeleteOptions" };
    pub(crate) const EVICTION: Self = Expected { api_version: "policy/v1", kind: "Eviction" };
    pub(crate) const SCALE: Self = Expected { api_version: "autoscaling/v1", kind: "Scale" };
    pub(crate) const BINDING: Self = Expected { api_version: "v1", kind: "Binding" };
    pub(crate) const TOKEN_REQUEST: Self =
        Expected { api_version: "authentication.k8s.io/v1", kind: "TokenRequest" };
}

/// Whether a kind has a binary form; those of CRDs have none.
pub(crate) fn has_form(expected: Expected<'_>) -> bool {
    message_of(expected.api_version, expected.kind).is_some()
}

/// Reads an object, which need not be of the kind that is expected. The error is the text of a refusal.
pub(crate) fn decode(bytes: &[u8], expected: Expected<'_>) -> Result<Value, String> {
    let Envelope { mut api_version, mut kind, raw } = envelope::open(bytes).map_err(|why| {
        let shown = envelope::shown(bytes);
        format!("the object provided is unrecognized (must be of type {}): {why} ({shown})", expected.kind)
    })?;
    if kind.is_empty() {
        kind = expected.kind.into();
    }
    if api_version.is_empty() {
        api_version = expected.api_version.into();
    }
    let object = match message_of(&api_version, &kind) {
        Some(message) => message::object(message, raw),
        None => Err(format!("no kind \"{kind}\" is registered for version \"{api_version}\"")),
    };
    let mut fields = object.map_err(|why| {
        format!("{kind} in version \"{api_version}\" cannot be handled as a {}: {why}", expected.kind)
    })?;
    fields.insert("kind".into(), kind.into());
    fields.insert("apiVersion".into(), api_version.into());
    Ok(Value::Object(fields))
}

fn message_of(api_version: &str, kind: &str) -> Option<table::Index> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let name =
        if kind == Expected::DELETE_OPTIONS.kind { DELETE_OPTIONS } else { component(group, version, kind)? };
    table::table().find(name)
}

#[cfg(test)]
mod tests;
