//! What the files of cases hold. Never here: how it is done.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// One file of cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Words for all cases of the file.
    #[serde(default)]
    pub define: Map<String, Value>,
    pub cases: Vec<Case>,
}

/// A claim about a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The claim.
    pub name: String,
    /// Words for this case.
    #[serde(default)]
    pub define: Map<String, Value>,
    /// The case is done once for each row, with the row's words; each counts.
    #[serde(default)]
    pub rows: Vec<Map<String, Value>>,
    /// Whether the case gets a namespace of its own, `${ns}`.
    #[serde(default = "yes")]
    pub namespace: bool,
    /// Whether pods can be made in the namespace at once.
    #[serde(default)]
    pub pods: bool,
    /// Why the embedded control plane may answer otherwise. It then has to.
    pub differs: Option<String>,
    pub steps: Vec<Step>,
}

/// One thing done or awaited. Exactly one of the first eleven fields is there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    pub get: Option<String>,
    pub post: Option<String>,
    pub put: Option<String>,
    pub patch: Option<String>,
    pub delete: Option<String>,
    /// Any other method and path: `HEAD /api`.
    pub request: Option<String>,
    /// Opens a watch, named by `as`.
    pub watch: Option<String>,
    /// The watch from which the next events are to come.
    pub events: Option<String>,
    /// The watch that is to end.
    pub ended: Option<String>,
    /// Arguments of kubectl. With `as` it goes on running.
    pub kubectl: Option<String>,
    /// The running kubectl from which the next lines are to come.
    pub lines: Option<String>,

    /// Name of what goes on.
    #[serde(rename = "as")]
    pub name: Option<String>,
    pub query: Option<Value>,
    pub headers: BTreeMap<String, String>,
    /// The sort of a patch: `json`, `merge`, `strategic`, `apply`.
    #[serde(rename = "type")]
    pub patch_type: Option<String>,
    /// What is sent; a text is sent as it is.
    pub body: Option<Value>,
    /// Whether it is done again until the answer is as expected.
    pub eventually: bool,

    /// Status code, if it is not the usual one.
    pub status: Option<u16>,
    /// Part of the answer.
    pub answer: Option<Value>,
    /// Status code and reason of a refusal: `404 NotFound`.
    pub refused: Option<String>,
    /// Message of the refusal.
    pub message: Option<String>,
    /// Part of the details of the refusal.
    pub details: Option<Value>,
    /// Texts of the warnings.
    pub warnings: Option<Vec<String>>,
    /// Headers of the answer.
    pub answers_with: BTreeMap<String, Value>,
    /// Name for the whole answer, or names for paths in it.
    pub save: Option<Value>,

    /// The events in their order, each a map of its type to part of its object.
    pub are: Vec<Map<String, Value>>,
    /// Whether the order of the events does not matter.
    pub in_any_order: bool,

    pub stdin: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Exit code, if not 0.
    pub exit: i32,
    /// Standard output: a text, or its lines with blanks made one.
    pub prints: Option<Value>,
    /// Standard error, likewise.
    pub complains: Option<Value>,
}

fn yes() -> bool {
    true
}
