//! Which cloud serves a provider spec.

use std::sync::Arc;

use mapi_api::RawJson;
use serde::Deserialize;

use crate::{Cloud, Findings, ProviderKind};

/// The clouds of this process. The kind of a provider spec picks one.
#[derive(Clone, Default)]
pub struct Clouds {
    served: Vec<Arc<dyn Cloud>>,
}

/// Who serves a provider spec.
#[derive(Clone)]
pub enum Service {
    /// This cloud.
    By(Arc<dyn Cloud>),
    /// There is no value, or it has no kind.
    Missing,
    /// Nobody. The kind that was asked for, and those that would be served.
    Unknown {
        /// `kind` and group as they were written.
        kind: String,
        /// Kinds that this process serves.
        served: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
}

impl Clouds {
    /// The clouds that shall serve.
    pub fn new(served: Vec<Arc<dyn Cloud>>) -> Self {
        Self { served }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Cloud>> {
        self.served.iter()
    }

    /// The cloud that serves a provider spec.
    pub fn of(&self, spec: Option<&RawJson>) -> Service {
        let Some(spec) = spec.filter(|s| !s.is_null()) else { return Service::Missing };
        let Ok(TypeMeta { api_version, kind }) = spec.parse() else { return Service::Missing };
        if kind.is_empty() {
            return Service::Missing;
        }
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let serves = |k: &ProviderKind| k.kind == kind && k.group == group;
        match self.served.iter().find(|cloud| cloud.kinds().iter().any(serves)) {
            Some(cloud) => Service::By(Arc::clone(cloud)),
            None => Service::Unknown {
                kind: if group.is_empty() { kind } else { format!("{kind}.{group}") },
                served: self.kinds(),
            },
        }
    }

    /// Complaints of the cloud that serves a spec; none if nobody does.
    pub fn check(&self, spec: Option<&RawJson>) -> Findings {
        match (self.of(spec), spec) {
            (Service::By(cloud), Some(spec)) => cloud.check(spec),
            _ => Findings::default(),
        }
    }

    fn kinds(&self) -> Vec<String> {
        let kinds = self.served.iter().flat_map(|cloud| cloud.kinds());
        kinds.map(|k| format!("{}.{}", k.kind, k.group)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_without_a_kind_is_missing_and_one_of_a_foreign_kind_is_named() {
        for (spec, expected) in [
            ("null", "missing"),
            ("{}", "missing"),
            (r#"{"apiVersion": "a.io/v1"}"#, "missing"),
            (r#"{"apiVersion": "a.io/v1", "kind": ""}"#, "missing"),
            (r#"{"apiVersion": "a.io/v1", "kind": 5}"#, "missing"),
            (r#"{"apiVersion": "a.io/v1", "kind": "Spec"}"#, "Spec.a.io"),
            (r#"{"kind": "Spec"}"#, "Spec"),
        ] {
            let raw: RawJson = serde_json::from_str(spec).expect("JSON");
            let found = match Clouds::default().of(Some(&raw)) {
                Service::By(_) => "served".into(),
                Service::Missing => "missing".to_owned(),
                Service::Unknown { kind, served: _ } => kind,
            };
            assert_eq!(found, expected, "{spec}");
        }
    }
}
