//! Events and leases: what is refused of them. Never here: the two forms of an event.

use serde_json::Value;

use crate::kinds::Kind;
use crate::kinds::event::GROUP;
use crate::metadata;
use crate::status::FieldError;

/// What is wrong with an event.
pub(super) fn event(kind: &Kind, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let is_new_form = kind.group == GROUP;
    let mut errors = Vec::new();
    let about = &new[if is_new_form { "regarding" } else { "involvedObject" }]["namespace"];
    let about = about.as_str().unwrap_or_default();
    let namespace = new["metadata"]["namespace"].as_str().unwrap_or_default();
    let has_time = !new["eventTime"].is_null();
    // Who says when it was may speak of other namespaces.
    let is_right =
        about == namespace || (about.is_empty() && namespace == "default") || (has_time && !about.is_empty());
    if !is_right {
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid("involvedObject.namespace", &about.into(), detail));
    }
    if old.is_some() {
        return errors;
    }
    if is_new_form && !has_time {
        errors.push(FieldError::required("eventTime", ""));
    }
    if has_time {
        check_reporter(kind, new, &mut errors);
    }
    let given = new["type"].as_str().unwrap_or_default();
    if (is_new_form || has_time) && !matches!(given, "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", &"".into(), format!("has invalid value: {given}")));
    }
    errors
}

/// Who says when something was also says who he is, and what he did.
fn check_reporter(kind: &Kind, new: &Value, errors: &mut Vec<FieldError>) {
    let controller = if kind.group == GROUP { "reportingController" } else { "reportingComponent" };
    let text = |field: &str| new[field].as_str().unwrap_or_default();
    if text(controller).is_empty() {
        errors.push(FieldError::required(controller, ""));
    }
    for complaint in metadata::key_complaints(text(controller)) {
        errors.push(FieldError::invalid(controller, &text(controller).into(), complaint));
    }
    for field in ["reportingInstance", "action", "reason"] {
        if text(field).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
}

/// What is wrong with a lease.
pub(super) fn lease(new: &Value) -> Vec<FieldError> {
    let rows = [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ];
    let mut errors = Vec::new();
    for (field, least, detail) in rows {
        if new["spec"][field].as_i64().is_some_and(|number| number < least) {
            errors.push(FieldError::invalid(format!("spec.{field}"), &new["spec"][field], detail));
        }
    }
    errors
}
