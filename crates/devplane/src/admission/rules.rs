//! What writes a webhook is for. Never here: selectors, conditions.

use serde_json::Value;

use super::{Attributes, Operation};

const ANY: &str = "*";

/// A rule of a webhook.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Any,
    Cluster,
    Namespaced,
}

impl Rule {
    pub(super) fn parse(rule: &Value) -> Rule {
        let list = |name: &str| -> Vec<String> {
            let items = rule[name].as_array().into_iter().flatten();
            items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let split = |text: String| match text.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (text, String::new()),
        };
        Rule {
            operations: list("operations"),
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources").into_iter().map(split).collect(),
            scope: match rule["scope"].as_str() {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                Some(_) | None => Scope::Any,
            },
        }
    }

    pub(super) fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let Attributes { operation, resource: [group, version, plural], subresource, .. } = attributes;
        let has = |list: &[String], wanted: &str| list.iter().any(|item| item == ANY || item == wanted);
        let is_meant = |(resource, sub): &(String, String)| {
            (resource == ANY || resource == plural) && (sub == ANY || sub == subresource)
        };
        // A namespace has no namespace, although it is in the one that it is.
        let is_namespaced = !attributes.namespace.is_empty() && *plural != "namespaces";
        let in_scope = match self.scope {
            Scope::Any => true,
            Scope::Cluster => !is_namespaced,
            Scope::Namespaced => is_namespaced,
        };
        in_scope
            && has(&self.operations, Operation::word(*operation))
            && has(&self.groups, group)
            && has(&self.versions, version)
            && self.resources.iter().any(is_meant)
    }
}
