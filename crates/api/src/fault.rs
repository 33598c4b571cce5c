//! Faults that can be asked of the simulated cloud, in a providerSpec or in an annotation of a live Machine.

use serde::{Deserialize, Serialize};

/// One fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Which fault.
    pub kind: String,
}
