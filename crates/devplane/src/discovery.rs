//! What is served, for clients that ask: `/api`, `/apis`, aggregated or not, and `/version`. Never here: schemas.

use serde_json::Value;

use crate::kinds::Kinds;

/// The answer to a GET of a discovery path (`/api`, `/api/v1`, `/apis`, `/apis/G`, `/apis/G/V`, `/version`), `None` where
/// there is no such path. `accept` is the header, which may ask for the aggregated form.
/// Returns the content type and the body.
pub(crate) fn answer(kinds: &Kinds, path: &str, accept: &str) -> Option<(String, Value)> {
    let _ = (kinds, path, accept);
    None
}
