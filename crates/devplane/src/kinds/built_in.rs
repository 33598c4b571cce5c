//! The kinds of Kubernetes that are served. Never here: kinds of CRDs.

use std::sync::Arc;

use super::Kind;

/// All of them, with their schemas.
pub(super) fn kinds() -> Vec<Arc<Kind>> {
    Vec::new()
}
