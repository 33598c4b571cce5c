//! The webhooks there are, read once for each change of their configurations. Never here: calling them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::rules::Reach;
use super::{Attributes, ServiceReference};
use crate::schema::{Expression, Inputs, Scene, Scope, Wanted};
use crate::state::State;

/// Group of the configurations themselves, which no webhook is asked about: it could never be corrected.
const GROUP: &str = "admissionregistration.k8s.io";

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
    reach: Reach,
    conditions: Conditions,
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
            reach: Reach::of_webhook(webhook),
            conditions: conditions(webhook),
        }
    }

    /// Whether a write concerns this webhook, but for its conditions.
    pub(super) fn concerns(&self, attributes: &Attributes<'_>, objects: [Option<&Value>; 2]) -> bool {
        attributes.resource[0] != GROUP && self.reach.covers(attributes, objects)
    }

    /// Whether all conditions hold, or why that cannot be said of one while none is false.
    pub(super) fn is_wanted(&self, inputs: &Inputs<'_>) -> Result<bool, String> {
        all_hold(&self.conditions, &Scene::new(inputs, []))
    }

    pub(super) fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }
}

/// Conditions as they are kept. Those that make no sense are refused when they are written; should one be here, it fails.
pub(crate) type Conditions = Vec<Result<Expression, String>>;

/// The conditions of a webhook or a policy.
pub(crate) fn conditions(value: &Value) -> Conditions {
    let list = value["matchConditions"].as_array().into_iter().flatten();
    let texts = list.map(|condition| condition["expression"].as_str().unwrap_or_default());
    texts.map(|text| Expression::parse(text.trim(), &Scope::of_requests(), Wanted::Bool)).collect()
}

/// Whether all conditions hold, or why that cannot be said of one while none is false.
pub(crate) fn all_hold(conditions: &[Result<Expression, String>], scene: &Scene<'_>) -> Result<bool, String> {
    let mut failure = None;
    for condition in conditions {
        match condition.as_ref().map_err(Clone::clone).and_then(|condition| scene.holds(condition)) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    failure.map_or(Ok(true), Err)
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
