//! What writes a webhook or a policy is for. Never here: conditions.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{Attributes, Operation};
use crate::selector::Labels;

const ANY: &str = "*";

/// The writes that something is for.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// `None`: all of them.
    rules: Option<Vec<Rule>>,
    excluded: Vec<Rule>,
    /// A selector that cannot be read selects nothing.
    namespaces: Option<Labels>,
    objects: Option<Labels>,
}

/// A rule of a webhook or a policy.
#[derive(Clone, Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Names of objects; empty means all.
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Any,
    Cluster,
    Namespaced,
}

impl Reach {
    /// That of a webhook.
    pub(crate) fn of_webhook(webhook: &Value) -> Reach {
        Reach { rules: Some(rules(&webhook["rules"])), ..Reach::of_selectors(webhook) }
    }

    /// That of `MatchResources`, in which no rules stand for all writes.
    pub(crate) fn of_resources(resources: &Value) -> Reach {
        Reach {
            rules: Some(rules(&resources["resourceRules"])).filter(|rules| !rules.is_empty()),
            excluded: rules(&resources["excludeResourceRules"]),
            ..Reach::of_selectors(resources)
        }
    }

    fn of_selectors(value: &Value) -> Reach {
        Reach {
            rules: None,
            excluded: Vec::new(),
            namespaces: selector(&value["namespaceSelector"]),
            objects: selector(&value["objectSelector"]),
        }
    }

    /// Whether a write is in it, of a new object and its state before.
    pub(crate) fn covers(&self, attributes: &Attributes<'_>, objects: [Option<&Value>; 2]) -> bool {
        let has = |rules: &[Rule]| rules.iter().any(|rule| rule.matches(attributes));
        if !self.rules.as_deref().is_none_or(has) || has(&self.excluded) {
            return false;
        }
        let is_home = |labels: &Labels| match (attributes.resource, objects) {
            // A namespace that is written decides by the labels that it is given.
            (["", _, "namespaces"], [Some(new), _]) if attributes.subresource.is_empty() => {
                labels.matches(&labels_of(new))
            }
            _ if attributes.namespace.is_empty() => true,
            _ => labels.matches(attributes.home.map_or(&[], |home| &home.labels)),
        };
        let is_one = |labels: &Labels| {
            labels.is_empty() || objects.iter().flatten().any(|object| labels.matches(&labels_of(object)))
        };
        self.namespaces.as_ref().is_some_and(is_home) && self.objects.as_ref().is_some_and(is_one)
    }
}

fn rules(list: &Value) -> Vec<Rule> {
    list.as_array().into_iter().flatten().map(Rule::parse).collect()
}

fn selector(value: &Value) -> Option<Labels> {
    Labels::of_object(if value.is_null() { &EVERYTHING } else { value })
}

static EVERYTHING: LazyLock<Value> = LazyLock::new(|| json!({}));

fn labels_of(object: &Value) -> Vec<(String, String)> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

impl Rule {
    fn parse(rule: &Value) -> Rule {
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
            names: list("resourceNames"),
        }
    }

    fn matches(&self, attributes: &Attributes<'_>) -> bool {
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
        let is_named = self.names.is_empty() || self.names.iter().any(|name| name == attributes.name);
        in_scope
            && is_named
            && has(&self.operations, Operation::word(*operation))
            && has(&self.groups, group)
            && has(&self.versions, version)
            && self.resources.iter().any(is_meant)
    }
}
