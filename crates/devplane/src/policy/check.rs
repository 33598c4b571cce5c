//! What is wrong with a policy or a binding. Never here: what its schema says.

use std::collections::BTreeSet;

use serde_json::Value;

use super::read::parse;
use crate::admission::{check_conditions, check_rule, check_word};
use crate::schema::names::{qualified, subdomain_1123};
use crate::selector::Labels;
use crate::status::{Fault, FieldError};

/// Checks a policy.
pub(crate) fn check(policy: &Value) -> Vec<FieldError> {
    let spec = &policy["spec"];
    let mut errors = Vec::new();
    check_word(&spec["failurePolicy"], "spec.failurePolicy", &["Fail", "Ignore"], &mut errors);
    if !spec["paramKind"].is_null() {
        let detail = "policies with parameters are not served here";
        errors.push(FieldError::forbidden("spec.paramKind", detail));
    }
    let (resources, path) = (&spec["matchConstraints"], "spec.matchConstraints");
    if resources.is_null() {
        errors.push(FieldError::required(path, ""));
    } else {
        check_resources(resources, path, &mut errors);
        if is_empty(&resources["resourceRules"]) {
            errors.push(FieldError::required(format!("{path}.resourceRules"), ""));
        }
    }
    check_conditions(spec, "spec", &mut errors);
    if is_empty(&spec["validations"]) && is_empty(&spec["auditAnnotations"]) {
        for field in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(FieldError::required(format!("spec.{field}"), detail));
        }
    }
    for (at, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        check_validation(validation, &format!("spec.validations[{at}]"), &mut errors);
    }
    for (at, note) in spec["auditAnnotations"].as_array().into_iter().flatten().enumerate() {
        let key = note["key"].as_str().unwrap_or_default();
        let key = format!("{}/{key}", policy["metadata"]["name"].as_str().unwrap_or_default());
        let path = format!("spec.auditAnnotations[{at}].key");
        errors.extend(
            qualified(&key).into_iter().map(|why| FieldError::invalid(&*path, &key.as_str().into(), why)),
        );
    }
    // Expressions may name parameters, about which enough is said.
    if spec["paramKind"].is_null() {
        errors.extend(parse(policy).1);
    }
    errors
}

/// Checks a binding.
pub(crate) fn check_binding(binding: &Value) -> Vec<FieldError> {
    let spec = &binding["spec"];
    let mut errors = Vec::new();
    let name = spec["policyName"].as_str().unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::required("spec.policyName", ""));
    } else {
        let wrong = subdomain_1123(name);
        errors.extend(wrong.into_iter().map(|why| FieldError::invalid("spec.policyName", &name.into(), why)));
    }
    if spec["paramRef"].is_object() && spec["paramRef"]["parameterNotFoundAction"].is_null() {
        errors.push(FieldError::required("spec.paramRef.parameterNotFoundAction", ""));
    }
    if spec["matchResources"].is_object() {
        check_resources(&spec["matchResources"], "spec.matchResources", &mut errors);
    }
    check_actions(&spec["validationActions"], "spec.validationActions", &mut errors);
    errors
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

fn check_validation(validation: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let message = &validation["message"];
    let text = message.as_str().unwrap_or_default();
    if !text.is_empty() && text.trim().is_empty() {
        errors.push(FieldError::invalid(
            format!("{path}.message"),
            message,
            "must be non-empty if specified",
        ));
    } else if text.trim().contains('\n') {
        errors.push(FieldError::invalid(format!("{path}.message"), message, "must not contain line breaks"));
    }
    let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
    check_word(&validation["reason"], &format!("{path}.reason"), &reasons, errors);
}

fn check_resources(resources: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let policies = ["Equivalent", "Exact"];
    check_word(&resources["matchPolicy"], &format!("{path}.matchPolicy"), &policies, errors);
    for field in ["namespaceSelector", "objectSelector"] {
        let selector = &resources[field];
        if !selector.is_null() && Labels::of_object(selector).is_none() {
            let detail = "must be a selector that can be read";
            errors.push(FieldError::invalid(format!("{path}.{field}"), selector, detail));
        }
        for (key, _) in selector["matchLabels"].as_object().into_iter().flatten() {
            let path = format!("{path}.{field}.matchLabels");
            errors.extend(
                qualified(key).into_iter().map(|why| FieldError::invalid(&*path, &key.as_str().into(), why)),
            );
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        for (at, rule) in resources[field].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{field}[{at}]");
            check_rule(rule, &path, errors);
            check_duplicates(&rule["resourceNames"], &format!("{path}.resourceNames"), errors);
        }
    }
}

fn check_actions(actions: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let list = actions.as_array().map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
    for (at, action) in list.iter().enumerate() {
        check_word(action, &format!("{path}[{at}]"), &["Audit", "Deny", "Warn"], errors);
    }
    check_duplicates(actions, path, errors);
    if ["Deny", "Warn"].iter().all(|action| list.iter().any(|given| given == action)) {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, actions, detail));
    }
}

fn check_duplicates(list: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (at, item) in list.as_array().into_iter().flatten().enumerate() {
        if !seen.insert(item.as_str().unwrap_or_default()) {
            errors.push(FieldError::new(Fault::Duplicate, format!("{path}[{at}]"), item, ""));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule() -> Value {
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] })
    }

    /// What is wrong with a policy whose specification is changed so.
    fn complaints(change: Value) -> Vec<String> {
        let mut spec = json!({
            "matchConstraints": { "resourceRules": [rule()] }, "validations": [{ "expression": "true" }],
        });
        json_patch::merge(&mut spec, &change);
        let errors = check(&json!({ "metadata": { "name": "p" }, "spec": spec }));
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_policy_that_makes_no_sense_is_refused() {
        let one = "validations or auditAnnotations must contain at least one item";
        let nothing: Vec<String> = ["validations", "auditAnnotations"]
            .map(|field| format!("spec.{field}: Required value: {one}"))
            .into();
        assert_eq!(complaints(json!({ "validations": [] })), nothing);
        let variables = json!([{ "name": "a", "expression": "1" }]);
        let rows = [
            (json!({ "matchConstraints": null }), "spec.matchConstraints: Required value"),
            (
                json!({ "matchConstraints": { "resourceRules": [] } }),
                "spec.matchConstraints.resourceRules: Required value",
            ),
            (
                json!({ "failurePolicy": "X" }),
                "spec.failurePolicy: Unsupported value: \"X\": supported values: \"Fail\", \"Ignore\"",
            ),
            (
                json!({ "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" }, "validations": [{ "expression": "params.a" }] }),
                "spec.paramKind: Forbidden: policies with parameters are not served here",
            ),
            (
                json!({ "variables": [{ "name": "if", "expression": "1" }] }),
                "spec.variables[0].name: Invalid value: \"if\": must be a valid CEL identifier",
            ),
            (
                json!({ "auditAnnotations": [{ "key": "k", "valueExpression": "1" }] }),
                "spec.auditAnnotations[0].valueExpression: Invalid value: \"1\": must evaluate to one of [string null_type] but got int",
            ),
            (
                json!({ "validations": [{ "expression": "true", "message": "a\nb" }] }),
                "spec.validations[0].message: Invalid value: \"a\\nb\": must not contain line breaks",
            ),
            (
                json!({ "validations": [{ "expression": "true", "messageExpression": "object.a" }] }),
                "spec.validations[0].messageExpression: Invalid value: \"object.a\": must evaluate to string but got dyn",
            ),
            (
                json!({ "validations": [{ "expression": "true", "reason": "NotFound" }] }),
                "spec.validations[0].reason: Unsupported value: \"NotFound\": supported values: \"Forbidden\", \"Invalid\", \
                 \"RequestEntityTooLarge\"",
            ),
            (
                json!({ "variables": variables, "validations": [{ "expression": "variables.b" }] }),
                "spec.validations[0].expression: Invalid value: \"variables.b\": compilation failed: ERROR: <input>:1:10: \
                 undefined field 'b'\n | variables.b\n | .........^",
            ),
        ];
        for (change, expected) in rows {
            assert_eq!(complaints(change), [expected]);
        }
    }

    #[test]
    fn an_expression_that_makes_no_sense_is_refused_and_told() {
        let at = |column: usize, why: &str| format!("compilation failed: ERROR: <input>:1:{column}: {why}");
        let rows = [
            ("", "Required value: expression is not specified".to_owned()),
            ("1", "must evaluate to bool but got int".to_owned()),
            ("object.a", "must evaluate to bool but got dyn".to_owned()),
            ("foo", at(1, "undeclared reference to 'foo' (in container '')")),
            ("params.a == 1", at(1, "undeclared reference to 'params' (in container '')")),
            ("variables.a", at(1, "undeclared reference to 'variables' (in container '')")),
            ("request.foo == 1", at(8, "undefined field 'foo'")),
            ("request.kind.foo == 1", at(13, "undefined field 'foo'")),
            ("namespaceObject.metadata.uid == 'a'", at(25, "undefined field 'uid'")),
            (
                "request.operation == 1",
                at(19, "found no matching overload for '_==_' applied to '(string, int)'"),
            ),
            ("quantity('1') == quantity('2')", at(9, "undeclared reference to 'quantity' (in container '')")),
        ];
        for (text, why) in rows {
            let found = complaints(json!({ "validations": [{ "expression": text }] }));
            let [found] = &*found else { panic!("{text}: {found:?}") };
            assert!(found.starts_with("spec.validations[0].expression: "), "{found}");
            assert!(found.contains(&why), "{found}");
        }
        for text in [
            "object == null || has(object.spec.a)",
            "request.userInfo.extra['a'] == ['b']",
            "request.options.fieldManager == 'a'",
            "namespaceObject.metadata.labels['a'] == oldObject.x",
            "object.items.exists(i, i.a == 1)",
        ] {
            assert_eq!(complaints(json!({ "validations": [{ "expression": text }] })), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_binding_that_makes_no_sense_is_refused() {
        let rows = [
            (json!({ "policyName": "" }), "spec.policyName: Required value"),
            (
                json!({ "validationActions": [] }),
                "spec.validationActions: Required value: at least one validation action is required",
            ),
            (
                json!({ "validationActions": ["X"] }),
                "spec.validationActions[0]: Unsupported value: \"X\": supported values: \"Audit\", \"Deny\", \"Warn\"",
            ),
            (
                json!({ "validationActions": ["Deny", "Deny"] }),
                "spec.validationActions[1]: Duplicate value: \"Deny\"",
            ),
            (
                json!({ "validationActions": ["Deny", "Warn"] }),
                "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the \
                 same validation failure information in the API response and headers serves no purpose)",
            ),
            (json!({ "paramRef": { "name": "x" } }), "spec.paramRef.parameterNotFoundAction: Required value"),
        ];
        for (change, expected) in rows {
            let mut spec = json!({ "policyName": "p", "validationActions": ["Deny"] });
            json_patch::merge(&mut spec, &change);
            let errors = check_binding(&json!({ "spec": spec }));
            assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        }
    }
}
