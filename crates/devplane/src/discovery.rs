//! What is served, for clients that ask: `/api`, `/apis`, aggregated or not, and `/version`. Never here: schemas.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::env::consts::{ARCH, OS};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::kinds::{Kind, Kinds, SCALE, Subresource, Verb};

const JSON: &str = "application/json";

/// What the aggregated form calls itself.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The Kubernetes that is spoken: where it matters the answers are those of this release.
const RELEASE: &str = "v1.36.3";

/// The answer to a GET of a discovery path (`/api`, `/api/v1`, `/apis`, `/apis/G`, `/apis/G/V`, `/version`), `None` where
/// there is no such path. `accept` is the header, which may ask for the aggregated form.
/// Returns the content type and the body.
pub(crate) fn answer(kinds: &Kinds, path: &str, accept: &str) -> Option<(&'static str, Value)> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
    let groups = Group::all(kinds);
    let (core, named): (Vec<Group<'_>>, Vec<Group<'_>>) =
        groups.into_iter().partition(|group| group.name.is_empty());
    let is_aggregated = is_aggregated(accept);
    let resources = |groups: &[Group<'_>], name: &str, version: &str| {
        let group = groups.iter().find(|group| group.name == name)?;
        group.versions.iter().find(|known| known.name == version).map(|version| resource_list(group, version))
    };
    let body = match *parts.as_slice() {
        ["api"] if is_aggregated => return Some((AGGREGATED, aggregated(&core))),
        ["apis"] if is_aggregated => return Some((AGGREGATED, aggregated(&named))),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["api", version] => resources(&core, "", version)?,
        ["apis"] => group_list(&named),
        ["apis", name] => {
            let mut group = named.iter().find(|group| group.name == name)?.describe();
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }
        ["apis", name, version] => resources(&named, name, version)?,
        ["version"] => version(),
        _ => return None,
    };
    Some((JSON, body))
}

/// The kinds of a group, by version.
struct Group<'a> {
    name: &'a str,
    is_custom: bool,
    versions: Vec<Version<'a>>,
}

struct Version<'a> {
    name: &'a str,
    kinds: Vec<&'a Kind>,
}

impl<'a> Group<'a> {
    /// All groups: those of Kubernetes in their order, then those of CRDs by name.
    fn all(kinds: &'a Kinds) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for kind in kinds.all().map(Arc::as_ref) {
            let index = groups.iter().position(|group| group.name == kind.group).unwrap_or_else(|| {
                groups.push(Group { name: &kind.group, is_custom: kind.is_custom(), versions: Vec::new() });
                groups.len() - 1
            });
            let versions = &mut groups[index].versions;
            match versions.iter_mut().find(|version| version.name == kind.version) {
                Some(version) => version.kinds.push(kind),
                None => versions.push(Version { name: &kind.version, kinds: vec![kind] }),
            }
        }
        groups.sort_by_key(|group| if group.is_custom { (true, group.name) } else { (false, "") });
        for group in &mut groups {
            group.versions.sort_by_key(|version| priority(version.name));
            for version in &mut group.versions {
                version.kinds.sort_by_key(|kind| &kind.plural);
            }
        }
        groups
    }

    fn describe(&self) -> Value {
        let versions: Vec<Value> = self
            .versions
            .iter()
            .map(|version| json!({"groupVersion": format!("{}/{}", self.name, version.name), "version": version.name}))
            .collect();
        json!({"name": self.name, "preferredVersion": versions.first(), "versions": versions})
    }
}

/// Where a version stands among those of its group: stable ones first, then the newer, then names of other shapes.
fn priority(version: &str) -> (u8, Reverse<(u64, u64)>, &str) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let major: u64 = rest[..end].parse().ok()?;
        let rest = &rest[end..];
        if rest.is_empty() {
            return Some((0, major, 0));
        }
        let (rank, minor) = match rest.strip_prefix("beta") {
            Some(minor) => (1, minor),
            None => (2, rest.strip_prefix("alpha")?),
        };
        Some((rank, major, minor.parse().ok()?))
    };
    parse().map_or((3, Reverse((0, 0)), version), |(rank, major, minor)| (rank, Reverse((major, minor)), ""))
}

/// Whether a client reads the aggregated form.
fn is_aggregated(accept: &str) -> bool {
    accept.split(',').any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let is_json = matches!(parts.next(), Some("application/json" | "*/*"));
        let parameters: BTreeMap<&str, &str> = parts.filter_map(|part| part.split_once('=')).collect();
        let is = |name: &str, wanted: &str| parameters.get(name) == Some(&wanted);
        is_json && is("g", "apidiscovery.k8s.io") && is("v", "v2") && is("as", "APIGroupDiscoveryList")
    })
}

fn group_list(groups: &[Group<'_>]) -> Value {
    let groups: Vec<Value> = groups.iter().map(Group::describe).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn verbs(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.name()).collect()
}

/// A part of an object that is read and written by itself, or something that is done to the object.
struct Part<'a> {
    name: &'a str,
    /// `None`: objects of the same kind.
    other: Option<&'a Subresource>,
    verbs: &'a [Verb],
}

/// The subresources of a kind, in the order in which a real API server lists them.
fn parts(kind: &Kind) -> Vec<Part<'_>> {
    const READ_AND_WRITTEN: &[Verb] = &[Verb::Get, Verb::Patch, Verb::Update];
    let status = kind.has_status.then_some(Part { name: "status", other: None, verbs: READ_AND_WRITTEN });
    let scale = kind.scale.is_some().then_some(&SCALE);
    let others = kind.subresources.iter().chain(scale);
    let others = others.map(|other| Part { name: other.name, other: Some(other), verbs: other.verbs });
    let mut parts: Vec<Part<'_>> = status.into_iter().chain(others).collect();
    if !kind.is_custom() {
        parts.sort_by_key(|part| part.name);
    }
    parts
}

fn resource_list(group: &Group<'_>, version: &Version<'_>) -> Value {
    let mut resources = Vec::new();
    for kind in &version.kinds {
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": verbs(kind.verbs),
        });
        add_names(&mut resource, kind);
        resources.push(resource);
        for part in parts(kind) {
            let mut resource = json!({
                "name": format!("{}/{}", kind.plural, part.name),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": part.other.map_or(kind.kind.as_str(), |other| other.kind),
                "verbs": verbs(part.verbs),
            });
            let is_foreign =
                |other: &&Subresource| (other.group, other.version) != (&*kind.group, &*kind.version);
            if let Some(other) = part.other.filter(is_foreign) {
                resource["group"] = other.group.into();
                resource["version"] = other.version.into();
            }
            resources.push(resource);
        }
    }
    let name = if group.name.is_empty() {
        version.name.to_owned()
    } else {
        format!("{}/{}", group.name, version.name)
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources})
}

fn add_names(resource: &mut Value, kind: &Kind) {
    for (field, names) in [("shortNames", &kind.short_names), ("categories", &kind.categories)] {
        if !names.is_empty() {
            resource[field] = json!(names);
        }
    }
}

fn aggregated(groups: &[Group<'_>]) -> Value {
    let items: Vec<Value> = groups
        .iter()
        .map(|group| {
            let mut metadata = Map::new();
            if !group.name.is_empty() {
                metadata.insert("name".into(), group.name.into());
            }
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        version.kinds.iter().map(|kind| aggregated_resource(kind)).collect();
                    json!({"version": version.name, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(kind: &Kind) -> Value {
    // A real API server leaves group and version of its own kinds empty, which means those of the resource.
    let own = |group: &str, version: &str, name: &str| {
        let (group, version) = if kind.is_custom() { (group, version) } else { ("", "") };
        json!({"group": group, "version": version, "kind": name})
    };
    let own = own(&kind.group, &kind.version, &kind.kind);
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": own,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind.verbs),
    });
    add_names(&mut resource, kind);
    let subresources: Vec<Value> = parts(kind)
        .iter()
        .map(|part| {
            let response = part.other.map_or_else(
                || own.clone(),
                |other| json!({"group": other.group, "version": other.version, "kind": other.kind}),
            );
            json!({"subresource": part.name, "responseKind": response, "verbs": verbs(part.verbs)})
        })
        .collect();
    if !subresources.is_empty() {
        resource["subresources"] = subresources.into();
    }
    resource
}

fn version() -> Value {
    let numbers = RELEASE.trim_start_matches('v');
    let mut numbers = numbers.split('.');
    let (major, minor) = (numbers.next(), numbers.next());
    // As Go names them.
    let architecture = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let system = if OS == "macos" { "darwin" } else { OS };
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("{RELEASE}+devplane"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": format!("{system}/{architecture}"),
    })
}

#[cfg(test)]
mod tests;
