//! What policies and webhooks are told about a request. Never here: which of them there are, and what they say.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{self, Attributes, Cache, Phase, Site};
use crate::kinds::Scale;
use crate::protobuf::Expected;
use crate::query::Validation;
use crate::status::ApiError;
use crate::storage::{Key, Object};
use crate::verbs::{Call, scale};
use crate::{negotiate, policy};

pub(crate) use crate::admission::Operation;

/// Lets webhooks change an object. Returns it with their warnings.
pub(crate) async fn mutate(
    call: &Call<'_>,
    operation: Operation,
    old: Option<&Value>,
    new: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let name = name(call, operation, Some(&new));
    let Some(site) = site(call, Phase::Mutating) else { return Ok((new, Vec::new())) };
    let home = home(call, &name);
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

/// Lets policies and then webhooks refuse a change. Returns their warnings.
pub(crate) async fn validate(
    call: &Call<'_>,
    operation: Operation,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Vec<String>, ApiError> {
    let name = name(call, operation, new);
    let policies = policy::Cache::policies(&mut call.plane.lock());
    let hooks = site(call, Phase::Validating);
    if policies.is_empty() && hooks.is_none() {
        return Ok(Vec::new());
    }
    let home = home(call, &name);
    let attributes = attributes(call, operation, &name, home.as_deref());
    let shown =
        scale(call).map(|scale| [new, old].map(|object| object.map(|object| scale::scale(scale, object))));
    let objects = shown.as_ref().map_or([new, old], |shown| shown.each_ref().map(Option::as_ref));
    let mut warnings = policy::judge(&policies, &attributes, objects)?;
    if let Some(site) = hooks {
        let [new, old] = objects;
        warnings.extend(admission::validate(&site, &attributes, old, new).await?);
    }
    Ok(warnings)
}

/// Where the numbers are, if the request is about the scale.
fn scale<'a>(call: &'a Call<'_>) -> Option<&'a Scale> {
    call.kind.scale.as_ref().filter(|_| subresource(call) == "scale")
}

/// The webhooks of a phase; `None` without webhooks, as there mostly are none.
fn site<'a>(call: &'a Call<'_>, phase: Phase) -> Option<Site<'a>> {
    let mut state = call.plane.lock();
    let hooks = Cache::hooks(&mut state, phase);
    if hooks.is_empty() {
        return None;
    }
    let has_schema = matches!(subresource(call), "" | "status");
    Some(Site {
        hooks,
        caller: state.caller.clone(),
        environment: state.environment.clone(),
        schema: has_schema.then_some(&*call.kind.schema),
    })
}

/// The namespace of the request.
fn home(call: &Call<'_>, name: &str) -> Option<Arc<Object>> {
    let state = call.plane.lock();
    let kind = state.kinds.resource("", "v1", "namespaces")?;
    let key = Key { namespace: String::new(), name: namespace(call, name).to_owned() };
    state.storage.get(&kind.bucket, &key).cloned()
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
            "token" => ["authentication.k8s.io", "v1", "TokenRequest"],
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
