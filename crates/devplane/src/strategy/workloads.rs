//! Deployments, DaemonSets, ReplicaSets and disruption budgets: what is refused of them. Never here: the pods of a
//! template.

use serde_json::Value;

use super::{immutable, pod_spec};
use crate::metadata;
use crate::selector::Labels;
use crate::status::{Fault, FieldError};

/// What is wrong with what makes pods.
pub(super) fn workload(plural: &str, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &new["spec"];
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        errors.extend(negative(&format!("spec.{field}"), &spec[field]));
    }
    check_selector(plural, spec, &mut errors);
    let template = &spec["template"]["spec"];
    if old.is_none_or(|old| old["spec"]["template"] != spec["template"]) {
        let path = "spec.template.spec";
        errors.extend(pod_spec::check(path, template));
        let policy = &template["restartPolicy"];
        if matches!(policy.as_str(), Some("OnFailure" | "Never")) {
            errors.push(FieldError::unsupported(format!("{path}.restartPolicy"), policy, &["Always"]));
        }
        if !template["activeDeadlineSeconds"].is_null() {
            let detail = "activeDeadlineSeconds in ReplicaSet is not Supported";
            errors.push(FieldError::forbidden(format!("{path}.activeDeadlineSeconds"), detail));
        }
    }
    match plural {
        "deployments" => check_strategy("strategy", &["Recreate", "RollingUpdate"], spec, &mut errors),
        "daemonsets" => check_strategy("updateStrategy", &["RollingUpdate", "OnDelete"], spec, &mut errors),
        _ => {}
    }
    let ready_s = spec["minReadySeconds"].as_i64().unwrap_or_default();
    if spec["progressDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds > 0 && seconds <= ready_s) {
        let path = "spec.progressDeadlineSeconds";
        let detail = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid(path, &spec["progressDeadlineSeconds"], detail));
    }
    if let Some(old) = old
        && old["spec"]["selector"] != spec["selector"]
    {
        errors.push(immutable("spec.selector", &spec["selector"]));
    }
    errors
}

fn check_selector(plural: &str, spec: &Value, errors: &mut Vec<FieldError>) {
    let selector = &spec["selector"];
    let is_empty = selector.as_object().is_some_and(serde_json::Map::is_empty);
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    } else if is_empty {
        let kind = if plural == "daemonsets" { "daemonset" } else { "deployment" };
        let detail = format!("empty selector is invalid for {kind}");
        errors.push(FieldError::invalid("spec.selector", selector, detail));
        return;
    }
    let complaints = selector_complaints("spec.selector", selector);
    if !complaints.is_empty() {
        errors.extend(complaints);
        errors.push(FieldError::invalid("spec.selector", selector, "invalid label selector"));
        return;
    }
    let labels = spec["template"]["metadata"]["labels"].as_object().into_iter().flatten();
    let labels: Vec<(String, String)> =
        labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into())).collect();
    let matches = Labels::of_object(selector).is_some_and(|selector| selector.matches(&labels));
    if selector.is_null() || !matches {
        let value = &spec["template"]["metadata"]["labels"];
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", value, detail));
    }
}

/// What is wrong with a selector of labels.
fn selector_complaints(path: &str, selector: &Value) -> Vec<FieldError> {
    let mut errors = metadata::check_labels(&format!("{path}.matchLabels"), &selector["matchLabels"]);
    for (at, expression) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{at}]");
        let has_values = expression["values"].as_array().is_some_and(|values| !values.is_empty());
        match expression["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if !has_values => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{path}.values"), detail));
            }
            "Exists" | "DoesNotExist" if has_values => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{path}.values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid(format!("{path}.operator"), &expression["operator"], detail));
            }
        }
        for complaint in metadata::key_complaints(expression["key"].as_str().unwrap_or_default()) {
            errors.push(FieldError::invalid(format!("{path}.key"), &expression["key"], complaint));
        }
    }
    errors
}

fn check_strategy(field: &str, allowed: &[&str], spec: &Value, errors: &mut Vec<FieldError>) {
    let strategy = &spec[field];
    let path = format!("spec.{field}");
    let given = strategy["type"].as_str().unwrap_or_default();
    let rolling = &strategy["rollingUpdate"];
    if !allowed.contains(&given) {
        errors.push(FieldError {
            value: format!("{{\"Type\":{given:?},\"RollingUpdate\":{rolling}}}"),
            ..FieldError::unsupported(path, strategy, allowed)
        });
        return;
    }
    if given == "Recreate" && rolling.is_object() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::forbidden(format!("{path}.rollingUpdate"), detail));
    }
    if given != "RollingUpdate" {
        return;
    }
    let path = format!("{path}.rollingUpdate");
    // The field that is complained of first is another one for each kind.
    let fields =
        if field == "strategy" { ["maxSurge", "maxUnavailable"] } else { ["maxUnavailable", "maxSurge"] };
    for name in fields {
        errors.extend(share(&format!("{path}.{name}"), &rolling[name]));
    }
    let is_none = |field: &str| rolling[field] == 0 || rolling[field] == "0%";
    let is_deployment = field == "strategy";
    match (is_none("maxSurge"), is_none("maxUnavailable")) {
        (true, true) if is_deployment => {
            let path = format!("{path}.maxUnavailable");
            let detail = "may not be 0 when `maxSurge` is 0";
            errors.push(FieldError::invalid(path, &rolling["maxUnavailable"], detail));
        }
        (true, true) => {
            let detail = "cannot be 0 when maxSurge is 0";
            errors.push(FieldError::required(format!("{path}.maxUnavailable"), detail));
        }
        (false, false) if !is_deployment => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(format!("{path}.maxSurge"), &rolling["maxSurge"], detail));
        }
        (true, false) | (false, true | false) => {}
    }
}

/// What is wrong with a number, or a share in per cent.
fn share(path: &str, value: &Value) -> Option<FieldError> {
    const PER_CENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                            regex used for validation is '[0-9]+%')";
    let Some(text) = value.as_str() else { return negative(path, value) };
    let digits = text.strip_suffix('%').filter(|digits| !digits.is_empty());
    match digits.map(|digits| (digits.bytes().all(|byte| byte.is_ascii_digit()), digits.parse::<u64>())) {
        Some((true, Ok(..=100))) => None,
        Some((true, _)) => Some(FieldError::invalid(path, value, "must not be greater than 100%")),
        Some((false, _)) | None => Some(FieldError::invalid(path, value, PER_CENT)),
    }
}

fn negative(path: &str, value: &Value) -> Option<FieldError> {
    let is_negative = value.as_i64().is_some_and(|number| number < 0);
    is_negative.then(|| FieldError::invalid(path, value, "must be greater than or equal to 0"))
}

/// What is wrong with a disruption budget.
pub(super) fn budget(new: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let policy = &spec["unhealthyPodEvictionPolicy"];
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        errors.push(FieldError {
            fault: Fault::Invalid,
            path: "spec".into(),
            value: format!(
                "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{policy}}}",
                spec["minAvailable"], spec["selector"], spec["maxUnavailable"]
            ),
            detail: "minAvailable and maxUnavailable cannot be both set".into(),
        });
    }
    for field in ["minAvailable", "maxUnavailable"] {
        errors.extend(share(&format!("spec.{field}"), &spec[field]));
    }
    errors.extend(selector_complaints("spec.selector", &spec["selector"]));
    if !matches!(policy.as_str(), None | Some("AlwaysAllow" | "IfHealthyBudget")) {
        let path = "spec.unhealthyPodEvictionPolicy";
        errors.push(FieldError::unsupported(path, policy, &["AlwaysAllow", "IfHealthyBudget"]));
    }
    errors
}
