//! JSON patch (RFC 6902), as lenient as Kubernetes is. Never here: other kinds of patches.
//!
//! The crate does what the standard says. Beyond that Kubernetes counts negative indices from the end, replaces fields
//! that are not there, and takes a field that is not there for null where it is tested or copied. Operations are
//! rewritten to that end before the crate sees them.

use json_patch::PatchOperation;
use serde_json::{Map, Value, json};

use crate::patch::decode::{complaint, json_type};
use crate::status::ApiError;

/// The original takes no more.
const MOST_OPERATIONS: usize = 10_000;

/// Applies a JSON patch (RFC 6902). After an error the object is of no use.
pub(crate) fn json(object: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    let operations = decode(patch)?;
    if operations.len() > MOST_OPERATIONS {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(ApiError::new(413, "RequestEntityTooLarge", message));
    }
    for operation in &operations {
        perform(object, operation).ok_or_else(|| {
            ApiError::new(422, "Invalid", "the server rejected our request due to an error in our request")
        })?;
    }
    Ok(())
}

fn decode(patch: &[u8]) -> Result<Vec<Map<String, Value>>, ApiError> {
    let refused = |why: String| ApiError::bad_request(format!("error decoding patch: {why}"));
    let patch = serde_json::from_slice(patch).map_err(|error| refused(complaint(patch, &error)))?;
    let items = match patch {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        other => {
            let found = json_type(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp");
            return Err(refused(why));
        }
    };
    items.into_iter().map(|item| operation(item).map_err(refused)).collect()
}

fn operation(item: Value) -> Result<Map<String, Value>, String> {
    let fields = match item {
        Value::Null => Map::new(),
        Value::Object(fields) => fields,
        other => {
            let found = json_type(&other);
            return Err(format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp"));
        }
    };
    for name in ["op", "path", "from"] {
        if let Some(value) = fields.get(name).filter(|value| !value.is_string() && !value.is_null()) {
            let found = json_type(value);
            let target = format!("Go struct field jsonPatchOp.{name} of type string");
            return Err(format!("json: cannot unmarshal {found} into {target}"));
        }
    }
    Ok(fields)
}

/// `None`: the operation does not fit the object.
fn perform(object: &mut Value, operation: &Map<String, Value>) -> Option<()> {
    let text = |name: &str| operation.get(name).and_then(Value::as_str);
    let value = operation.get("value").cloned().unwrap_or_default();
    let path = text("path")?;
    match text("op")? {
        "test" => {
            let found = if path.is_empty() { object } else { read(object, path)?.unwrap_or(&Value::Null) };
            (*found == value).then_some(())
        }
        "replace" if path.is_empty() => {
            *object = value;
            Some(())
        }
        "replace" => {
            let path = exact(object, path, Purpose::Read)?;
            // Among fields adding is replacing; among items it is not.
            let parent = object.pointer(path.rsplit_once('/')?.0)?;
            let op = if parent.is_object() { "add" } else { "replace" };
            run(object, json!({ "op": op, "path": path, "value": value }))
        }
        "add" => {
            let path = exact(object, path, Purpose::Insert)?;
            run(object, json!({ "op": "add", "path": path, "value": value }))
        }
        "remove" => {
            let path = exact(object, path, Purpose::Read)?;
            run(object, json!({ "op": "remove", "path": path }))
        }
        "copy" => {
            let value = read(object, text("from")?)?.cloned().unwrap_or_default();
            let path = exact(object, path, Purpose::Insert)?;
            run(object, json!({ "op": "add", "path": path, "value": value }))
        }
        "move" => {
            let from = exact(object, text("from")?, Purpose::Read)?;
            let value = object.pointer(&from)?.clone();
            run(object, json!({ "op": "remove", "path": from }))?;
            let path = exact(object, path, Purpose::Insert)?;
            run(object, json!({ "op": "add", "path": path, "value": value }))
        }
        _ => None,
    }
}

fn run(object: &mut Value, operation: Value) -> Option<()> {
    let operation: PatchOperation = serde_json::from_value(operation).ok()?;
    json_patch::patch_unsafe(object, &[operation]).ok()
}

/// What is at a path. `Some(None)`: the object that would hold the field is there, the field is not.
fn read<'o>(object: &'o Value, path: &str) -> Option<Option<&'o Value>> {
    let path = exact(object, path, Purpose::Read)?;
    match object.pointer(&path) {
        Some(found) => Some(Some(found)),
        None => object.pointer(path.rsplit_once('/')?.0)?.is_object().then_some(None),
    }
}

/// What the last index of a path is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Read,
    Insert,
}

/// A path with indices as the standard writes them. `None`: it leads nowhere, or to the whole.
fn exact(object: &Value, path: &str, purpose: Purpose) -> Option<String> {
    let mut steps = path.strip_prefix('/')?.split('/').peekable();
    let mut exact = String::new();
    let mut parent = Some(object);
    while let Some(step) = steps.next() {
        let inserts = purpose == Purpose::Insert && steps.peek().is_none();
        let step = match parent? {
            Value::Array(items) if !(inserts && step == "-") => {
                index(step, items.len(), inserts)?.to_string()
            }
            Value::Array(_) | Value::Object(_) => step.to_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        parent = parent?.pointer(&format!("/{step}"));
        exact = format!("{exact}/{step}");
    }
    Some(exact)
}

fn index(step: &str, length: usize, inserts: bool) -> Option<usize> {
    let places = i64::try_from(length).ok()? + i64::from(inserts);
    let index: i64 = step.parse().ok()?;
    let index = if index < 0 { index + places } else { index };
    usize::try_from(index).ok().filter(|_| index < places)
}
