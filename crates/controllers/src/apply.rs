//! Turns actions into writes. The one place of the controllers that writes to the cluster.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, join_all};
use mapi_api::{Key, Machine, MachineHealthCheck, MachineSet, Node, Object};
use mapi_core::{Action, Kind, Plan, Requeue, Sub, Target};
use mapi_runtime::store::Write;
use mapi_runtime::writes::{ApiError, Eviction, Preconditions, Sub as Part};
use mapi_runtime::{Error, worker};
use serde_json::{Value, json};

use crate::Context;
use crate::context::{Stored, owner_hold};

/// What became of a plan.
#[derive(Debug)]
pub struct Applied {
    /// When to look again, or the errors of the actions that failed.
    pub outcome: Result<worker::Requeue, Error>,
    /// The errors of the actions that failed, conflicts among them.
    pub failures: Vec<ApiError>,
    /// What each eviction was answered.
    pub evictions: Vec<(Key, Result<Eviction, ApiError>)>,
    /// Machines whose creation got no answer: it may have taken effect.
    pub uncertain: Vec<Key>,
}

/// Runs a plan.
pub async fn apply(context: &Context, plan: Plan) -> Result<worker::Requeue, Error> {
    apply_outcome(context, plan).await.outcome
}

/// Runs a plan and tells what the server answered to evictions and lost creations.
pub async fn apply_outcome(context: &Context, plan: Plan) -> Applied {
    let Plan { actions, requeue, gates } = plan;
    for gate in &gates {
        tracing::debug!(reason = gate.reason, message = %gate.message, "waiting");
    }
    let mut run = Run::default();
    let result = sequence(context, &mut run, actions).await;
    let outcome = match (&result, requeue) {
        (Err(failures), _) if failures.iter().all(ApiError::is_conflict) => {
            // The cache was behind. What changed the object wakes its key; this is only for a change already seen.
            tracing::debug!("the object changed meanwhile");
            Ok(worker::Requeue::Backoff)
        }
        (Err(failures), _) => Err(join(failures).into()),
        (Ok(()), Requeue::Never) => Ok(worker::Requeue::Done),
        (Ok(()), Requeue::After(delay)) => Ok(worker::Requeue::After(delay)),
        (Ok(()), Requeue::Backoff(error)) => Err(error.into()),
    };
    let Run { versions: _, evictions, uncertain } = run;
    Applied { outcome, failures: result.err().unwrap_or_default(), evictions, uncertain }
}

/// What one run of a plan has learnt so far.
#[derive(Default)]
struct Run {
    /// Versions of objects that this plan has patched, so that its next patch of the same object is not refused.
    versions: BTreeMap<(&'static str, Key), String>,
    evictions: Vec<(Key, Result<Eviction, ApiError>)>,
    uncertain: Vec<Key>,
}

type Failures = Vec<ApiError>;

async fn sequence(context: &Context, run: &mut Run, actions: Vec<Action>) -> Result<(), Failures> {
    for action in actions {
        one(context, run, action).await?;
    }
    Ok(())
}

/// Boxed because batches and trials hold actions.
fn one<'a>(context: &'a Context, run: &'a mut Run, action: Action) -> BoxFuture<'a, Result<(), Failures>> {
    Box::pin(async move {
        match action {
            Action::Patch { target, sub, patch } => {
                single(patch_object(context, run, target, sub, patch).await)
            }
            Action::CreateMachine { owner_uid, key, object } => {
                single(create_machine(context, run, &owner_uid, &key, &object).await)
            }
            Action::Delete(target) => single(delete(context, &target).await),
            Action::Evict { pod, uid, grace_s } => {
                let answer = context.writer.evict(&pod, &uid, grace_s).await;
                run.evictions.push((pod, answer));
                Ok(())
            }
            Action::CreateRequest { object } => single(create_request(context, &object).await),
            Action::DeleteRequest { api_version, kind, key, uid } => {
                single(delete_request(context, &api_version, &kind, &key, uid).await)
            }
            Action::Emit { reporter, event } => {
                context.recorder.emit(reporter, event);
                Ok(())
            }
            Action::Measure(measure) => {
                context.metrics.record(&measure);
                Ok(())
            }
            Action::Batch(actions) => batch(context, run, actions).await,
            Action::Try { action, success, failure } => match one(context, run, *action).await {
                Ok(()) => sequence(context, run, success).await,
                Err(errors) => {
                    let text = join(&errors);
                    for action in failure {
                        // What follows a failure cannot fail it further.
                        let _ = one(context, run, explain(action, &text)).await;
                    }
                    Err(errors)
                }
            },
        }
    })
}

fn single(result: Result<(), ApiError>) -> Result<(), Failures> {
    result.map_err(|error| vec![error])
}

async fn batch(context: &Context, run: &mut Run, actions: Vec<Action>) -> Result<(), Failures> {
    let parts = actions.into_iter().map(|action| async move {
        let mut part = Run::default();
        let result = one(context, &mut part, action).await;
        (part, result)
    });
    let mut failures = vec![];
    for (part, result) in join_all(parts).await {
        let Run { versions, evictions, uncertain } = part;
        run.versions.extend(versions);
        run.evictions.extend(evictions);
        run.uncertain.extend(uncertain);
        failures.extend(result.err().into_iter().flatten());
    }
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// Adds the error to the note of an event.
fn explain(action: Action, error: &str) -> Action {
    match action {
        Action::Emit { reporter, mut event } => {
            event.note = format!("{}: {error}", event.note);
            Action::Emit { reporter, event }
        }
        other => other,
    }
}

fn join(errors: &[ApiError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

async fn patch_object(
    context: &Context,
    run: &mut Run,
    target: Target,
    sub: Sub,
    mut patch: Value,
) -> Result<(), ApiError> {
    let Target { kind, key, uid, version, owner_uid } = target;
    let slot = (kind_name(kind), key.clone());
    let version = run.versions.get(&slot).unwrap_or(&version);
    if let Value::Object(fields) = &mut patch {
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = version.as_str().into();
        metadata["uid"] = uid.as_str().into();
    }
    let after = match kind {
        Kind::Machine => patch_stored::<Machine>(context, &key, owner_uid.as_deref(), sub, &patch).await?,
        Kind::MachineSet => patch_stored::<MachineSet>(context, &key, None, sub, &patch).await?,
        Kind::MachineHealthCheck => {
            patch_stored::<MachineHealthCheck>(context, &key, None, sub, &patch).await?
        }
        Kind::Node => patch_stored::<Node>(context, &key, None, sub, &patch).await?,
    };
    run.versions.insert(slot, after);
    Ok(())
}

/// Patches an object and gives its new version. The object's key is held, and so is its set if the patch moves the
/// object out of or into the set.
async fn patch_stored<T: Stored>(
    context: &Context,
    key: &Key,
    owner_uid: Option<&str>,
    sub: Sub,
    patch: &Value,
) -> Result<String, ApiError> {
    let owner = owner_uid.filter(|_| changes_membership(patch));
    let holds = begin::<T>(context, [Some(key.clone()), owner.map(owner_hold)]);
    let part = match sub {
        Sub::Main => Part::Main,
        Sub::Status => Part::Status,
    };
    let answer = context.writer.merge_patch::<T>(key, part, patch).await;
    for hold in holds {
        match &answer {
            Ok(object) if lets_go(patch, object) => hold.gone(key, object.uid()),
            Ok(_) | Err(_) => hold.finish(answer.as_ref()),
        }
    }
    answer.map(|object| object.version().into())
}

/// Whether a patch took the last finalizer of a deleted object, and the object with it. The answer bears the version from
/// before, which the cache may have shown already.
fn lets_go(patch: &Value, object: &impl Object) -> bool {
    patch["metadata"].get("finalizers").is_some()
        && object.is_deleting()
        && object.meta().finalizers.iter().flatten().next().is_none()
}

fn begin<T: Stored>(context: &Context, keys: [Option<Key>; 2]) -> Vec<Write<T>> {
    keys.iter().flatten().map(|key| T::store(context).begin_write(key)).collect()
}

/// Whether a patch of a Machine changes which set it belongs to: its owners or labels.
fn changes_membership(patch: &Value) -> bool {
    patch["metadata"].get("ownerReferences").is_some()
}

async fn create_machine(
    context: &Context,
    run: &mut Run,
    owner_uid: &str,
    key: &Key,
    object: &Value,
) -> Result<(), ApiError> {
    let hold = context.machines.begin_write(&owner_hold(owner_uid));
    let answer = match context.writer.create::<Machine>(&key.namespace, object).await {
        Err(error) if error.is_already_exists() => adopt_earlier(context, owner_uid, key, error).await,
        other => other,
    };
    hold.finish(answer.as_ref());
    if answer.as_ref().is_err_and(ApiError::is_unknown_outcome) {
        run.uncertain.push(key.clone());
    }
    answer.map(drop)
}

/// A Machine of this name exists. If our set owns it, an earlier create whose answer was lost made it.
async fn adopt_earlier(
    context: &Context,
    owner_uid: &str,
    key: &Key,
    error: ApiError,
) -> Result<Machine, ApiError> {
    match context.writer.get::<Machine>(key).await? {
        Some(machine) if machine.set_owner().is_some_and(|owner| owner.uid == owner_uid) => Ok(machine),
        _ => Err(error),
    }
}

async fn delete(context: &Context, target: &Target) -> Result<(), ApiError> {
    match target.kind {
        Kind::Machine => delete_stored::<Machine>(context, target).await,
        Kind::MachineSet => delete_stored::<MachineSet>(context, target).await,
        Kind::MachineHealthCheck => delete_stored::<MachineHealthCheck>(context, target).await,
        Kind::Node => delete_stored::<Node>(context, target).await,
    }
}

async fn delete_stored<T: Stored>(context: &Context, target: &Target) -> Result<(), ApiError> {
    let Target { kind: _, key, uid, version: _, owner_uid } = target;
    let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
    let holds = begin::<T>(context, [Some(key.clone()), owner_uid.as_deref().map(owner_hold)]);
    let answer = context.writer.delete::<T>(key, preconditions).await;
    for hold in holds {
        hold.finish_delete(key, uid, answer.as_ref());
    }
    answer.map(drop)
}

async fn create_request(context: &Context, object: &Value) -> Result<(), ApiError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let plural = plural_of(context, &api_version, &kind).await?;
    let namespace = text(&object["metadata"]["namespace"]);
    match context.writer.create_dynamic(&api_version, &plural, &namespace, object).await {
        // Named like its Machine: an earlier create whose answer was lost, or one that the cache has not shown yet.
        Err(error) if error.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

async fn delete_request(
    context: &Context,
    api_version: &str,
    kind: &str,
    key: &Key,
    uid: String,
) -> Result<(), ApiError> {
    let plural = plural_of(context, api_version, kind).await?;
    let preconditions = Preconditions { uid: Some(uid), resource_version: None };
    context.writer.delete_dynamic(api_version, &plural, key, preconditions).await.map(drop)
}

async fn plural_of(context: &Context, api_version: &str, kind: &str) -> Result<String, ApiError> {
    context.writer.resource_of(api_version, kind).await?.ok_or_else(|| {
        ApiError::new(404, "NotFound", format!("the server serves no kind `{kind}` in `{api_version}`"))
    })
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Machine => "Machine",
        Kind::MachineSet => "MachineSet",
        Kind::MachineHealthCheck => "MachineHealthCheck",
        Kind::Node => "Node",
    }
}
