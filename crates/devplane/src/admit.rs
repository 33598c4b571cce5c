//! Admission of a change by webhooks. Never here: which webhooks there are, and how they are called.

use serde_json::Value;

use crate::status::ApiError;
use crate::verbs::Call;

/// What is to be admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// Lets webhooks change an object. Returns it with their warnings.
pub(crate) async fn mutate(
    call: &Call<'_>,
    operation: Operation,
    old: Option<&Value>,
    new: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let _ = (call, operation, old);
    Ok((new, Vec::new()))
}

/// Lets webhooks refuse a change. Returns their warnings.
pub(crate) async fn validate(
    call: &Call<'_>,
    operation: Operation,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Vec<String>, ApiError> {
    let _ = (call, operation, old, new);
    Ok(Vec::new())
}
