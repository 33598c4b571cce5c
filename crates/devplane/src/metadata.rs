//! `metadata` of all objects: what a request may say there and what the server does. Never here: fields of single kinds.

use serde_json::{Map, Value};

use crate::kinds::Kind;
use crate::status::{Fault, FieldError};

/// How long a name may be. Source: the API of Kubernetes.
const NAME_LIMIT: usize = 253;
/// A label of DNS.
const LABEL_LIMIT: usize = 63;
/// All annotations of an object together, keys and values. Source: the API of Kubernetes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
    with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
pub(crate) const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex \
    used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Which names a kind allows.
#[derive(Clone, Copy)]
enum Names {
    Subdomain,
    Label,
    Label1035,
    /// Anything that can be a part of a path.
    Segment,
}

fn names(kind: &Kind) -> Names {
    match (&*kind.group, &*kind.plural) {
        ("", "namespaces") => Names::Label,
        ("", "services") => Names::Label1035,
        ("rbac.authorization.k8s.io", _) => Names::Segment,
        _ => Names::Subdomain,
    }
}

/// What is wrong with the metadata of an object that is to be stored.
pub(crate) fn check(kind: &Kind, value: &Value) -> Vec<FieldError> {
    let metadata = &value["metadata"];
    let mut errors = Vec::new();
    check_name(kind, metadata, &mut errors);
    check_keys(metadata, "labels", &mut errors);
    for (_, label) in metadata["labels"].as_object().into_iter().flatten() {
        check_label(label, &mut errors);
    }
    check_keys(metadata, "annotations", &mut errors);
    let size: usize = metadata["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > ANNOTATIONS_LIMIT {
        let detail = format!("may not be more than {ANNOTATIONS_LIMIT} bytes");
        errors.push(FieldError::new(Fault::TooLong, "metadata.annotations", &Value::Null, detail));
    }
    for owner in metadata["ownerReferences"].as_array().into_iter().flatten() {
        check_owner(owner, &mut errors);
    }
    check_controllers(metadata, &mut errors);
    for name in metadata["finalizers"].as_array().into_iter().flatten() {
        check_finalizer(kind, name, &mut errors);
    }
    errors
}

fn check_name(kind: &Kind, metadata: &Value, errors: &mut Vec<FieldError>) {
    let name = metadata["name"].as_str().unwrap_or_default();
    let path = "metadata.name";
    if name.is_empty() {
        errors.push(FieldError::required(path, "name or generateName is required"));
        return;
    }
    let shown = Value::from(name);
    let mut bad = |detail: String| errors.push(FieldError::invalid(path, &shown, detail));
    match names(kind) {
        Names::Subdomain => {
            if name.len() > NAME_LIMIT {
                bad(format!("must be no more than {NAME_LIMIT} bytes"));
            }
            if !is_subdomain(name) {
                bad(SUBDOMAIN.into());
            }
        }
        Names::Label | Names::Label1035 => {
            let is_1035 = matches!(names(kind), Names::Label1035);
            if name.len() > LABEL_LIMIT {
                let unit = if is_1035 { "bytes" } else { "characters" };
                bad(format!("must be no more than {LABEL_LIMIT} {unit}"));
            }
            let starts_well = !is_1035 || name.starts_with(|first: char| first.is_ascii_lowercase());
            if name.contains('.') && !is_1035 {
                bad("must not contain dots".into());
            } else if !(is_label(name) && starts_well) {
                bad(if is_1035 { LABEL_1035 } else { LABEL }.into());
            }
        }
        Names::Segment => {
            if matches!(name, "." | "..") {
                bad(format!("may not be '{name}'"));
            }
            for part in ["/", "%"].into_iter().filter(|part| name.contains(part)) {
                bad(format!("may not contain '{part}'"));
            }
        }
    }
}

/// Lower-case letters, digits and hyphens, none at the ends.
pub(crate) fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Labels with dots between them.
pub(crate) fn is_subdomain(text: &str) -> bool {
    !text.is_empty() && text.split('.').all(is_label)
}

/// A letter or digit at both ends; in between also `-_.`.
fn is_name(text: &str) -> bool {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// What is wrong with the key of a label, an annotation or a finalizer.
pub(crate) fn key_complaints(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let mut complaints = Vec::new();
    if name.contains('/') {
        let detail = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                      end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                      validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
                      and '/' (e.g. 'example.com/MyName')";
        return vec![detail.into()];
    }
    match prefix {
        Some("") => complaints.push("prefix part must be non-empty".into()),
        Some(prefix) if !is_subdomain(prefix) => complaints.push(format!("prefix part {SUBDOMAIN}")),
        Some(_) | None => {}
    }
    if name.is_empty() {
        complaints.push("name part must be non-empty".into());
    } else if name.len() > LABEL_LIMIT {
        complaints.push(format!("name part must be no more than {LABEL_LIMIT} bytes"));
    }
    if !is_name(name) {
        complaints.push(QUALIFIED.into());
    }
    complaints
}

fn check_keys(metadata: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for key in metadata[field].as_object().into_iter().flatten().map(|(key, _)| key) {
        // Annotations are compared without regard to letter case.
        let compared = if field == "annotations" { key.to_lowercase() } else { key.clone() };
        for complaint in key_complaints(&compared) {
            errors.push(FieldError::invalid(format!("metadata.{field}"), &Value::from(&**key), complaint));
        }
    }
}

fn check_label(value: &Value, errors: &mut Vec<FieldError>) {
    let text = value.as_str().unwrap_or_default();
    let path = "metadata.labels";
    if text.len() > LABEL_LIMIT {
        errors.push(FieldError::invalid(path, value, format!("must be no more than {LABEL_LIMIT} bytes")));
    }
    if !is_label_value(text) {
        errors.push(FieldError::invalid(path, value, LABEL_VALUE));
    }
}

/// What is wrong with labels that something else carries.
pub(crate) fn check_labels(path: &str, labels: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        for complaint in key_complaints(key) {
            errors.push(FieldError::invalid(path, &Value::from(&**key), complaint));
        }
        if !is_label_value(value.as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(path, value, LABEL_VALUE));
        }
    }
    errors
}

/// Whether a label may have this value.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

fn check_owner(owner: &Value, errors: &mut Vec<FieldError>) {
    let text = |field: &str| owner[field].as_str().unwrap_or_default();
    for (field, what) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")] {
        if text(field).is_empty() {
            let path = format!("metadata.ownerReferences.{field}");
            errors.push(FieldError::invalid(path, &"".into(), format!("{what} must not be empty")));
        }
    }
}

fn check_controllers(metadata: &Value, errors: &mut Vec<FieldError>) {
    let owners = metadata["ownerReferences"].as_array().into_iter().flatten();
    let controllers: Vec<&Value> = owners.filter(|owner| owner["controller"] == true).collect();
    if let [first, second, ..] = &*controllers {
        let name = |owner: &Value| {
            format!(
                "{}/{}",
                owner["kind"].as_str().unwrap_or_default(),
                owner["name"].as_str().unwrap_or_default()
            )
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
            name(first),
            name(second)
        );
        errors.push(FieldError::invalid("metadata.ownerReferences", &metadata["ownerReferences"], detail));
    }
}

/// Finalizers that need no prefix. Source: the API of Kubernetes.
const PLAIN_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

fn check_finalizer(kind: &Kind, name: &Value, errors: &mut Vec<FieldError>) {
    let text = name.as_str().unwrap_or_default();
    for complaint in key_complaints(text) {
        errors.push(FieldError::invalid("metadata.finalizers", name, complaint));
    }
    if !kind.is_custom() && is_plain(text) && key_complaints(text).is_empty() {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid("metadata.finalizers", name, detail));
    }
}

/// Whether the name of a finalizer says nothing of whose it is.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.contains('/') && !PLAIN_FINALIZERS.contains(&name)
}

/// What is let through of a custom object and yet warned of: finalizers that anybody might use too.
pub(crate) fn warnings(kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<String> {
    if !kind.is_custom() {
        return Vec::new();
    }
    let known = old.map(|old| &old["metadata"]["finalizers"]).and_then(Value::as_array);
    let names = new["metadata"]["finalizers"].as_array().into_iter().flatten();
    let is_new = |name: &&Value| known.is_none_or(|known| !known.contains(name));
    let plain = names.filter(is_new).filter_map(Value::as_str).filter(|name| is_plain(name));
    let warning = |name| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name including a path (/) to avoid \
             accidental conflicts with other finalizer writers"
        )
    };
    plain.map(warning).collect()
}

/// What is wrong with the metadata of the next state of an object.
pub(crate) fn check_update(kind: &Kind, old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = check(kind, new);
    let (was, is) = (&old["metadata"], &new["metadata"]);
    let none = Vec::new();
    let list = |metadata: &Value| metadata["finalizers"].as_array().unwrap_or(&none).clone();
    if was["deletionTimestamp"].is_string() {
        let before = list(was);
        let added: Vec<Value> = list(is).into_iter().filter(|name| !before.contains(name)).collect();
        if !added.is_empty() {
            let names: Vec<&str> = added.iter().filter_map(Value::as_str).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", detail));
        }
    }
    errors
}

/// Takes out lists and maps in which nothing is.
pub(crate) fn drop_empty(value: &mut Value) {
    const PARTS: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];
    let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for part in PARTS {
        let is_empty = match metadata.get(part) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => false,
        };
        if is_empty {
            metadata.remove(part);
        }
    }
}

/// What only the server writes, as a create may not bring it along.
pub(crate) const SERVER_FIELDS: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "generation",
    "resourceVersion",
];

/// Takes over from the old state what only the server writes.
pub(crate) fn carry_over(old: &Value, new: &mut Value) {
    let metadata = object(new);
    for field in SERVER_FIELDS.into_iter().chain(["name", "namespace"]) {
        match &old["metadata"][field] {
            Value::Null => drop(metadata.remove(field)),
            value => drop(metadata.insert(field.into(), value.clone())),
        }
    }
}

/// `metadata`, which is made if it is missing.
pub(crate) fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value["metadata"].is_object() {
        value["metadata"] = Value::Object(Map::new());
    }
    value["metadata"].as_object_mut().expect("it was made above")
}
