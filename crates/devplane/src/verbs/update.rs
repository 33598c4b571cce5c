//! Replacing and patching. Never here: how a patch is applied.

use std::sync::Arc;

use serde_json::Value;

use super::create::{Owners, new_object};
use super::{Call, Reply, changes, shown_value};
use crate::negotiate::{self, PatchType};
use crate::query::{PATCH_OPTIONS, Validation};
use crate::status::{ApiError, Fault, FieldError, Named};
use crate::storage::Object;
use crate::{admit, managed, metadata, patch, strategy};

/// How often a patch is computed anew because somebody else was faster. Source: the API server of Kubernetes.
const TRIES: usize = 5;

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// A next state of an object.
pub(super) struct Next {
    pub value: Value,
    pub warnings: Vec<String>,
    pub owners: Owners,
}

/// PUT of an object.
pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut value = changes::read_object(call)?;
    let warnings = changes::unknown_fields(call, &mut value, &changes::decoding(call))?;
    check_place(call, &value)?;
    let found = call.find();
    if let Err(error) = &found
        && error.code == 404
        && strategy::creates_on_update(&call.kind)
        && call.target.subresource.is_none()
    {
        return new_object(call, value, Owners::Update).await.map(|reply| reply.warn(warnings));
    }
    for _ in 0..TRIES {
        let old = call.find()?;
        let mut next = value.clone();
        check_identity(call, &old, &next)?;
        if !metadata::object(&mut next).contains_key("managedFields") {
            let kept = &shown_value(&call.kind, &old)["metadata"]["managedFields"];
            if !kept.is_null() {
                next["metadata"]["managedFields"] = kept.clone();
            }
        }
        let next = Next { value: next, warnings: warnings.clone(), owners: Owners::Update };
        match write(call, &old, next).await {
            Err(error) if is_overtaken(&error) && !names_revision(&value) => {}
            answer => return answer,
        }
    }
    Err(ApiError::conflict(call.named(call.name()), MODIFIED))
}

/// PATCH of an object.
pub(super) async fn patch(call: &Call<'_>) -> Result<Reply, ApiError> {
    let patch_type = negotiate::patch_type(call.content_type, call.kind.is_custom())?;
    if patch_type == PatchType::Apply {
        return apply(call).await;
    }
    if call.query.force.is_some() {
        let error = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(ApiError::invalid(PATCH_OPTIONS, &[error]));
    }
    let body = match patch_type {
        PatchType::Merge => patch::decode_merge(call.body)?,
        PatchType::Strategic => patch::decode_strategic(call.body)?,
        PatchType::Json | PatchType::Apply => Value::Null,
    };
    for _ in 0..TRIES {
        let old = call.find()?;
        let mut value = shown_value(&call.kind, &old);
        match patch_type {
            PatchType::Json => patch::json(&mut value, call.body)?,
            PatchType::Merge => patch::merge(&mut value, &body),
            PatchType::Strategic => patch::strategic(&call.kind.schema, &mut value, &body)?,
            PatchType::Apply => unreachable!("it was handled above"),
        }
        changes::check_type(call, &mut value)?;
        changes::check_shape(call, &value)?;
        check_place(call, &value)?;
        check_fixed(call, &old, &value)?;
        let warnings = unknown_in_patch(call, &mut value, &body)?;
        check_identity(call, &old, &value)?;
        let names = names_revision(&body)
            || (patch_type == PatchType::Json
                && value["metadata"]["resourceVersion"]
                    .as_str()
                    .is_some_and(|revision| revision != old.revision.to_string()));
        let next = Next { value, warnings, owners: Owners::Update };
        match write(call, &old, next).await {
            Err(error) if is_overtaken(&error) && !names => {}
            answer => return answer,
        }
    }
    Err(ApiError::conflict(call.named(call.name()), MODIFIED))
}

/// A patch that brings unknown fields is refused as a patch.
fn unknown_in_patch(call: &Call<'_>, value: &mut Value, body: &Value) -> Result<Vec<String>, ApiError> {
    changes::unknown_fields(call, value, "").map_err(|error| {
        let shown = FieldError {
            fault: Fault::Invalid,
            path: "patch".into(),
            value: format!("{:?}", body.to_string()),
            detail: error.message,
        };
        ApiError::invalid(Named { kind: "", group: "", name: "" }, &[shown])
    })
}

/// Server-side apply.
async fn apply(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut applied = negotiate::yaml(call.body)?;
    if call.query.manager.is_empty() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid(PATCH_OPTIONS, &[error]));
    }
    if applied["kind"].as_str().is_some_and(|given| given != call.kind.kind) {
        let message = format!("the kind in the data ({}) is not {}", applied["kind"], call.kind.kind);
        return Err(ApiError::bad_request(message));
    }
    changes::check_type(call, &mut applied)?;
    changes::check_shape(call, &applied)?;
    check_place(call, &applied)?;
    let warnings = declared_fields(call, &mut applied)?;
    fill_place(call, &mut applied);
    out_of_reach(call, &mut applied);
    for _ in 0..TRIES {
        let live = call.find();
        let old = match live {
            Ok(old) => old,
            Err(error) if error.code == 404 && call.target.subresource.is_none() => {
                if applied["metadata"]["uid"].is_string() {
                    return Err(ApiError::conflict(
                        call.named(call.name()),
                        "uid mismatch: the provided object specified a uid, and no existing object was found",
                    ));
                }
                let value = apply_to(call, None, &applied)?;
                match new_object(call, value, Owners::Applied).await {
                    Err(error) if error.reason == "AlreadyExists" => continue,
                    answer => return answer.map(|reply| reply.warn(warnings)),
                }
            }
            Err(error) => return Err(error),
        };
        let was = shown_value(&call.kind, &old);
        check_identity(call, &old, &applied)?;
        let value = apply_to(call, Some(&was), &applied)?;
        let next = Next { value, warnings: warnings.clone(), owners: Owners::Applied };
        match write(call, &old, next).await {
            Err(error) if is_overtaken(&error) && !names_revision(&applied) => {}
            answer => return answer,
        }
    }
    Err(ApiError::conflict(call.named(call.name()), MODIFIED))
}

/// What is applied to a custom object must be declared: nobody could own anything else.
fn declared_fields(call: &Call<'_>, applied: &mut Value) -> Result<Vec<String>, ApiError> {
    if call.query.validation == Validation::Strict || !call.kind.is_custom() {
        return changes::unknown_fields(call, applied, "");
    }
    let unknown = call.kind.schema.prune(applied);
    let of_metadata = |path: &&String| path.starts_with("metadata.");
    match unknown.iter().find(|path| !of_metadata(path)) {
        None => Ok(unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect()),
        Some(path) => {
            let kind = &call.kind;
            let (key, version) = (call.key(), &call.api_version);
            let message = format!(
                "failed to create typed patch object ({}/{}; {version}, Kind={}): .{path}: field not declared in schema",
                key.namespace, key.name, kind.kind
            );
            Err(ApiError::new(500, "", message))
        }
    }
}

fn apply_to(call: &Call<'_>, live: Option<&Value>, applied: &Value) -> Result<Value, ApiError> {
    let time = changes::now(call);
    let manager = changes::manager(call, &time);
    managed::apply(&call.kind.schema, live, applied, &manager, call.query.force == Some(true))
}

/// What is applied may leave out name and namespace.
fn fill_place(call: &Call<'_>, applied: &mut Value) {
    let key = call.key();
    let metadata = metadata::object(applied);
    metadata.insert("name".into(), key.name.into());
    if call.kind.namespaced {
        metadata.insert("namespace".into(), key.namespace.into());
    }
}

/// Takes out what this (sub)resource does not write.
fn out_of_reach(call: &Call<'_>, applied: &mut Value) {
    let fields = applied.as_object_mut().expect("it was checked to be an object");
    match call.target.subresource.as_deref() {
        None if call.kind.has_status => drop(fields.remove("status")),
        Some("status") if call.kind.is_custom() => {
            fields.retain(|name, _| matches!(&**name, "apiVersion" | "kind" | "metadata" | "status"));
        }
        Some(_) | None => {}
    }
}

/// Refuses an object of another name or namespace than the path says.
fn check_place(call: &Call<'_>, value: &Value) -> Result<(), ApiError> {
    let metadata = &value["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    if name.is_empty() && call.content_type.contains("apply") {
        return Ok(());
    }
    if name != call.name() {
        let shown = if name.is_empty() {
            "name must be provided".to_owned()
        } else {
            format!("the name of the object ({name}) does not match the name on the URL ({})", call.name())
        };
        return Err(ApiError::bad_request(shown));
    }
    let namespace = metadata["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && call.kind.namespaced && namespace != call.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

/// What the server writes into the metadata of a custom object cannot be patched.
fn check_fixed(call: &Call<'_>, old: &Object, new: &Value) -> Result<(), ApiError> {
    if !call.kind.is_custom() {
        return Ok(());
    }
    let was = &old.value()["metadata"];
    let fixed = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    let changed = fixed.into_iter().filter(|field| {
        let now = &new["metadata"][*field];
        !now.is_null() && *now != was[*field]
    });
    let immutable = |field| {
        let path = format!("metadata.{field}");
        FieldError::invalid(path, &new["metadata"][field], "field is immutable")
    };
    let errors: Vec<FieldError> = changed.map(immutable).collect();
    if errors.is_empty() { Ok(()) } else { Err(ApiError::invalid(call.named_kind(call.name()), &errors)) }
}

/// Whether a body names the revision that it is about.
fn names_revision(body: &Value) -> bool {
    body["metadata"]["resourceVersion"].as_str().is_some_and(|revision| !revision.is_empty())
}

/// Whether somebody else was faster.
fn is_overtaken(error: &ApiError) -> bool {
    error.code == 409 && error.message.ends_with(MODIFIED)
}

/// Refuses what is about another object of the name, or another state of it.
fn check_identity(call: &Call<'_>, old: &Object, new: &Value) -> Result<(), ApiError> {
    let metadata = &new["metadata"];
    let named = call.named(call.name());
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != old.uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", old.uid);
        return Err(ApiError::conflict(named, &why));
    }
    let revision = metadata["resourceVersion"].as_str().unwrap_or_default();
    if revision.is_empty() || revision == "0" {
        if call.kind.is_custom()
            && call.content_type.contains("application/json")
            && !call.content_type.contains("patch")
        {
            let error = FieldError {
                fault: Fault::Invalid,
                path: "metadata.resourceVersion".into(),
                value: "0".into(),
                detail: "must be specified for an update".into(),
            };
            return Err(ApiError::invalid(call.named_kind(call.name()), &[error]));
        }
        return Ok(());
    }
    if revision.parse::<u64>().is_err() {
        let error = FieldError::invalid("metadata.resourceVersion", &revision.into(), "must be an integer");
        return Err(ApiError::invalid(call.named_kind(call.name()), &[error]));
    }
    if revision == old.revision.to_string() { Ok(()) } else { Err(ApiError::conflict(named, MODIFIED)) }
}

/// Makes `next` the state of an object whose state was `old`, unless somebody else was faster.
pub(super) async fn write(call: &Call<'_>, old: &Arc<Object>, next: Next) -> Result<Reply, ApiError> {
    let kind = &call.kind;
    let Next { value: mut new, mut warnings, owners } = next;
    let was = shown_value(kind, old);
    let subresource = call.target.subresource.as_deref().unwrap_or_default();
    strategy::keep_parts(kind, subresource, &was, &mut new);
    metadata::carry_over(&was, &mut new);
    kind.schema.fill(&mut new);
    strategy::fill(kind, subresource, Some(&was), &mut new);
    if owners == Owners::Update {
        // What admission changes after this is nobody's.
        changes::note_owners(call, Some(&was), &mut new);
    }
    if subresource.is_empty() {
        strategy::admit(kind, &call.plane.lock(), Some(&was), &mut new)?;
    }
    let (admitted, more) = admit::mutate(call, admit::Operation::Update, Some(&was), new).await?;
    new = admitted;
    strategy::prepare_update(kind, subresource, &call.plane.lock(), &was, &mut new);
    warnings.extend(more);
    warnings.extend(changes::validate(call, Some(&was), &new)?);
    if strategy::has_generation(kind) && strategy::is_other_spec(kind, &was, &new) {
        let generation = was["metadata"]["generation"].as_i64().unwrap_or(0);
        new["metadata"]["generation"] = (generation + 1).into();
    }
    warnings.extend(admit::validate(call, admit::Operation::Update, Some(&was), Some(&new)).await?);
    let kept = kind.keep(new);
    let mut state = call.plane.lock();
    let is_still = state.storage.get(&kind.bucket, &old.key).map(|now| now.revision) == Some(old.revision);
    if !is_still {
        return Err(match state.storage.get(&kind.bucket, &old.key) {
            Some(_) => ApiError::conflict(call.named(call.name()), MODIFIED),
            None => ApiError::not_found(call.named(call.name())),
        });
    }
    let answer = if call.query.is_dry_run { kept } else { state.update(kind, old, kept) };
    drop(state);
    changes::settle(call);
    let shown = if answer["apiVersion"] == call.api_version.as_str() { answer } else { kind.show(answer) };
    Ok(call.reply(200, &shown).warn(warnings))
}
