//! What can be asked of a kind, path by path. Never here: schemas of objects.

use serde_json::{Map, Value, json};

use super::{DELETE_OPTIONS, PATCH, STATUS, below_root, component_name, list_name, reference};
use crate::kinds::{Kind, SCALE, Verb, component};

/// A query parameter and its type.
type Parameter = (&'static str, &'static str);

const DRY_RUN: Parameter = ("dryRun", "string");
const FORCE: Parameter = ("force", "boolean");

const CREATE: &[Parameter] = &[DRY_RUN, ("fieldManager", "string"), ("fieldValidation", "string")];

const DELETE: &[Parameter] = &[
    DRY_RUN,
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];

const WATCH: &[Parameter] = &[("allowWatchBookmarks", "boolean"), ("watch", "boolean")];

const LIST: &[Parameter] = &[
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];

/// The paths of a kind and what may be done at each.
pub(super) fn of_kind(kind: &Kind) -> Map<String, Value> {
    let root = format!("/{}", below_root(kind));
    let mut paths = Map::new();
    let mut add = |path: &str, verbs: &[Verb], part: &Part| {
        let operations = verbs.iter().filter_map(|verb| operation(kind, *verb, part));
        let mut operations: Map<String, Value> = operations.collect();
        if !operations.is_empty() {
            operations.insert("parameters".into(), in_path(path));
            paths.insert(path.to_owned(), operations.into());
        }
    };
    let plural = &kind.plural;
    let all = if kind.namespaced {
        format!("{root}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{root}/{plural}")
    };
    let one = format!("{all}/{{name}}");
    let whole = Part { component: component_name(kind), kind: names(&kind.group, &kind.version, &kind.kind) };
    let has = |verb: &Verb| kind.verbs.contains(verb);
    let of_all = [Verb::List, Verb::Create, Verb::DeleteCollection].into_iter().filter(has);
    let of_one = [Verb::Get, Verb::Update, Verb::Patch, Verb::Delete].into_iter().filter(has);
    add(&all, &of_all.collect::<Vec<_>>(), &whole);
    add(&one, &of_one.collect::<Vec<_>>(), &whole);
    if kind.namespaced && has(&Verb::List) {
        add(&format!("{root}/{plural}"), &[Verb::List], &whole);
    }
    if kind.has_status {
        add(&format!("{one}/status"), &[Verb::Get, Verb::Update, Verb::Patch], &whole);
    }
    for other in kind.subresources.iter().chain(kind.scale.is_some().then_some(&SCALE)) {
        let name =
            component(other.group, other.version, other.kind).expect("the generated file has every kind");
        // A real API server names the kind of a CRD even where its scale is read.
        let kind =
            if kind.is_custom() { whole.kind.clone() } else { names(other.group, other.version, other.kind) };
        let part = Part { component: name.into(), kind };
        add(&format!("{one}/{}", other.name), other.verbs, &part);
    }
    paths
}

/// What is read and written at a path.
struct Part {
    component: String,
    /// For `x-kubernetes-group-version-kind`.
    kind: Value,
}

fn names(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn operation(kind: &Kind, verb: Verb, part: &Part) -> Option<(String, Value)> {
    let object = reference(&part.component);
    let any = |schema: &Value| json!({"content": {"*/*": {"schema": schema}}});
    let (method, action, parameters, body, answer) = match verb {
        Verb::Get => ("get", "get", Vec::new(), None, object),
        Verb::List => ("get", "list", [LIST, WATCH].concat(), None, reference(&list_name(kind))),
        Verb::Create => ("post", "post", CREATE.to_vec(), Some(any(&object)), object),
        Verb::Update => ("put", "put", CREATE.to_vec(), Some(any(&object)), object),
        Verb::Patch => ("patch", "patch", [CREATE, &[FORCE]].concat(), Some(patches(kind)), object),
        Verb::Delete => {
            ("delete", "delete", DELETE.to_vec(), Some(any(&reference(DELETE_OPTIONS))), reference(STATUS))
        }
        Verb::DeleteCollection => {
            let parameters = [DELETE, LIST].concat();
            (
                "delete",
                "deletecollection",
                parameters,
                Some(any(&reference(DELETE_OPTIONS))),
                reference(STATUS),
            )
        }
        // It is a list with a parameter.
        Verb::Watch => return None,
    };
    let mut operation = json!({
        "parameters": parameters.into_iter().map(in_query).collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": part.kind,
    });
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    Some((method.to_owned(), operation))
}

/// Clients read from this which patches they may send.
fn patches(kind: &Kind) -> Value {
    let strategic = (!kind.is_custom()).then_some("application/strategic-merge-patch+json");
    let types =
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    let content: Map<String, Value> = types
        .into_iter()
        .chain(strategic)
        .map(|name| (name.to_owned(), json!({"schema": reference(PATCH)})))
        .collect();
    json!({"content": content, "required": true})
}

fn in_query((name, kind): Parameter) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

/// The parameters that a path names.
fn in_path(path: &str) -> Value {
    let names = ["name", "namespace"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
    names
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}))
        .collect()
}
