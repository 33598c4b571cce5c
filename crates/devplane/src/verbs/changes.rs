//! What every change of an object goes through: reading, unknown fields, defaults, the rules of its kind, admission,
//! validation, owners of fields. Never here: which verb it came with.

use serde_json::Value;

use super::Call;
use crate::environment::seconds;
use crate::kinds::{at, event};
use crate::managed::{self, Manager, Reach};
use crate::protobuf::Expected;
use crate::query::Validation;
use crate::status::{ApiError, FieldError, Named};
use crate::{metadata, negotiate, strategy};

/// Reads the object in the body of a request and checks that it is meant for this path.
pub(super) fn read_object(call: &Call<'_>) -> Result<Value, ApiError> {
    let expected = Expected { api_version: &call.api_version, kind: &call.kind.kind };
    let mut value = negotiate::body(call.content_type, call.body, expected)?;
    check_type(call, &mut value)?;
    check_shape(call, &value)?;
    Ok(value)
}

/// Refuses an object of another kind. A kind that is not named is filled in for built-in kinds.
pub(super) fn check_type(call: &Call<'_>, value: &mut Value) -> Result<(), ApiError> {
    let kind = &call.kind;
    if !value.is_object() {
        return Err(ApiError::bad_request("the body of the request is not a JSON object"));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (given, version) = (text(&value["kind"]), text(&value["apiVersion"]));
    let wanted = call.api_version.as_str();
    if kind.is_custom() || !given.is_empty() || !version.is_empty() {
        if given.is_empty() {
            return Err(ApiError::bad_request("Object 'Kind' is missing in the body of the request"));
        }
        if version.is_empty() {
            return Err(ApiError::bad_request("Object 'apiVersion' is missing in the body of the request"));
        }
        if given != kind.kind && kind.is_custom() {
            let detail = format!("must be {}", kind.kind);
            let error = FieldError::invalid("kind", &given.as_str().into(), detail);
            let name = value["metadata"]["name"].as_str().unwrap_or_default();
            let named = Named { kind: &given, group: &kind.group, name };
            return Err(ApiError::invalid(named, &[error]));
        }
        if given != kind.kind {
            let message = format!(
                "{given} in version \"{version}\" cannot be handled as a {}: the kind of the object does not match the path",
                kind.kind
            );
            return Err(ApiError::bad_request(message));
        }
        if version != wanted {
            let message = format!(
                "the API version in the data ({version}) does not match the expected API version ({wanted})"
            );
            return Err(ApiError::bad_request(message));
        }
    }
    value["kind"] = kind.kind.as_str().into();
    value["apiVersion"] = wanted.into();
    Ok(())
}

/// Refuses what the programs of Kubernetes could not even decode; nothing after this expects it.
pub(super) fn check_shape(call: &Call<'_>, value: &Value) -> Result<(), ApiError> {
    call.kind.schema.decode(value).map_err(|why| {
        let prefix = if call.kind.is_custom() { String::new() } else { decoding(call) };
        ApiError::bad_request(format!("{prefix}{why}"))
    })
}

/// Refuses or drops the fields that the schema does not know. Returns warnings about them.
pub(super) fn unknown_fields(
    call: &Call<'_>,
    value: &mut Value,
    prefix: &str,
) -> Result<Vec<String>, ApiError> {
    let unknown = call.kind.schema.prune(value);
    drop_nulls(value);
    let texts = unknown.into_iter().map(|path| format!("unknown field \"{path}\""));
    match call.query.validation {
        Validation::Ignore => Ok(Vec::new()),
        Validation::Warn => Ok(texts.collect()),
        Validation::Strict => {
            let texts: Vec<String> = texts.collect();
            if texts.is_empty() {
                return Ok(texts);
            }
            Err(ApiError::bad_request(format!("{prefix}strict decoding error: {}", texts.join(", "))))
        }
    }
}

/// Takes out the nulls of the metadata: they mean nothing there.
fn drop_nulls(value: &mut Value) {
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
}

/// How a refusal of an undecodable object begins.
pub(super) fn decoding(call: &Call<'_>) -> String {
    let kind = &call.kind;
    format!("{} in version \"{}\" cannot be handled as a {}: ", kind.kind, kind.version, kind.kind)
}

/// Refuses what is wrong with the next state of an object. Returns warnings of what is odd.
pub(super) fn validate(call: &Call<'_>, old: Option<&Value>, new: &Value) -> Result<Vec<String>, ApiError> {
    let kind = &call.kind;
    let mut errors: Vec<FieldError> = match old {
        None => metadata::check(kind, new),
        Some(old) => metadata::check_update(kind, old, new),
    };
    let mut warnings = metadata::warnings(kind, old, new);
    warnings.extend(strategy::warnings(kind, new));
    if kind.is_custom() {
        let found = kind.schema.check_and_warn(new, old);
        errors.extend(found.errors);
        warnings.extend(found.warnings.iter().map(ToString::to_string));
        errors.extend(scale_errors(call, new));
    }
    errors.extend(strategy::check(kind, old, new));
    if errors.is_empty() {
        return Ok(warnings);
    }
    let name = new["metadata"]["name"].as_str().unwrap_or_default();
    // Both kinds of events are that of the core to Kubernetes.
    let group = if call.kind.group == event::GROUP { "" } else { &call.kind.group };
    Err(ApiError::invalid(Named { group, ..call.named_kind(name) }, &errors))
}

/// The numbers of the scale subresource cannot be negative, whatever the schema says.
fn scale_errors(call: &Call<'_>, new: &Value) -> Vec<FieldError> {
    let paths = call.kind.scale.iter().flat_map(|scale| [&scale.spec_replicas, &scale.status_replicas]);
    let negative = paths.filter_map(|path| {
        let number = at(new, path);
        let is_negative = number.as_i64().is_some_and(|number| number < 0);
        is_negative.then(|| {
            FieldError::invalid(path.trim_start_matches('.'), number, "should be a non-negative integer")
        })
    });
    negative.collect()
}

/// Notes who owns what now.
pub(super) fn note_owners(call: &Call<'_>, old: Option<&Value>, new: &mut Value) {
    let time = now(call);
    let manager = manager(call, &time);
    managed::note_update(&call.kind.schema, old, new, &manager);
}

/// The time now, as managed fields carry it.
pub(super) fn now(call: &Call<'_>) -> String {
    seconds(call.plane.lock().environment.now())
}

/// Who writes.
pub(super) fn manager<'a>(call: &'a Call<'_>, time: &'a str) -> Manager<'a> {
    Manager {
        name: call.manager(),
        api_version: call.api_version.as_str(),
        subresource: subresource(call),
        time,
        reach: Reach::of(&call.kind, subresource(call)),
    }
}

fn subresource<'a>(call: &'a Call<'_>) -> &'a str {
    call.target.subresource.as_deref().unwrap_or_default()
}

/// Runs the loops at once after a change of what is served, so that the next request finds it.
pub(super) fn settle(call: &Call<'_>) {
    if call.kind.plural == "customresourcedefinitions" && !call.kind.is_custom() {
        call.plane.work();
    }
}
