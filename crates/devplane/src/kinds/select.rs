//! What field selectors may name, and what they compare with. Never here: the syntax of selectors.

use serde_json::Value;

use super::{Kind, event};

/// What a field selector names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selected {
    /// `metadata.name`.
    Name,
    /// `metadata.namespace`.
    Namespace,
    /// One of [`Kind::selectable`].
    Field(&'static str),
}

impl Kind {
    /// What a field selector means by a label, or why it may not name it.
    pub(crate) fn selected(&self, label: &str) -> Result<Selected, String> {
        // Kinds without selectable fields of their own are selected by a general rule, which knows both always.
        let is_general = self.selectable.is_empty() && !self.is_custom();
        match label {
            "metadata.name" => return Ok(Selected::Name),
            "metadata.namespace" if self.namespaced || is_general => return Ok(Selected::Namespace),
            _ => {}
        }
        let path = if self.group == event::GROUP {
            event::stored_path(label)
        } else {
            self.selectable.iter().find(|path| **path == label).copied()
        };
        path.map(Selected::Field).ok_or_else(|| {
            if is_general {
                format!(
                    r#""{label}" is not a known field selector: only "metadata.name", "metadata.namespace""#
                )
            } else {
                format!("field label not supported: {label}")
            }
        })
    }
}

/// What a selector on one of [`Kind::selectable`] compares with: what is missing is empty, flags are off.
pub(crate) fn field(object: &Value, path: &str) -> String {
    match path {
        "source" => return event::source(object).to_owned(),
        // Selectors may name it, but no pod has any.
        "status.podIPs" => return String::new(),
        _ => {}
    }
    match path.split('.').fold(object, |value, name| &value[name]) {
        Value::Null if matches!(path, "spec.hostNetwork" | "spec.unschedulable") => "false".into(),
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn a_selector_may_name_what_its_kind_allows() {
        let unsupported = |label: &str| Err(format!("field label not supported: {label}"));
        let unknown = |label: &str| {
            Err(format!(
                r#""{label}" is not a known field selector: only "metadata.name", "metadata.namespace""#
            ))
        };
        let rows = [
            ("", "pods", "metadata.name", Ok(Selected::Name)),
            ("", "pods", "metadata.namespace", Ok(Selected::Namespace)),
            ("", "pods", "spec.nodeName", Ok(Selected::Field("spec.nodeName"))),
            ("", "pods", "spec.x", unsupported("spec.x")),
            ("", "nodes", "metadata.namespace", unsupported("metadata.namespace")),
            ("", "configmaps", "data", unknown("data")),
            ("rbac.authorization.k8s.io", "clusterroles", "metadata.namespace", Ok(Selected::Namespace)),
            ("", "events", "reportingComponent", Ok(Selected::Field("reportingComponent"))),
            ("", "events", "reportingController", unsupported("reportingController")),
            ("events.k8s.io", "events", "reportingController", Ok(Selected::Field("reportingComponent"))),
            ("events.k8s.io", "events", "regarding.uid", Ok(Selected::Field("involvedObject.uid"))),
            ("events.k8s.io", "events", "reason", Ok(Selected::Field("reason"))),
            ("events.k8s.io", "events", "source", unsupported("source")),
            ("events.k8s.io", "events", "involvedObject.uid", unsupported("involvedObject.uid")),
        ];
        let kinds = Kinds::new();
        for (group, plural, label, expected) in rows {
            let kind = kinds.resource(group, "v1", plural).unwrap();
            assert_eq!(kind.selected(label), expected, "{group} {plural} {label}");
        }
    }

    #[test]
    fn a_selector_compares_with_what_the_object_says() {
        let rows = [
            (json!({"spec": {"nodeName": "n"}}), "spec.nodeName", "n"),
            (json!({}), "spec.nodeName", ""),
            (json!({}), "spec.hostNetwork", "false"),
            (json!({"spec": {"unschedulable": true}}), "spec.unschedulable", "true"),
            (json!({"source": {"component": "a"}, "reportingComponent": "b"}), "source", "a"),
            (json!({"source": {}, "reportingComponent": "b"}), "source", "b"),
            (json!({"status": {"podIPs": [{"ip": "10.0.0.1"}]}}), "status.podIPs", ""),
        ];
        for (object, path, expected) in rows {
            assert_eq!(field(&object, path), expected, "{path} of {object}");
        }
    }
}
