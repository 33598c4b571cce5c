//! `cargo xtask devplane-schemas`: the schemas of the kinds of Kubernetes that the embedded control plane serves, written
//! down from a real API server.
//!
//! Only facts: the texts that explain fields stay where they are. Never here: which kinds those are; what a schema means.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, bail};
use controlplane::{ControlPlane, Options};
use kube::Client;
use mapi_devplane::{Served, references};
use serde_json::Value;

use crate::files::{self, File};

const PATH: &str = "crates/devplane/src/kinds/built_in.json";

/// What requests carry and answers are beside objects of the kinds themselves.
const COMMON: [&str; 3] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
];

type Components = BTreeMap<String, Value>;

/// Arguments of `devplane-schemas`.
#[derive(clap::Args)]
pub struct Args {
    /// Write nothing, and fail when the committed file is not as it would be written.
    #[arg(long)]
    check: bool,
}

/// Starts an API server, and writes or checks the file.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let components = runtime.block_on(async {
        let plane = ControlPlane::start(Options { controller_manager: false, ..Options::default() }).await?;
        components(&plane.client()).await
    })?;
    let files = [File { path: PATH.into(), text: text(&components) }];
    if args.check { files::check(&files) } else { files::write(&files) }
}

async fn components(client: &Client) -> anyhow::Result<Components> {
    let served = mapi_devplane::served();
    let paths: BTreeSet<String> = served.iter().map(document_path).collect();
    let mut known = Components::new();
    for path in paths {
        let request = http::Request::get(format!("/openapi/v3/{path}")).body(Vec::new())?;
        let mut document: Value =
            client.request(request).await.with_context(|| format!("cannot read the schemas of `{path}`"))?;
        let schemas = serde_json::from_value(document["components"]["schemas"].take())
            .with_context(|| format!("the schemas of `{path}` are no object"))?;
        add(&mut known, schemas)?;
    }
    let mut roots: BTreeSet<String> = COMMON.map(str::to_owned).into();
    for served in &served {
        roots.extend(roots_of(&known, served)?);
    }
    reached(&known, roots)
}

/// Where a group and version has its schemas, below `/openapi/v3/`.
fn document_path(served: &Served) -> String {
    let Served { group, version, .. } = served;
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Names of the components of a kind and of its list.
fn roots_of(known: &Components, served: &Served) -> anyhow::Result<Vec<String>> {
    let list = served.has_list.then(|| format!("{}List", served.kind));
    let kinds = std::iter::once(served.kind.to_owned()).chain(list);
    kinds
        .map(|kind| {
            let is_wanted = |names: &Value| {
                names["group"] == served.group && names["version"] == served.version && names["kind"] == kind
            };
            let found = known.iter().find(|(_, schema)| kinds_named(schema).any(is_wanted));
            let (name, _) =
                found.with_context(|| format!("there is no schema of `{}` `{kind}`", served.group))?;
            Ok(name.clone())
        })
        .collect()
}

fn kinds_named(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten()
}

/// Takes over what is not known yet. The same name means the same everywhere, but for the groups that a common
/// component, such as the options of deletions, says to be of.
fn add(known: &mut Components, schemas: Components) -> anyhow::Result<()> {
    for (name, mut schema) in schemas {
        strip(&mut schema);
        if name.contains(".pkg.apis.meta.")
            && let Some(fields) = schema.as_object_mut()
        {
            fields.remove("x-kubernetes-group-version-kind");
        }
        match known.get(&name) {
            Some(other) if *other != schema => bail!("the schema `{name}` is not the same everywhere"),
            Some(_) => {}
            None => {
                known.insert(name, schema);
            }
        }
    }
    Ok(())
}

/// Takes the texts out. A field may have the name of a keyword, so that it counts where one is.
fn strip(schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    keywords.remove("description");
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => value.as_object_mut().into_iter().flatten().for_each(|(_, field)| strip(field)),
            "items" | "additionalProperties" | "not" => strip(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array_mut().into_iter().flatten().for_each(strip),
            // Values, not schemas.
            _ => {}
        }
    }
}

/// The roots and everything that they refer to.
fn reached(known: &Components, roots: BTreeSet<String>) -> anyhow::Result<Components> {
    let mut open: Vec<String> = roots.into_iter().collect();
    let mut found = Components::new();
    while let Some(name) = open.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let schema = known.get(&name).with_context(|| format!("there is no schema `{name}`"))?;
        references(schema, &mut open);
        found.insert(name, schema.clone());
    }
    Ok(found)
}

/// A line for each component, so that a change of one can be read.
fn text(components: &Components) -> String {
    let lines: Vec<String> =
        components.iter().map(|(name, schema)| format!("{}:{schema}", Value::from(name.as_str()))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_go_and_fields_of_their_name_stay() {
        let mut schema = json!({
            "description": "gone",
            "properties": {"description": {"type": "string", "description": "gone"}},
            "items": {"allOf": [{"$ref": "#/components/schemas/a", "description": "gone"}]},
            "default": {"description": "stays"},
        });
        strip(&mut schema);
        assert_eq!(
            schema,
            json!({
                "properties": {"description": {"type": "string"}},
                "items": {"allOf": [{"$ref": "#/components/schemas/a"}]},
                "default": {"description": "stays"},
            })
        );
    }

    #[test]
    fn only_what_is_referred_to_is_written() {
        let known = Components::from([
            ("a".into(), json!({"items": {"$ref": "#/components/schemas/b"}})),
            ("b".into(), json!({"properties": {"a": {"$ref": "#/components/schemas/a"}}})),
            ("c".into(), json!({"type": "string"})),
        ]);
        let found = reached(&known, BTreeSet::from(["a".to_owned()])).unwrap();
        assert_eq!(
            text(&found),
            "{\n\"a\":{\"items\":{\"$ref\":\"#/components/schemas/b\"}},\n\
             \"b\":{\"properties\":{\"a\":{\"$ref\":\"#/components/schemas/a\"}}}\n}\n"
        );
    }
}
