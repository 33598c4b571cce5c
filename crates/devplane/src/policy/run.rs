//! What policies say of a write. Never here: how it is written down.

use serde_json::{Value, json};

use super::GROUP;
use super::read::{Policy, Reason, Validation};
use crate::admission::{Attributes, Reach, all_hold, request};
use crate::schema::{Inputs, Scene};
use crate::status::ApiError;

/// Kinds that no policy is asked about: it could never be corrected.
const POLICIES: [&str; 4] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
];

/// Longest message that an expression may make. Source: the API server of Kubernetes.
const MESSAGE: usize = 5 << 10;

/// Something that a policy does not like.
struct Finding {
    message: String,
    reason: Reason,
}

/// What a policy does not like about a write.
#[derive(Default)]
struct Findings {
    /// Bindings say what follows from these.
    refused: Vec<Finding>,
    /// This one is always a refusal.
    unnoted: Option<Finding>,
}

/// Asks all policies about a write of a new object and its state before. Returns warnings.
pub(crate) fn judge(
    policies: &[Policy],
    attributes: &Attributes<'_>,
    objects: [Option<&Value>; 2],
) -> Result<Vec<String>, ApiError> {
    let [group, _, plural] = attributes.resource;
    if group == GROUP && POLICIES.contains(&plural) {
        return Ok(Vec::new());
    }
    let concerned = policies.iter().filter(|policy| policy.reach.covers(attributes, objects));
    let mut concerned = concerned.peekable();
    if concerned.peek().is_none() {
        return Ok(Vec::new());
    }
    let request = Value::Object(request(attributes));
    let home = attributes.home.filter(|_| (group, plural) != ("", "namespaces"));
    let home = home.map(|home| home.value()).unwrap_or_default();
    let inputs = Inputs::new(objects, &request, &home);
    let mut warnings = Vec::new();
    let mut refusal = None;
    for policy in concerned {
        let applies =
            |reach: &Option<Reach>| reach.as_ref().is_none_or(|reach| reach.covers(attributes, objects));
        let mut bindings = policy.bindings.iter().filter(|binding| applies(&binding.reach)).peekable();
        if bindings.peek().is_none() {
            continue;
        }
        let findings = policy.findings(&inputs);
        for binding in bindings {
            let names =
                format!("ValidatingAdmissionPolicy '{}' with binding '{}'", policy.name, binding.name);
            if binding.warns {
                let refused = findings.refused.iter();
                let texts = refused.map(|found| format!("Validation failed for {names}: {}", found.message));
                warnings.extend(texts);
            }
            let denied = findings.refused.first().filter(|_| binding.denies);
            if let Some(first) = denied.or(findings.unnoted.as_ref()) {
                refusal.get_or_insert_with(|| refused(attributes, &names, first));
            }
        }
    }
    refusal.map_or(Ok(warnings), Err)
}

/// The refusal: forbidden in words, and for the reason of the policy.
fn refused(attributes: &Attributes<'_>, names: &str, first: &Finding) -> ApiError {
    let why = format!("{names} denied request: {}", first.message);
    let (code, reason) = first.reason.words();
    let mut error = ApiError::forbidden(attributes.named(), &why);
    error.details.insert("causes".into(), json!([{ "message": why }]));
    ApiError { code, reason: reason.into(), ..error }
}

impl Policy {
    fn findings(&self, inputs: &Inputs<'_>) -> Findings {
        let failure =
            |message| (!self.ignores_failure).then_some(Finding { message, reason: Reason::Invalid });
        let variables = self.variables.iter().map(|(name, expression)| (name.as_str(), expression));
        let scene = Scene::new(inputs, variables);
        match all_hold(&self.conditions, &scene) {
            Ok(true) => {}
            Ok(false) => return Findings::default(),
            Err(why) => return Findings { refused: failure(why).into_iter().collect(), unnoted: None },
        }
        let found =
            self.validations.iter().filter_map(|validation| match scene.holds(&validation.expression) {
                Ok(true) => None,
                Ok(false) => Some(Finding { message: validation.says(&scene), reason: validation.reason }),
                Err(why) => failure(why),
            });
        Findings { refused: found.collect(), unnoted: self.unnoted(&scene) }
    }

    /// The first note for an audit log that cannot be made, if that is a failure.
    fn unnoted(&self, scene: &Scene<'_>) -> Option<Finding> {
        let mut failures = self.notes.iter().filter_map(|note| scene.text(note).err());
        let message = failures.next().filter(|_| !self.ignores_failure)?;
        Some(Finding { message, reason: Reason::Invalid })
    }
}

impl Validation {
    /// What is said where it is not true.
    fn says(&self, scene: &Scene<'_>) -> String {
        let made = self.message_expression.as_ref().and_then(|made| scene.text(made).ok().flatten());
        let made = made.map(|text| text.trim().to_owned());
        let made = made.filter(|text| !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE);
        match made {
            Some(text) => text,
            None if self.message.is_empty() => {
                format!("failed expression: {}", self.expression.text().trim())
            }
            None => self.message.clone(),
        }
    }
}
