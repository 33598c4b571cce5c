//! What is wrong with a configuration of webhooks. Never here: what its schema says.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::schema::names::qualified;
use crate::schema::{Expression, Scope, Wanted};
use crate::status::{Fault, FieldError};

/// Longest that a webhook may be waited for. Source: the API of Kubernetes.
const TIMEOUT_S: i64 = 30;

/// Most conditions that a webhook or a policy may have. Source: the API of Kubernetes.
const CONDITIONS: usize = 64;

/// Fields that are one of some words.
const POLICIES: [(&str, &[&str]); 3] = [
    ("failurePolicy", &["Fail", "Ignore"]),
    ("matchPolicy", &["Equivalent", "Exact"]),
    ("reinvocationPolicy", &["IfNeeded", "Never"]),
];

/// Checks the webhooks of a configuration.
pub(crate) fn check(configuration: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (at, webhook) in configuration["webhooks"].as_array().into_iter().flatten().enumerate() {
        let path = format!("webhooks[{at}]");
        check_webhook(webhook, &path, &mut errors);
        if !names.insert(webhook["name"].as_str().unwrap_or_default()) {
            errors.push(FieldError::new(Fault::Duplicate, format!("{path}.name"), &webhook["name"], ""));
        }
    }
    errors
}

fn check_webhook(webhook: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let name = webhook["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    } else if name.split('.').filter(|part| !part.is_empty()).count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(format!("{path}.name"), &webhook["name"], detail));
    }
    for (at, rule) in webhook["rules"].as_array().into_iter().flatten().enumerate() {
        check_rule(rule, &format!("{path}.rules[{at}]"), errors);
    }
    for (field, allowed) in POLICIES {
        check_word(&webhook[field], &format!("{path}.{field}"), allowed, errors);
    }
    match webhook["sideEffects"].as_str() {
        Some("None" | "NoneOnDryRun") => {}
        Some(_) => {
            let allowed = "supported values: \"None\", \"NoneOnDryRun\"";
            let (at, value) = (format!("{path}.sideEffects"), &webhook["sideEffects"]);
            errors.push(FieldError::new(Fault::Unsupported, at, value, allowed));
        }
        None => {
            let detail = "must specify one of None, NoneOnDryRun";
            errors.push(FieldError::required(format!("{path}.sideEffects"), detail));
        }
    }
    if webhook["timeoutSeconds"].as_i64().is_some_and(|seconds| !(1..=TIMEOUT_S).contains(&seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(
            format!("{path}.timeoutSeconds"),
            &webhook["timeoutSeconds"],
            detail,
        ));
    }
    check_client(&webhook["clientConfig"], &format!("{path}.clientConfig"), errors);
    check_conditions(webhook, path, errors);
    let versions = webhook["admissionReviewVersions"].as_array().map_or(&[][..], Vec::as_slice);
    let at = format!("{path}.admissionReviewVersions");
    if versions.is_empty() {
        errors.push(FieldError::required(at, "must specify one of v1, v1beta1"));
    } else if !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let detail = "must include at least one of v1, v1beta1";
        errors.push(FieldError::invalid(at, &webhook["admissionReviewVersions"], detail));
    }
}

/// Refuses a text that is none of those allowed.
pub(crate) fn check_word(value: &Value, path: &str, allowed: &[&str], errors: &mut Vec<FieldError>) {
    if value.as_str().is_some_and(|text| !allowed.contains(&text)) {
        let allowed: Vec<String> = allowed.iter().map(|word| format!("{word:?}")).collect();
        let detail = format!("supported values: {}", allowed.join(", "));
        errors.push(FieldError::new(Fault::Unsupported, path, value, detail));
    }
}

pub(crate) fn check_rule(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (at, operation) in rule["operations"].as_array().into_iter().flatten().enumerate() {
        let allowed = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        check_word(operation, &format!("{path}.operations[{at}]"), &allowed, errors);
    }
    check_word(&rule["scope"], &format!("{path}.scope"), &["*", "Cluster", "Namespaced"], errors);
    let rows = [("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (field, words) in rows {
        let list = rule[field].as_array().map_or(&[][..], Vec::as_slice);
        let at = format!("{path}.{field}");
        if list.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else if list.len() > 1 && list.iter().any(|item| item == "*") {
            let detail = format!("if '*' is present, must not specify other {words}");
            errors.push(FieldError::invalid(at, &rule[field], detail));
        }
    }
    check_resources(&rule["resources"], &format!("{path}.resources"), errors);
}

fn check_resources(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if list.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    for (at, resource) in list.iter().enumerate() {
        let Some((name, sub)) = resource.split_once('/') else { continue };
        let whole = format!("{name}/*");
        let every = format!("*/{sub}");
        for wide in [whole, every] {
            if wide != *resource && wide != "*/*" && list.contains(&&*wide) {
                let detail = format!("if '{wide}' is present, must not specify {resource}");
                errors.push(FieldError::invalid(format!("{path}[{at}]"), &(*resource).into(), detail));
            }
        }
    }
    if list.len() > 1 && list.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, value, detail));
    }
    let plain = list.iter().filter(|resource| !resource.contains('/')).count();
    if plain > 1 && list.contains(&"*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, value, detail));
    }
}

fn check_client(client: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const FORM: &str = "desired format: https://host[/path]";
    let (url, service) = (client["url"].as_str(), &client["service"]);
    if url.is_some() == service.is_object() {
        errors.push(FieldError::required(path, "exactly one of url or service is required"));
        return;
    }
    if let Some(url) = url {
        let path = format!("{path}.url");
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        if scheme != "https" {
            let detail = format!("'https' is the only allowed URL scheme; {FORM}");
            errors.push(FieldError::invalid(&*path, &scheme.into(), detail));
        }
        if rest.split('/').next().is_none_or(str::is_empty) {
            errors.push(FieldError::invalid(&*path, &"".into(), format!("host must be specified; {FORM}")));
        }
        if !query.is_empty() {
            let detail = "query parameters are not permitted in the URL";
            errors.push(FieldError::invalid(path, &query.into(), detail));
        }
        return;
    }
    for field in ["name", "namespace"] {
        if service[field].as_str().is_none_or(str::is_empty) {
            errors.push(FieldError::required(format!("{path}.service.{field}"), ""));
        }
    }
    if service["port"].as_i64().is_some_and(|port| !(1..=65535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(format!("{path}.service.port"), &service["port"], detail));
    }
    if service["path"].as_str().is_some_and(|path| !path.starts_with('/')) {
        let at = format!("{path}.service.path");
        errors.push(FieldError::invalid(at, &service["path"], "must start with a '/'"));
    }
}

/// Checks the conditions of a webhook or a policy.
pub(crate) fn check_conditions(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.matchConditions");
    let list = value["matchConditions"].as_array().map_or(&[][..], Vec::as_slice);
    if list.len() > CONDITIONS {
        let (fault, value) = (Fault::TooMany, list.len().to_string());
        let detail = format!("must have at most {CONDITIONS} items");
        errors.push(FieldError { fault, path, value, detail });
        return;
    }
    let mut names = BTreeSet::new();
    for (at, condition) in list.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let name = condition["name"].as_str().unwrap_or_default();
        let text = condition["expression"].as_str().unwrap_or_default().trim();
        if text.is_empty() {
            errors.push(FieldError::required(format!("{path}.expression"), ""));
        } else if let Err(why) = Expression::parse(text, &Scope::of_requests(), Wanted::Bool) {
            errors.push(FieldError::invalid(format!("{path}.expression"), &text.into(), why));
        }
        if name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        for why in if name.is_empty() { Vec::new() } else { qualified(name) } {
            errors.push(FieldError::invalid(format!("{path}.name"), &name.into(), why));
        }
        if !names.insert(name) {
            errors.push(FieldError::new(Fault::Duplicate, format!("{path}.name"), &name.into(), ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What is wrong with the webhook that `change` makes.
    fn complaints(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut webhook = json!({
            "name": "w.x.y", "clientConfig": {"url": "https://host/path"},
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 10,
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }],
        });
        change(&mut webhook);
        check(&json!({"webhooks": [webhook]})).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_configuration_that_makes_no_sense_is_refused() {
        let set = |path: &'static str, value: Value| {
            complaints(move |webhook| *webhook.pointer_mut(path).unwrap() = value)
        };
        assert_eq!(complaints(|_| {}), [""; 0]);
        let rows = [
            (
                "/name",
                json!("v"),
                "webhooks[0].name: Invalid value: \"v\": should be a domain with at least three segments separated by dots",
            ),
            (
                "/clientConfig",
                json!({}),
                "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            ),
            (
                "/clientConfig/url",
                json!("http://a/b"),
                "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
            ),
            (
                "/clientConfig/url",
                json!("https://a/b?c=d"),
                "webhooks[0].clientConfig.url: Invalid value: \"c=d\": query parameters are not permitted in the URL",
            ),
            (
                "/clientConfig/url",
                json!("https:///b"),
                "webhooks[0].clientConfig.url: Invalid value: \"\": host must be specified; desired format: https://host[/path]",
            ),
            (
                "/clientConfig",
                json!({"service": {"name": "a", "namespace": "b", "port": 99999}}),
                "webhooks[0].clientConfig.service.port: Invalid value: 99999: port is not valid: must be between 1 and 65535, inclusive",
            ),
            (
                "/admissionReviewVersions",
                json!([]),
                "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ),
            (
                "/admissionReviewVersions",
                json!(["v2"]),
                "webhooks[0].admissionReviewVersions: Invalid value: [\"v2\"]: must include at least one of v1, v1beta1",
            ),
            (
                "/sideEffects",
                json!("Some"),
                "webhooks[0].sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
            (
                "/timeoutSeconds",
                json!(31),
                "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
            ),
            ("/rules/0/operations", json!([]), "webhooks[0].rules[0].operations: Required value"),
            (
                "/rules/0/operations",
                json!(["X"]),
                "webhooks[0].rules[0].operations[0]: Unsupported value: \"X\": supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
            ),
            (
                "/rules/0/operations",
                json!(["*", "CREATE"]),
                "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
            ),
            (
                "/rules/0/apiGroups",
                json!(["*", "a"]),
                "webhooks[0].rules[0].apiGroups: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other API groups",
            ),
            (
                "/rules/0/resources",
                json!(["*", "pods"]),
                "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
            ),
            (
                "/rules/0/resources",
                json!(["*/*", "pods"]),
                "webhooks[0].rules[0].resources: Invalid value: [\"*/*\",\"pods\"]: if '*/*' is present, must not specify other resources",
            ),
            (
                "/rules/0/resources",
                json!(["pods/*", "pods/status"]),
                "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not specify pods/status",
            ),
        ];
        for (path, value, expected) in rows {
            assert_eq!(set(path, value), [expected], "{path}");
        }
        let condition = |expression: &str| {
            let condition = json!([{"name": "n", "expression": expression}]);
            complaints(move |webhook| webhook["matchConditions"] = condition)
        };
        let at = "webhooks[0].matchConditions[0].expression";
        let rows = [
            ("", format!("{at}: Required value")),
            ("1", format!("{at}: Invalid value: \"1\": must evaluate to bool but got int")),
            (
                "object.data.a",
                format!("{at}: Invalid value: \"object.data.a\": must evaluate to bool but got dyn"),
            ),
            (
                "foo.bar == 1",
                format!(
                    "{at}: Invalid value: \"foo.bar == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to \
                     'foo' (in container '')\n | foo.bar == 1\n | ^"
                ),
            ),
        ];
        for (expression, expected) in rows {
            assert_eq!(condition(expression), [expected]);
        }
    }
}
