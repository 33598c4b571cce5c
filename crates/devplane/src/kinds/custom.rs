//! Kinds that a CRD brings. Never here: the life of the CRD itself.

mod checks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use super::{CUSTOM_VERBS, Column, Kind, Origin, Scale};
use crate::schema::{Schema, formats};
use crate::status::FieldError;

/// The kinds of the served versions of a CRD, or what is wrong with it. A version without columns of its own has none
/// here; Kubernetes shows the age then, as it does for other kinds.
pub(crate) fn kinds_of_crd(crd: &Value) -> Result<Vec<Arc<Kind>>, Vec<FieldError>> {
    let definition = Definition::of(crd);
    let schemas = definition.check()?;
    let served = definition.versions.iter().zip(&schemas).filter(|(version, _)| version["served"] == true);
    Ok(served.filter_map(|(version, schema)| Some(definition.kind(version, schema.as_ref()?))).collect())
}

/// What whoever makes a CRD is warned of.
pub(crate) fn warnings_of_crd(crd: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for version in Definition::of(crd).versions {
        formats::unknown(&version["schema"]["openAPIV3Schema"], &mut unknown);
    }
    unknown.sort_unstable();
    unknown.dedup();
    unknown.iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

/// A CRD at a glance.
struct Definition<'a> {
    crd: &'a Value,
    group: &'a str,
    plural: &'a str,
    kind: &'a str,
    versions: &'a [Value],
}

impl<'a> Definition<'a> {
    fn of(crd: &'a Value) -> Self {
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        let (spec, names) = (&crd["spec"], &crd["spec"]["names"]);
        Definition {
            crd,
            group: text(&spec["group"]),
            plural: text(&names["plural"]),
            kind: text(&names["kind"]),
            versions: spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default(),
        }
    }

    fn deprecation(&self, version: &Value) -> Option<String> {
        let name = version["name"].as_str().unwrap_or_default();
        let usual = || format!("{}/{name} {} is deprecated", self.group, self.kind);
        let given = version["deprecationWarning"].as_str().map(str::to_owned);
        (version["deprecated"] == true).then(|| given.unwrap_or_else(usual))
    }

    fn kind(&self, version: &Value, schema: &Arc<Schema>) -> Arc<Kind> {
        let names = &self.crd["spec"]["names"];
        let name = |key: &str| names[key].as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        let list = |key: &str| -> Vec<String> {
            let items = names[key].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (group, plural) = (self.group, self.plural);
        Arc::new(Kind {
            group: group.to_owned(),
            version: version["name"].as_str().unwrap_or_default().to_owned(),
            kind: self.kind.to_owned(),
            list_kind: name("listKind").unwrap_or_else(|| format!("{}List", self.kind)),
            plural: plural.to_owned(),
            singular: name("singular").unwrap_or_else(|| self.kind.to_lowercase()),
            short_names: list("shortNames"),
            categories: list("categories"),
            namespaced: self.crd["spec"]["scope"] == "Namespaced",
            verbs: CUSTOM_VERBS,
            has_status: version["subresources"]["status"].is_object(),
            scale: scale(&version["subresources"]["scale"]),
            subresources: &[],
            schema: Arc::clone(schema),
            columns: columns(&version["additionalPrinterColumns"]),
            selectable: &[],
            bucket: format!("{group}/{plural}").into(),
            origin: Origin::Custom(self.crd["metadata"]["name"].as_str().unwrap_or_default().to_owned()),
            deprecation: self.deprecation(version),
        })
    }
}

fn scale(scale: &Value) -> Option<Scale> {
    let path = |key: &str| scale[key].as_str().filter(|path| !path.is_empty()).map(str::to_owned);
    Some(Scale {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        selector: path("labelSelectorPath"),
    })
}

fn columns(columns: &Value) -> Vec<Column> {
    let column = |column: &Value| {
        let text = |key: &str| column[key].as_str().unwrap_or_default().to_owned();
        Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column["priority"].as_i64().unwrap_or_default(),
            path: text("jsonPath"),
        }
    };
    columns.as_array().into_iter().flatten().map(column).collect()
}

/// What names the approval of a CRD in a group of the Kubernetes project.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Whether the Kubernetes project approved a CRD in one of its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Approval<'a> {
    /// Where.
    Given(&'a str),
    /// It did not, and that is said.
    Waived(&'a str),
    Missing,
    /// The annotation is neither an address nor a waiver.
    Unclear(&'a str),
}

/// The approval of a CRD; `None` where none is needed.
pub(crate) fn approval(crd: &Value) -> Option<Approval<'_>> {
    let group = crd["spec"]["group"].as_str().unwrap_or_default();
    let is_below =
        |end: &str| group.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if !is_below("k8s.io") && !is_below("kubernetes.io") {
        return None;
    }
    let text = crd["metadata"]["annotations"][APPROVAL].as_str().unwrap_or_default();
    let has_host = text
        .split_once("://")
        .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/'));
    Some(match text {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Waived(text),
        text if has_host => Approval::Given(text),
        text => Approval::Unclear(text),
    })
}
