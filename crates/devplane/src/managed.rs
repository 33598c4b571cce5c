//! Who owns which field: `metadata.managedFields`, and server-side apply. Never here: requests.

use serde_json::Value;

use crate::schema::Schema;
use crate::status::ApiError;

/// Who writes, and how.
#[derive(Clone, Debug)]
pub(crate) struct Manager<'a> {
    /// `fieldManager`, or what Kubernetes makes of the user agent.
    pub name: &'a str,
    /// `metadata.managedFields[].apiVersion`.
    pub api_version: &'a str,
    /// `status` or `scale`; empty for the main resource.
    pub subresource: &'a str,
    /// As in `metadata.managedFields[].time`.
    pub time: &'a str,
}

/// Notes an update: fields that differ between `old` and `new` are the manager's now, and nobody else's.
/// `old` is `None` for a new object. Writes `metadata.managedFields` of `new`.
pub(crate) fn note_update(schema: &Schema, old: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    let _ = (schema, old, new, manager);
}

/// Server-side apply: the object that comes of applying `applied` to `live` (`None`: a new one), managed fields included.
///
/// Fields of others that would change are a conflict (409, `details.causes` of reason `FieldManagerConflict`) unless
/// `force`. Fields that the manager applied before and does not name any more go, unless others own them too.
pub(crate) fn apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApiError> {
    let _ = (schema, live, manager, force);
    Ok(applied.clone())
}

/// Managed fields for comparing: times alone do not count.
pub(crate) fn without_times(managed: Option<&Value>) -> Vec<Value> {
    let entries = managed.and_then(Value::as_array).into_iter().flatten().cloned();
    let strip = |mut entry: Value| {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    entries.map(strip).collect()
}

/// Puts the entries of managed fields into the order in which Kubernetes shows them.
pub(crate) fn sort(object: &mut Value) {
    let _ = object;
}
