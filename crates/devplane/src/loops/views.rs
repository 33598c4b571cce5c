//! What the loops read of an object without reading all of it. Never here: writes.

use std::borrow::Cow;

use serde::Deserialize;

use crate::storage::Object;

/// A condition as every kind has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Condition<'a> {
    #[serde(borrow, rename = "type", default)]
    pub kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub status: Cow<'a, str>,
    #[serde(borrow, default)]
    pub last_heartbeat_time: Option<Cow<'a, str>>,
}

/// A taint of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Taint {
    #[serde(default)]
    pub key: String,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub effect: String,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct NodeView<'a> {
    #[serde(default)]
    pub spec: NodeSpec,
    #[serde(borrow, default)]
    pub status: Status<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct NodeSpec {
    #[serde(default)]
    pub unschedulable: Option<bool>,
    #[serde(default)]
    pub taints: Option<Vec<Taint>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Status<'a> {
    #[serde(borrow, default)]
    pub conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct PodView<'a> {
    #[serde(borrow, default)]
    pub spec: PodSpec<'a>,
    #[serde(borrow, default)]
    pub status: Status<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodSpec<'a> {
    #[serde(borrow, default)]
    pub node_name: Cow<'a, str>,
    #[serde(default)]
    pub tolerations: Option<Vec<Toleration>>,
}

/// What taint a pod stands, and how long.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Toleration {
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub operator: Option<String>,
    #[serde(default)]
    pub value: Option<String>,
    #[serde(default)]
    pub effect: Option<String>,
    #[serde(default)]
    pub toleration_seconds: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct LeaseView<'a> {
    #[serde(borrow, default)]
    pub spec: LeaseSpec<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeaseSpec<'a> {
    #[serde(borrow, default)]
    pub renew_time: Option<Cow<'a, str>>,
}

/// Reads an object. What cannot be read so, which only a kind without a schema lets in, is as if it were empty.
pub(super) fn view<'a, T: Deserialize<'a> + Default>(object: &'a Object) -> T {
    serde_json::from_str(&object.json).unwrap_or_default()
}

impl Status<'_> {
    /// The status of a condition.
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition<'_>> {
        self.conditions.iter().flatten().find(|condition| condition.kind == kind)
    }

    /// Whether a condition is True.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }
}

impl Toleration {
    /// Whether a pod with this stands the taint.
    pub(super) fn tolerates(&self, taint: &Taint) -> bool {
        let is_any = |text: &Option<String>| text.as_deref().is_none_or(str::is_empty);
        let is_same = |text: &Option<String>, wanted: &str| is_any(text) || text.as_deref() == Some(wanted);
        if !is_same(&self.effect, &taint.effect) || !is_same(&self.key, &taint.key) {
            return false;
        }
        match self.operator.as_deref() {
            Some("Exists") => true,
            None | Some("" | "Equal") => {
                self.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default()
            }
            Some(_) => false,
        }
    }
}
