//! Repairs by somebody else: a request is made from a template for each sick Machine, and deleted when it is well again.
//! Never here: whether repairs are allowed.

use std::collections::BTreeMap;

use mapi_api::condition::{self, Condition, severity};
use mapi_api::event::EventType;
use mapi_api::machine_health_check::MachineHealthCheckStatus;
use mapi_api::names::{self, annotation, condition as types, reason};
use mapi_api::{Conditions, Key, Object};
use serde_json::{Map, Value, json};

use super::assess::is_left_alone;
use super::{Assessment, Facts, Request, Requests, Target, Template, TemplateRef, about_check, status};
use crate::{Action, Plan};

/// The template, if the pass needs it: to make requests from it, or because the status does not say yet that it is there.
/// So a misspelt name shows before the first machine is sick.
pub(super) fn wanted_template<'f>(facts: &Facts<'f>, assessment: &Assessment) -> Option<&'f TemplateRef> {
    let reference = facts.settings.template.as_ref().filter(|_| !assessment.is_restricted())?;
    let is_known = facts.check.status.conditions.is_true(types::TEMPLATE_AVAILABLE);
    (!is_known || due(facts, assessment).next().is_some()).then_some(reference)
}

/// The pass of a check with a template, after the actions that every pass has.
pub(super) fn plan(
    facts: &Facts<'_>,
    assessment: &Assessment,
    reference: &TemplateRef,
    template: Option<&Template>,
    mut actions: Vec<Action>,
) -> Plan {
    let content = template.map(|template| content_of(facts, reference, template));
    let mut wanted = status::allowed(facts, assessment);
    match &content {
        None => {}
        Some(Ok(_)) => {
            condition::set(&mut wanted.conditions, Condition::yes(types::TEMPLATE_AVAILABLE), facts.now);
        }
        Some(Err(message)) => {
            let missing = Condition::no(
                types::TEMPLATE_AVAILABLE,
                severity::ERROR,
                reason::TEMPLATE_NOT_FOUND,
                message.as_str(),
            );
            condition::set(&mut wanted.conditions, missing, facts.now);
        }
    }
    describe_requests(facts, assessment, &mut wanted);
    actions.extend(status::write(facts.check, &facts.check.status, &wanted));
    let error = match content {
        Some(Ok(content)) => {
            actions.extend(create(facts, assessment, reference, content, &wanted));
            None
        }
        Some(Err(message)) => Some(message),
        None => None,
    };
    actions.extend(clean_up(facts, assessment));
    let plan = Plan::actions(actions);
    match (error, facts.requests) {
        (Some(error), _) => plan.backoff(error),
        (None, Requests::Unreadable(error)) => plan.backoff(unreadable(reference, error)),
        (None, Requests::Known(_) | Requests::Unused) => plan,
    }
}

/// Deletes the requests of healthy Machines, unless somebody else made them. Also while repairs are stopped.
pub(super) fn clean_up(facts: &Facts<'_>, assessment: &Assessment) -> Option<Action> {
    let reference = facts.settings.template.as_ref()?;
    let deletions =
        assessment.healthy(facts).filter(|target| !is_left_alone(facts, target)).filter_map(|target| {
            let request = known(facts)?.get(target.machine.name())?;
            let is_ours = request.owners.iter().any(|uid| uid == target.machine.uid());
            (is_ours && !request.is_deleting).then(|| Action::DeleteRequest {
                api_version: reference.api_version.clone(),
                kind: reference.request_kind().into(),
                key: target.machine.key(),
                uid: request.uid.clone(),
            })
        });
    let deletions: Vec<Action> = deletions.collect();
    (!deletions.is_empty()).then_some(Action::Batch(deletions))
}

/// The targets for which a request is to be made: named like the Machine, it is there once, even while it is deleted.
fn due<'f>(facts: &'f Facts<'_>, assessment: &'f Assessment) -> impl Iterator<Item = &'f Target<'f>> {
    let requests = known(facts);
    let sick = assessment.repairs(facts).map(|(target, _)| target);
    sick.filter(move |target| requests.is_some_and(|known| !known.contains_key(target.machine.name())))
}

fn known<'f>(facts: &'f Facts<'_>) -> Option<&'f BTreeMap<String, Request>> {
    match facts.requests {
        Requests::Known(known) => Some(known),
        Requests::Unused | Requests::Unreadable(_) => None,
    }
}

/// What the condition about requests says before any is made. If some are due, making them tells.
fn describe_requests(facts: &Facts<'_>, assessment: &Assessment, wanted: &mut MachineHealthCheckStatus) {
    let Some(reference) = &facts.settings.template else { return };
    let condition = match facts.requests {
        Requests::Unreadable(error) => Some(failed(unreadable(reference, error))),
        Requests::Unused => None,
        Requests::Known(_) if due(facts, assessment).next().is_some() => return,
        Requests::Known(known) => {
            let mut sick = assessment.repairs(facts);
            let is_asked = sick.any(|(target, _)| known.contains_key(target.machine.name()));
            is_asked.then(|| Condition::yes(types::REQUEST_AVAILABLE))
        }
    };
    match condition {
        Some(condition) => {
            condition::set(&mut wanted.conditions, condition, facts.now);
        }
        // Nobody is waiting for a request any more, so that none could be made is no longer true of anything.
        None if !wanted.conditions.is_true(types::REQUEST_AVAILABLE) => {
            condition::remove(&mut wanted.conditions, types::REQUEST_AVAILABLE);
        }
        None => {}
    }
}

fn failed(message: String) -> Condition {
    Condition::no(types::REQUEST_AVAILABLE, severity::ERROR, reason::REQUEST_FAILED, message)
}

fn unreadable(reference: &TemplateRef, error: &str) -> String {
    format!("cannot read remediation requests of kind `{}`: {error}", reference.request_kind())
}

/// Makes the requests that are due, and tells how that went.
fn create(
    facts: &Facts<'_>,
    assessment: &Assessment,
    reference: &TemplateRef,
    content: &Map<String, Value>,
    before: &MachineHealthCheckStatus,
) -> Option<Action> {
    let due: Vec<&Target<'_>> = due(facts, assessment).collect();
    let creations: Vec<Action> = due
        .iter()
        .map(|target| Action::CreateRequest { object: request(reference, content, target) })
        .collect();
    if creations.is_empty() {
        return None;
    }
    let record = |condition| {
        let mut after = before.clone();
        condition::set(&mut after.conditions, condition, facts.now);
        status::write(facts.check, before, &after)
    };
    let names = due.iter().map(|target| format!("`{}`", target.machine.name())).collect::<Vec<_>>();
    let message = format!(
        "cannot create a remediation request of kind `{}` for every unhealthy machine, due are those of {}; \
         the event says why",
        reference.request_kind(),
        brief(&names)
    );
    let note = format!("cannot create remediation requests of kind `{}`", reference.request_kind());
    let event = about_check(facts.check, EventType::Warning, reason::REQUEST_FAILED, note);
    Some(Action::Try {
        action: Box::new(Action::Batch(creations)),
        success: record(Condition::yes(types::REQUEST_AVAILABLE)).into_iter().collect(),
        failure: std::iter::once(event).chain(record(failed(message))).collect(),
    })
}

/// Ten names at most: enough to find the trouble, and a condition stays readable.
fn brief(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(", …");
    }
    text
}

/// The content of requests, or what to tell the user.
fn content_of<'t>(
    facts: &Facts<'_>,
    reference: &TemplateRef,
    template: &'t Template,
) -> Result<&'t Map<String, Value>, String> {
    let TemplateRef { api_version: _, kind, name } = reference;
    let key = Key::new(&facts.check.key().namespace, name);
    match template {
        Template::Found(object) => object["spec"]["template"]
            .as_object()
            .ok_or_else(|| format!("remediation template `{key}` of kind `{kind}` has no spec.template")),
        Template::Missing => Err(format!("remediation template `{key}` of kind `{kind}` does not exist")),
        Template::Failed(error) => {
            Err(format!("cannot read remediation template `{key}` of kind `{kind}`: {error}"))
        }
    }
}

/// The request for a Machine: the template's content with a name, an owner and the template's name, and without what
/// only the server or another object may own.
fn request(reference: &TemplateRef, content: &Map<String, Value>, target: &Target<'_>) -> Value {
    let machine = target.machine;
    let mut object = content.clone();
    object.entry("apiVersion").or_insert_with(|| reference.api_version.as_str().into());
    object.entry("kind").or_insert_with(|| reference.request_kind().into());
    let given = content.get("metadata").unwrap_or(&Value::Null);
    let mut annotations = given["annotations"].as_object().cloned().unwrap_or_default();
    annotations.insert(annotation::CLONED_FROM_NAME.into(), reference.name.as_str().into());
    annotations.insert(annotation::CLONED_FROM_GROUP_KIND.into(), reference.group_kind().into());
    let mut metadata = json!({
        "name": machine.name(),
        "namespace": machine.metadata.namespace,
        "annotations": annotations,
        "ownerReferences": [{
            "apiVersion": names::API_VERSION,
            "kind": names::KIND_MACHINE,
            "name": machine.name(),
            "uid": machine.uid(),
        }],
    });
    if let Some(labels) = given.get("labels").filter(|labels| labels.is_object()) {
        metadata["labels"] = labels.clone();
    }
    object.insert("metadata".into(), metadata);
    object.into()
}
