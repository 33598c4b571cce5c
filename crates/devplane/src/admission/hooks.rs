//! The webhooks there are, read once for each change of their configurations. Never here: calling them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::rules::Rule;
use super::{Attributes, ServiceReference};
use crate::schema::Condition;
use crate::selector::Labels;
use crate::state::State;

/// Group of the configurations themselves, which no webhook is asked about: it could never be corrected.
const GROUP: &str = "admissionregistration.k8s.io";

/// What conditions may name.
pub(super) const VARIABLES: [&str; 4] = ["object", "oldObject", "request", "namespaceObject"];

/// When a webhook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Mutating,
    Validating,
}

/// A webhook of a configuration.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) service: Option<ServiceReference>,
    pub(super) ca: Vec<u8>,
    pub(super) timeout: Duration,
    /// Version of `AdmissionReview` that is sent.
    pub(super) version: &'static str,
    pub(super) ignores_failure: bool,
    pub(super) is_dry: bool,
    /// Whether it wants to be asked again when later webhooks changed the object.
    pub(super) reinvokes: bool,
    rules: Vec<Rule>,
    namespaces: Option<Labels>,
    objects: Option<Labels>,
    /// Conditions that make no sense are refused when they are written; should one be here, it fails.
    conditions: Vec<Result<Condition, String>>,
}

/// Webhooks as of some revisions of their configurations.
#[derive(Default)]
pub(crate) struct Cache {
    mutating: Kept,
    validating: Kept,
}

#[derive(Default)]
struct Kept {
    revisions: Vec<u64>,
    hooks: Arc<[Hook]>,
}

impl Cache {
    /// The webhooks of a phase as they are now, sorted by the names of their configurations.
    pub(crate) fn hooks(state: &mut State, phase: Phase) -> Arc<[Hook]> {
        let State { storage, kinds, webhooks, .. } = state;
        let (kept, plural) = match phase {
            Phase::Mutating => (&mut webhooks.mutating, "mutatingwebhookconfigurations"),
            Phase::Validating => (&mut webhooks.validating, "validatingwebhookconfigurations"),
        };
        let Some(kind) = kinds.resource(GROUP, "v1", plural) else { return Arc::default() };
        let objects = || storage.iter(&kind.bucket, None);
        if !objects().map(|object| object.revision).eq(kept.revisions.iter().copied()) {
            kept.revisions = objects().map(|object| object.revision).collect();
            kept.hooks = objects().flat_map(|object| hooks(&object.value(), phase)).collect();
        }
        kept.hooks.clone()
    }
}

fn hooks(configuration: &Value, phase: Phase) -> Vec<Hook> {
    let list = configuration["webhooks"].as_array().into_iter().flatten();
    list.map(|webhook| Hook::parse(webhook, phase)).collect()
}

impl Hook {
    fn parse(webhook: &Value, phase: Phase) -> Hook {
        let list = |name: &str| webhook[name].as_array().into_iter().flatten();
        let client = &webhook["clientConfig"];
        let timeout_s = webhook["timeoutSeconds"].as_u64().unwrap_or(10);
        let (url, service) = target(client);
        let ca = client["caBundle"].as_str().and_then(|text| STANDARD.decode(text).ok());
        let version = list("admissionReviewVersions").find_map(|version| match version.as_str() {
            Some("v1") => Some("v1"),
            Some("v1beta1") => Some("v1beta1"),
            Some(_) | None => None,
        });
        let conditions = list("matchConditions").map(|condition| {
            let text = condition["expression"].as_str().unwrap_or_default();
            Condition::parse(text.trim(), &VARIABLES)
        });
        Hook {
            name: webhook["name"].as_str().unwrap_or_default().to_owned(),
            url: format!("{url}?timeout={timeout_s}s"),
            service,
            ca: ca.unwrap_or_default(),
            timeout: Duration::from_secs(timeout_s),
            version: version.unwrap_or("v1"),
            ignores_failure: webhook["failurePolicy"] == "Ignore",
            is_dry: matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun")),
            reinvokes: phase == Phase::Mutating && webhook["reinvocationPolicy"] == "IfNeeded",
            rules: list("rules").map(Rule::parse).collect(),
            namespaces: selector(&webhook["namespaceSelector"]),
            objects: selector(&webhook["objectSelector"]),
            conditions: conditions.collect(),
        }
    }

    /// Whether a write concerns this webhook, but for its conditions.
    pub(super) fn concerns(&self, attributes: &Attributes<'_>, objects: [Option<&Value>; 2]) -> bool {
        if attributes.resource[0] == GROUP || !self.rules.iter().any(|rule| rule.matches(attributes)) {
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

    /// Whether all conditions hold, or why that cannot be said of one while none is false.
    pub(super) fn is_wanted(&self, variables: &[(&str, &Value)]) -> Result<bool, String> {
        let mut failure = None;
        for condition in &self.conditions {
            let holds =
                condition.as_ref().map_err(Clone::clone).and_then(|condition| condition.holds(variables));
            match holds {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(why) => failure = failure.or(Some(why)),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    pub(super) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }
}

fn selector(value: &Value) -> Option<Labels> {
    Labels::of_object(if value.is_null() { &EVERYTHING } else { value })
}

static EVERYTHING: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| json!({}));

fn labels_of(object: &Value) -> Vec<(String, String)> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// The address without its query, and the service.
fn target(client: &Value) -> (String, Option<ServiceReference>) {
    let service = &client["service"];
    if !service.is_object() {
        return (client["url"].as_str().unwrap_or_default().to_owned(), None);
    }
    let text = |name: &str| service[name].as_str().unwrap_or_default();
    let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
    let (namespace, name, path) = (text("namespace"), text("name"), text("path"));
    let url = format!("https://{name}.{namespace}.svc:{port}{path}");
    (url, Some(ServiceReference { namespace: namespace.to_owned(), name: name.to_owned(), port }))
}
