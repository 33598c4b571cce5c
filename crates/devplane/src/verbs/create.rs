//! Creating. Never here: rules of single kinds.

use serde_json::Value;

use super::{Call, Reply, changes};
use crate::environment::{seconds, suffix, uid};
use crate::loops::crds;
use crate::metadata::{self, SERVER_FIELDS};
use crate::state::State;
use crate::status::{ApiError, FieldError};
use crate::storage::Key;
use crate::{admit, strategy};

/// How long the first part of a generated name may be: five characters follow. Source: the API of Kubernetes.
const GENERATE_LIMIT: usize = 63 - 5;

/// How often a generated name is tried anew when it is taken. Source: the API server of Kubernetes.
const GENERATE_TRIES: usize = 8;

/// POST to a collection.
pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut value = changes::read_object(call)?;
    let warnings = changes::unknown_fields(call, &mut value, &changes::decoding(call))?;
    if let Some(text) = value["metadata"]["resourceVersion"].as_str()
        && !matches!(text, "" | "0")
    {
        return Err(ApiError::new(500, "", "resourceVersion should not be set on objects to be created"));
    }
    if metadata::object(&mut value).contains_key("managedFields") {
        metadata::object(&mut value).remove("managedFields");
    }
    new_object(call, value, Owners::Update).await.map(|reply| reply.warn(warnings))
}

/// How the owners of a new object's fields are noted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owners {
    /// As those of an update.
    Update,
    /// They are noted already.
    Applied,
}

/// Makes an object that was decoded and has no unknown fields.
pub(super) async fn new_object(call: &Call<'_>, mut value: Value, owners: Owners) -> Result<Reply, ApiError> {
    check_namespace(call, &mut value)?;
    let generates = prepare(call, &mut value)?;
    if owners == Owners::Update {
        // What admission changes after this is nobody's.
        changes::note_owners(call, None, &mut value);
    }
    strategy::admit(&call.kind, &call.plane.lock(), None, &mut value)?;
    let (admitted, warnings) = admit::mutate(call, admit::Operation::Create, None, value).await?;
    value = admitted;
    strategy::prepare_create(&call.kind, &call.plane.lock(), &mut value);
    for attempt in 1..=GENERATE_TRIES {
        let odd = changes::validate(call, None, &value)?;
        let from_webhooks = admit::validate(call, admit::Operation::Create, None, Some(&value)).await?;
        let stored = store(call, &value);
        match stored {
            Err(error) if error.reason == "AlreadyExists" && generates && attempt < GENERATE_TRIES => {
                generate_name(call, &mut value)
            }
            Err(error) => return Err(error),
            Ok(value) => {
                changes::settle(call);
                return Ok(call.reply(201, &value).warn([warnings, odd, from_webhooks].concat()));
            }
        }
    }
    Err(ApiError::already_exists(call.named(value["metadata"]["name"].as_str().unwrap_or_default())))
}

/// Fills in what the server decides. Says whether the name was generated.
fn prepare(call: &Call<'_>, value: &mut Value) -> Result<bool, ApiError> {
    let kind = &call.kind;
    let (now, uid) = {
        let state = call.plane.lock();
        (seconds(state.environment.now()), uid(&*state.environment))
    };
    if kind.has_status && !strategy::keeps_status_at_birth(kind) {
        value.as_object_mut().expect("it was checked to be an object").remove("status");
    }
    let metadata = metadata::object(value);
    for field in SERVER_FIELDS {
        metadata.remove(field);
    }
    metadata.insert("uid".into(), uid.into());
    metadata.insert("creationTimestamp".into(), now.into());
    if strategy::has_generation(kind) {
        metadata.insert("generation".into(), 1.into());
    }
    let generates = metadata.get("name").and_then(Value::as_str).is_none_or(str::is_empty)
        && metadata.get("generateName").and_then(Value::as_str).is_some_and(|prefix| !prefix.is_empty());
    if generates {
        generate_name(call, value);
    }
    kind.schema.fill(value);
    strategy::fill(kind, "", None, value);
    Ok(generates)
}

fn generate_name(call: &Call<'_>, value: &mut Value) {
    let ending = suffix(&*call.plane.lock().environment);
    let metadata = metadata::object(value);
    let prefix = metadata.get("generateName").and_then(Value::as_str).unwrap_or_default();
    let prefix: String = prefix.chars().take(GENERATE_LIMIT).collect();
    metadata.insert("name".into(), format!("{prefix}{ending}").into());
}

/// Takes the namespace from the path, and refuses another one.
fn check_namespace(call: &Call<'_>, value: &mut Value) -> Result<(), ApiError> {
    if !call.kind.namespaced {
        metadata::object(value).remove("namespace");
        return Ok(());
    }
    let wanted = match &call.target.namespace {
        Some(namespace) => namespace.clone(),
        None => return Err(super::not_allowed()),
    };
    let metadata = metadata::object(value);
    let given = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != wanted {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(message));
    }
    metadata.insert("namespace".into(), wanted.into());
    Ok(())
}

/// Keeps the object, if its namespace takes it and there is none of its name.
fn store(call: &Call<'_>, value: &Value) -> Result<Value, ApiError> {
    let kind = &call.kind;
    let name = value["metadata"]["name"].as_str().unwrap_or_default();
    let mut state = call.plane.lock();
    if kind.namespaced {
        check_alive(call, &state, name)?;
    }
    if crds::is_ending(&state, kind) {
        let message = "create not allowed while custom resource definition is terminating";
        return Err(ApiError::forbidden(call.named(name), message));
    }
    let key = Key { namespace: call.namespace().into(), name: name.into() };
    if state.storage.get(&kind.bucket, &key).is_some() {
        return Err(ApiError::already_exists(call.named(name)));
    }
    if call.query.is_dry_run {
        return Ok(kind.show(kind.keep(value.clone())));
    }
    let now = state.environment.now();
    let object = state.storage.put(now, kind, kind.keep(value.clone()));
    drop(state);
    Ok(super::shown_value(kind, &object))
}

fn check_alive(call: &Call<'_>, state: &State, name: &str) -> Result<(), ApiError> {
    let namespace = call.namespace();
    let namespaces = &state.kinds.resource("", "v1", "namespaces").expect("the core has namespaces").bucket;
    let key = Key { namespace: String::new(), name: namespace.into() };
    let Some(found) = state.storage.get(namespaces, &key) else {
        let named = crate::status::Named { kind: "namespaces", group: "", name: namespace };
        return Err(ApiError::not_found(named));
    };
    if !found.is_deleting {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = ApiError::forbidden(call.named(name), &why);
    let cause = FieldError::required("metadata.namespace", "");
    let message = format!("namespace {namespace} is being terminated");
    error.details.insert(
        "causes".into(),
        serde_json::json!([{ "reason": "NamespaceTerminating", "message": message, "field": cause.path }]),
    );
    Err(error)
}
