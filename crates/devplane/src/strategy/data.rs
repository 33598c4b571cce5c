//! ConfigMaps and Secrets: keys that can be names of files, and what is needed by the type of a Secret. Never here: what
//! the data mean.

use serde_json::Value;

use super::immutable;
use crate::status::{Fault, FieldError};

/// How long the name of a file may be.
const KEY_LIMIT: usize = 253;

/// What is wrong with a ConfigMap.
pub(super) fn config_map(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["data", "binaryData"] {
        for key in keys(new, field) {
            check_key(field, key, &mut errors);
            if field == "data" && !new["binaryData"][key].is_null() {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(format!("data[{key}]"), &key.into(), detail));
            }
        }
    }
    errors.extend(fixed(old, new));
    errors
}

/// What is wrong with a Secret.
pub(super) fn secret(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    keys(new, "data").for_each(|key| check_key("data", key, &mut errors));
    for key in needed(&new["type"]).iter().filter(|key| new["data"][**key].is_null()) {
        errors.push(FieldError::required(format!("data[{key}]"), ""));
    }
    let credentials = ["username", "password"];
    if new["type"] == "kubernetes.io/basic-auth" && credentials.iter().all(|key| new["data"][*key].is_null())
    {
        errors.extend(credentials.map(|key| FieldError::required(format!("data[{key}]"), "")));
    }
    if new["type"] == "kubernetes.io/service-account-token" {
        const ACCOUNT: &str = "kubernetes.io/service-account.name";
        if new["metadata"]["annotations"][ACCOUNT].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("metadata.annotations[{ACCOUNT}]"), ""));
        }
    }
    errors.extend(fixed(old, new));
    if let Some(old) = old
        && old["type"] != new["type"]
    {
        errors.push(immutable("type", &new["type"]));
    }
    errors
}

/// Keys that a Secret of a type has.
fn needed(kind: &Value) -> &'static [&'static str] {
    match kind.as_str() {
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        Some("kubernetes.io/dockercfg") => &[".dockercfg"],
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        _ => &[],
    }
}

fn keys<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    object[field].as_object().into_iter().flatten().map(|(key, _)| key.as_str())
}

fn check_key(field: &str, key: &str, errors: &mut Vec<FieldError>) {
    const PLAIN: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                         'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let path = format!("{field}[{key}]");
    let mut bad = |detail: &str| errors.push(FieldError::new(Fault::Invalid, &*path, &key.into(), detail));
    if key.len() > KEY_LIMIT {
        bad(&format!("must be no more than {KEY_LIMIT} characters"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(is_plain) {
        bad(PLAIN);
    }
    match key {
        "." | ".." => bad(&format!("must not be '{key}'")),
        _ if key.starts_with("..") => bad("must not start with '..'"),
        _ => {}
    }
}

/// Data that was declared immutable.
fn fixed(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let Some(old) = old.filter(|old| old["immutable"] == true) else { return Vec::new() };
    let mut errors = Vec::new();
    if new["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    for field in ["data", "binaryData"] {
        if old[field] != new[field] {
            errors.push(FieldError::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
    errors
}
