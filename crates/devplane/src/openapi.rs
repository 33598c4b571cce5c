//! Schemas for clients that ask: `/openapi/v3` and what it lists. Never here: validation.

mod custom;
mod paths;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Kinds, component, components};

/// How one component names another.
const REFERENCE: &str = "#/components/schemas/";

/// Every document refers to these.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The documents as they are sent, by what follows `/openapi/v3/` in their path. Those of CRDs are made again when the
/// kinds have changed.
#[derive(Default)]
pub(crate) struct Documents {
    generation: Option<u64>,
    custom: BTreeMap<String, Document>,
}

#[derive(Clone)]
struct Document {
    text: Bytes,
    /// Clients keep a document for good under its path and this.
    hash: String,
}

/// The answer to a GET of `/openapi/v3` or `/openapi/v3/...`, which is JSON, `None` where there is no such path.
pub(crate) fn answer(documents: &mut Documents, kinds: &Kinds, path: &str) -> Option<Bytes> {
    let rest = path.strip_prefix("/openapi/v3")?;
    if documents.generation != Some(kinds.generation) {
        let custom = kinds.all().filter(|kind| kind.is_custom());
        *documents = Documents { generation: Some(kinds.generation), custom: documents_of(custom) };
    }
    if matches!(rest, "" | "/") {
        return Some(index(documents));
    }
    let name = rest.strip_prefix('/')?;
    let document = documents.custom.get(name).or_else(|| built_in().get(name))?;
    Some(document.text.clone())
}

fn index(documents: &Documents) -> Bytes {
    let paths: Map<String, Value> = built_in()
        .iter()
        .chain(&documents.custom)
        .map(|(name, document)| {
            let url = format!("/openapi/v3/{name}?hash={}", document.hash);
            (name.clone(), json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths}).to_string().into()
}

/// They never change.
fn built_in() -> &'static BTreeMap<String, Document> {
    static DOCUMENTS: LazyLock<BTreeMap<String, Document>> =
        LazyLock::new(|| documents_of(Kinds::new().all()));
    &DOCUMENTS
}

fn documents_of<'a>(kinds: impl Iterator<Item = &'a Arc<Kind>>) -> BTreeMap<String, Document> {
    let mut versions: BTreeMap<String, Vec<&Kind>> = BTreeMap::new();
    for kind in kinds {
        versions.entry(below_root(kind)).or_default().push(kind);
    }
    let document = |kinds: &[&Kind]| {
        let text = document(kinds).to_string();
        Document { hash: hash(&text), text: text.into() }
    };
    versions.into_iter().map(|(name, kinds)| (name, document(&kinds))).collect()
}

/// Where the resources of a group and version are: `api/v1`, `apis/apps/v1`.
fn below_root(kind: &Kind) -> String {
    let root = if kind.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", kind.api_version())
}

/// The document of one group and version.
fn document(kinds: &[&Kind]) -> Value {
    let mut own: BTreeMap<String, Value> = BTreeMap::new();
    let mut paths = Map::new();
    for kind in kinds {
        if kind.is_custom() {
            own.insert(component_name(kind), custom::component(kind));
            own.insert(list_name(kind), custom::list(kind));
        }
        paths.extend(paths::of_kind(kind));
    }
    let mut open: Vec<String> = own.keys().cloned().collect();
    let mut schemas = Map::new();
    paths.values().for_each(|path| references(path, &mut open));
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let schema =
            own.get(&name).or_else(|| components().get(&name)).expect("what is referred to is described");
        references(schema, &mut open);
        schemas.insert(name, schema.clone());
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// The components that a part of a document refers to, by name.
pub fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            found
                .extend(reference.and_then(|reference| reference.strip_prefix(REFERENCE)).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn reference(component: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{component}")})
}

/// What the component of a kind is called. That of a CRD: `org.example.v1.Widget`.
fn component_name(kind: &Kind) -> String {
    match component(&kind.group, &kind.version, &kind.kind) {
        Some(name) if !kind.is_custom() => name.into(),
        Some(_) | None => {
            let group: Vec<&str> = kind.group.rsplit('.').collect();
            format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
        }
    }
}

fn list_name(kind: &Kind) -> String {
    format!("{}List", component_name(kind))
}

/// FNV-1a with 128 bits: texts that differ have another one, and the same text has the same in every process.
fn hash(text: &str) -> String {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    let hash = text.bytes().fold(START, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("{hash:032X}")
}

#[cfg(test)]
mod tests;
