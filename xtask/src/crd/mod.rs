//! The CRDs of the product, from the Rust types.
//!
//! Never here: what a field means or may hold; that is said at the types in `crates/api`.

#[cfg(test)]
mod compare;
mod kinds;
mod normalise;

use anyhow::Context as _;
use mapi_api::schema::MIGRATION;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::files::File;
use kinds::{Column, KINDS, Kind};
use normalise::normalise;

/// Which fields a cluster is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureSet {
    /// What is released.
    Default,
    /// Everything, gated fields included.
    CustomNoUpgrade,
}

impl FeatureSet {
    /// Its name in annotations and folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::CustomNoUpgrade => "CustomNoUpgrade",
        }
    }

    /// Whether a gate is on.
    pub fn has(self, gate: &str) -> bool {
        match self {
            Self::Default => false,
            Self::CustomNoUpgrade => gate == MIGRATION,
        }
    }
}

/// Every CRD as a file. A kind without gated fields has one, in the folder above those of the feature sets.
pub fn files() -> anyhow::Result<Vec<File>> {
    let mut files = Vec::new();
    for kind in KINDS {
        let sets: &[_] = if kind.is_gated {
            &[FeatureSet::Default, FeatureSet::CustomNoUpgrade]
        } else {
            &[FeatureSet::Default]
        };
        for &set in sets {
            let folder = if kind.is_gated { format!("{}/", set.name()) } else { String::new() };
            files.push(File {
                path: format!("install/crds/{folder}{}.yaml", kind.plural),
                text: yaml(&definition(kind, set)?)?,
            });
        }
    }
    Ok(files)
}

fn yaml(value: &Value) -> anyhow::Result<String> {
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let mut text =
        String::from("# Written by `cargo xtask gen` from the types in crates/api. Do not edit.\n");
    serde_saphyr::to_fmt_writer_with_options(&mut text, value, options).context("cannot write YAML")?;
    Ok(text)
}

fn definition(kind: &Kind, set: FeatureSet) -> anyhow::Result<Value> {
    let Kind { group, version, plural, scale, .. } = *kind;
    let schema = root(kind, set).with_context(|| format!("cannot make the schema of {}", kind.kind))?;
    let mut subresources = json!({ "status": {} });
    if scale {
        subresources["scale"] = json!({
            "labelSelectorPath": ".status.labelSelector",
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
        });
    }
    let mut metadata = json!({ "name": format!("{plural}.{group}") });
    let annotations = annotations(kind, set);
    if !annotations.is_empty() {
        metadata["annotations"] = Value::Object(annotations);
    }
    Ok(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": group,
            "names": names(kind),
            "scope": "Namespaced",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": kind.columns.iter().map(column).collect::<Vec<_>>(),
                "schema": { "openAPIV3Schema": schema },
                "subresources": subresources,
            }],
        },
    }))
}

fn names(kind: &Kind) -> Value {
    let mut names = json!({
        "kind": kind.kind,
        "listKind": format!("{}List", kind.kind),
        "plural": kind.plural,
        "singular": kind.kind.to_lowercase(),
    });
    if !kind.short_names.is_empty() {
        names["shortNames"] = json!(kind.short_names);
    }
    names
}

fn annotations(kind: &Kind, set: FeatureSet) -> Map<String, Value> {
    let mut annotations: Map<_, _> =
        kind.annotations.iter().map(|&(key, value)| (key.to_owned(), Value::from(value))).collect();
    if kind.is_gated {
        annotations.insert("release.openshift.io/feature-set".into(), set.name().into());
    }
    annotations
}

fn column(&Column { name, path, type_, wide }: &Column) -> Value {
    let mut column = json!({ "jsonPath": path, "name": name, "type": type_ });
    if wide {
        column["priority"] = 1.into();
    }
    column
}

/// The schema of a whole object.
fn root(kind: &Kind, set: FeatureSet) -> anyhow::Result<Value> {
    let mut schema = json!({
        "description": kind.description,
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string", "description": "API group and version of the object." },
            "kind": { "type": "string", "description": "Kind of the object." },
            "metadata": { "type": "object" },
            "spec": (kind.spec)(),
            "status": (kind.status)(),
        },
    });
    if kind.requires_spec {
        schema["required"] = json!(["spec"]);
    }
    normalise(&mut schema, set)?;
    Ok(schema)
}

/// The derived schema of a type, with every other type that it uses written out in place.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

#[cfg(test)]
mod tests;
