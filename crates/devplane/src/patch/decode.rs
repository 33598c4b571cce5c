//! From the body of a patch to JSON, with the words of Kubernetes where it is none. Never here: what a patch does.

use serde_json::{Error, Map, Value};

use crate::patch::type_name;
use crate::status::ApiError;

/// The body of a merge patch.
pub(crate) fn decode_merge(body: &[u8]) -> Result<Value, ApiError> {
    let refused = |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
    let patch: Value = serde_json::from_slice(body).map_err(|error| refused(complaint(body, &error)))?;
    match patch {
        Value::Null => Err(ApiError::bad_request("Invalid JSON Patch")),
        Value::Object(_) => Ok(patch),
        other => Err(refused(not_an_object(&other))),
    }
}

/// The body of a strategic merge patch. `null` is a patch that changes nothing.
pub(crate) fn decode_strategic(body: &[u8]) -> Result<Value, ApiError> {
    let patch: Value =
        serde_json::from_slice(body).map_err(|error| ApiError::bad_request(complaint(body, &error)))?;
    match patch {
        Value::Null => Ok(Value::Object(Map::new())),
        Value::Object(_) => Ok(patch),
        other => Err(ApiError::bad_request(not_an_object(&other))),
    }
}

/// What Kubernetes says of a value that had to be an object.
pub(super) fn not_an_object(value: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", json_type(value))
}

/// The JSON type of a value, as the decoder of Kubernetes names it.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Number(_) => "number",
        Value::Null | Value::Bool(_) | Value::String(_) => type_name(value),
    }
}

/// What the decoder of Kubernetes says of a text that is no JSON.
pub(super) fn complaint(body: &[u8], error: &Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let line = body.split(|byte| *byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let found = line.get(error.column().saturating_sub(1)).copied().unwrap_or(b' ');
    let shown = match char::from(found) {
        '\'' => r"\'".to_owned(),
        other => other.escape_default().to_string().replace("\\\"", "\""),
    };
    let text = error.to_string();
    let place = [
        ("trailing characters", "after top-level value"),
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("key must be a string", "looking for beginning of object key string"),
    ];
    let place = place.iter().find(|(ours, _)| text.starts_with(ours));
    format!(
        "invalid character '{shown}' {}",
        place.map_or("looking for beginning of value", |(_, theirs)| theirs)
    )
}
