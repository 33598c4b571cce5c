//! Nodes: what may not change of one, and what its taints may be. Never here: which taints it is given.

use serde_json::Value;

use crate::metadata;
use crate::status::{Fault, FieldError};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with a node.
pub(super) fn check(old: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let taints = spec["taints"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, taint) in taints.iter().enumerate() {
        check_taint(&format!("metadata.taints[{at}]"), taint, &taints[..at], &mut errors);
    }
    let Some(old) = old.map(|old| &old["spec"]) else { return errors };
    for (field, path, named) in
        [("podCIDRs", "spec.podCIDRs", "podCIDR"), ("providerID", "spec.providerID", "providerID")]
    {
        if !old[field].is_null() && old[field] != spec[field] {
            let detail = format!("node updates may not change {named} except from \"\" to valid");
            errors.push(FieldError::forbidden(path, detail));
        }
    }
    errors
}

fn check_taint(path: &str, taint: &Value, before: &[Value], errors: &mut Vec<FieldError>) {
    let text = |field: &str| taint[field].as_str().unwrap_or_default();
    for complaint in metadata::key_complaints(text("key")) {
        errors.push(FieldError::invalid(format!("{path}.key"), &taint["key"], complaint));
    }
    if !metadata::is_label_value(text("value")) {
        errors.push(FieldError::invalid(format!("{path}.value"), &taint["value"], metadata::LABEL_VALUE));
    }
    match text("effect") {
        "" => errors.push(FieldError::required(format!("{path}.effect"), "")),
        effect if !EFFECTS.contains(&effect) => {
            errors.push(FieldError::unsupported(format!("{path}.effect"), &taint["effect"], &EFFECTS));
        }
        _ => {}
    }
    let is_same = |other: &Value| other["key"] == taint["key"] && other["effect"] == taint["effect"];
    if before.iter().any(is_same) {
        errors.push(FieldError {
            fault: Fault::Duplicate,
            path: path.into(),
            value: format!(
                "{{\"Key\":{},\"Value\":{:?},\"Effect\":{},\"TimeAdded\":{}}}",
                taint["key"],
                text("value"),
                taint["effect"],
                taint["timeAdded"]
            ),
            detail: "taints must be unique by key and effect pair".into(),
        });
    }
}
