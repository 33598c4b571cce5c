//! What webhooks are told about a request. Never here: which webhooks there are, and how they are called.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{self, Attributes, Cache, Phase, Site};
use crate::kinds::Scale;
use crate::negotiate;
use crate::protobuf::Expected;
use crate::query::Validation;
use crate::status::ApiError;
use crate::storage::{Key, Object};
use crate::verbs::{Call, scale};

pub(crate) use crate::admission::Operation;

/// Lets webhooks change an object. Returns it with their warnings.
pub(crate) async fn mutate(
    call: &Call<'_>,
    operation: Operation,
    old: Option<&Value>,
    new: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let name = name(call, operation, Some(&new));
    let Some((site, home)) = site(call, Phase::Mutating, &name) else { return Ok((new, Vec::new())) };
    let attributes = attributes(call, operation, &name, home.as_deref());
    let Some(scale) = scale(call) else {
        return admission::mutate(&site, &attributes, old, new).await;
    };
    // Webhooks see the scale, and may change its number.
    let (shown, was) = (scale::scale(scale, &new), old.map(|old| scale::scale(scale, old)));
    let (changed, warnings) = admission::mutate(&site, &attributes, was.as_ref(), shown).await?;
    let mut new = new;
    scale::set(&mut new, &scale.spec_replicas, changed["spec"]["replicas"].clone());
    Ok((new, warnings))
}

/// Lets webhooks refuse a change. Returns their warnings.
pub(crate) async fn validate(
    call: &Call<'_>,
    operation: Operation,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Vec<String>, ApiError> {
    let name = name(call, operation, new);
    let Some((site, home)) = site(call, Phase::Validating, &name) else { return Ok(Vec::new()) };
    let attributes = attributes(call, operation, &name, home.as_deref());
    let Some(scale) = scale(call) else {
        return admission::validate(&site, &attributes, old, new).await;
    };
    let [old, new] = [old, new].map(|object| object.map(|object| scale::scale(scale, object)));
    admission::validate(&site, &attributes, old.as_ref(), new.as_ref()).await
}

/// Where the numbers are, if the request is about the scale.
fn scale<'a>(call: &'a Call<'_>) -> Option<&'a Scale> {
    call.kind.scale.as_ref().filter(|_| subresource(call) == "scale")
}

/// The webhooks of a phase and the namespace of the request; `None` without webhooks, as there mostly are none.
fn site<'a>(call: &'a Call<'_>, phase: Phase, name: &str) -> Option<(Site<'a>, Option<Arc<Object>>)> {
    let mut state = call.plane.lock();
    let hooks = Cache::hooks(&mut state, phase);
    if hooks.is_empty() {
        return None;
    }
    let namespaces = state.kinds.resource("", "v1", "namespaces");
    let key = Key { namespace: String::new(), name: namespace(call, name).to_owned() };
    let home = namespaces.and_then(|kind| state.storage.get(&kind.bucket, &key)).cloned();
    let has_schema = matches!(subresource(call), "" | "status");
    let site = Site {
        hooks,
        caller: state.caller.clone(),
        environment: state.environment.clone(),
        schema: has_schema.then_some(&*call.kind.schema),
    };
    Some((site, home))
}

fn attributes<'a>(
    call: &'a Call<'_>,
    operation: Operation,
    name: &'a str,
    home: Option<&'a Object>,
) -> Attributes<'a> {
    let kind = &call.kind;
    let (options, is_dry_run) = options(call, operation);
    Attributes {
        operation,
        kind: match subresource(call) {
            "eviction" => ["policy", "v1", "Eviction"],
            "scale" => ["autoscaling", "v1", "Scale"],
            _ => [&kind.group, &kind.version, &kind.kind],
        },
        resource: [&kind.group, &kind.version, &kind.plural],
        subresource: subresource(call),
        name,
        namespace: namespace(call, name),
        home,
        user: call.user,
        is_dry_run,
        options,
    }
}

fn subresource<'a>(call: &'a Call<'_>) -> &'a str {
    call.target.subresource.as_deref().unwrap_or_default()
}

/// The namespace of a request; a namespace is in itself.
fn namespace<'a>(call: &'a Call<'_>, name: &'a str) -> &'a str {
    if call.kind.group.is_empty() && call.kind.plural == "namespaces" {
        return name;
    }
    call.target.namespace.as_deref().unwrap_or_default()
}

/// The name of the object: that of a new one may have been generated.
fn name(call: &Call<'_>, operation: Operation, new: Option<&Value>) -> String {
    let given =
        new.and_then(|new| new["metadata"]["name"].as_str()).filter(|_| operation == Operation::Create);
    given.or(call.target.name.as_deref()).unwrap_or_default().to_owned()
}

/// The options of the request, and whether it is dry.
fn options(call: &Call<'_>, operation: Operation) -> (Value, bool) {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({});
    if operation == Operation::Delete
        && let Ok(given @ Value::Object(_)) =
            negotiate::body(call.content_type, call.body, Expected::DELETE_OPTIONS)
    {
        options = given;
    }
    options["kind"] = kind.into();
    options["apiVersion"] = "meta.k8s.io/v1".into();
    if call.query.is_dry_run {
        options["dryRun"] = json!(["All"]);
    }
    let validation = match call.query.validation {
        Validation::Ignore => "Ignore",
        Validation::Strict => "Strict",
        Validation::Warn => "",
    };
    let texts = [("fieldManager", &*call.query.manager), ("fieldValidation", validation)];
    for (field, text) in
        texts.into_iter().filter(|(_, text)| !text.is_empty() && operation != Operation::Delete)
    {
        options[field] = text.into();
    }
    let is_dry_run = options["dryRun"].as_array().is_some_and(|list| !list.is_empty());
    (options, is_dry_run)
}
