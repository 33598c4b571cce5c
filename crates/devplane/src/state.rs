//! Everything that is behind the lock, and the writes that requests and loops share: keep an object, delete an object.
//! Never here: how a request looks; what decides that an object goes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::admission::{Cache, Caller};
use crate::environment::{Environment, seconds};
use crate::kinds::{Kind, Kinds};
use crate::loops::Loops;
use crate::loops::crds::mark_ending;
use crate::openapi::Documents;
use crate::options::Options;
use crate::plane::User;
use crate::policy;
use crate::status::{ApiError, Named};
use crate::storage::{Object, Storage};

/// Finalizer of an owner that goes after what it owns.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of an owner that leaves what it owns behind.
pub(crate) const ORPHAN: &str = "orphan";

/// Grace of a pod that names none. Source: the API of Kubernetes.
const POD_GRACE_S: i64 = 30;

/// What is behind the lock.
pub(crate) struct State {
    pub storage: Storage,
    pub kinds: Kinds,
    pub loops: Loops,
    pub environment: Arc<dyn Environment>,
    /// How long a pod that does not say so stays on a node that is silent or not ready.
    pub pod_toleration_s: i64,
    /// When watches are to be woken, to end or to send a bookmark.
    pub timers: BTreeMap<(Timestamp, u64), Weak<Notify>>,
    /// Who may come in, and until when.
    pub tokens: HashMap<String, (User, Option<Timestamp>)>,
    /// Schemas as clients are told them.
    pub documents: Documents,
    /// Webhooks as they were read last.
    pub webhooks: Cache,
    /// Policies as they were read last.
    pub policies: policy::Cache,
    /// Reaches webhooks, if anything does.
    pub caller: Option<Arc<dyn Caller>>,
}

/// How dependents fare when their owner is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub grace_s: Option<i64>,
    pub uid: Option<String>,
    pub revision: Option<String>,
    /// `None`: what the object's finalizers say, else background.
    pub propagation: Option<Propagation>,
    pub dry_run: bool,
}

/// What a deletion came to.
pub(crate) enum Deleted {
    /// It is gone; its last state.
    Gone(Value),
    /// It waits for its finalizers or its grace; its state now.
    Waiting(Value),
}

impl State {
    /// A state in which nothing is stored yet.
    pub(crate) fn new(environment: Arc<dyn Environment>, options: Options) -> Self {
        State {
            storage: Storage::new(),
            kinds: Kinds::new(),
            pod_toleration_s: options.pod_toleration.as_secs(),
            loops: Loops::new(options),
            environment,
            timers: BTreeMap::new(),
            tokens: HashMap::new(),
            documents: Documents::default(),
            webhooks: Cache::default(),
            policies: policy::Cache::default(),
            caller: None,
        }
    }

    /// Keeps the next state of an object that has one. One that only waited for its finalizers goes with the last of
    /// them. Returns what is to be answered.
    pub(crate) fn update(&mut self, kind: &Kind, old: &Object, value: Value) -> Value {
        let now = self.environment.now();
        if is_done(&value) {
            // Whoever watches is told of the last state that was kept, whoever writes of what he wrote.
            self.storage.remove(now, kind, old.value());
            let mut value = value;
            value["metadata"]["resourceVersion"] = old.revision.to_string().into();
            return value;
        }
        if is_same(&old.value(), &value) {
            return old.value();
        }
        self.storage.put(now, kind, value).value()
    }

    /// Deletes an object, or marks it so that it goes when it may.
    pub(crate) fn delete(
        &mut self,
        kind: &Kind,
        object: &Object,
        options: &DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        check_preconditions(kind, object, options)?;
        let now = self.environment.now();
        let mut value = object.value();
        let was_deleting = object.is_deleting;
        let changed = set_propagation(&mut value, options.propagation);
        let grace_s = grace(kind, &value, options.grace_s);
        let marked = mark(&mut value, now, grace_s);
        if is_namespace(kind) && value["status"]["phase"] != "Terminating" {
            value["status"]["phase"] = "Terminating".into();
        }
        if is_crd(kind) && !was_deleting {
            mark_ending(&mut value, now);
        }
        if is_namespace(kind) || is_crd(kind) {
            without_grace(&mut value);
        }
        let waits = grace_s > 0 || has_finalizers(&value);
        if !waits {
            if options.dry_run {
                return Ok(Deleted::Gone(value));
            }
            if has_grace(kind) && (changed || marked) {
                // What may be given a grace is told to end before it does, even if there is nothing to wait for.
                self.storage.put(now, kind, value.clone());
            }
            return Ok(Deleted::Gone(self.storage.remove(now, kind, value).value()));
        }
        if !was_deleting
            && !is_crd(kind)
            && let Some(generation) = value["metadata"]["generation"].as_i64()
        {
            value["metadata"]["generation"] = (generation + 1).into();
        }
        if options.dry_run || !(changed || marked) {
            return Ok(Deleted::Waiting(value));
        }
        Ok(Deleted::Waiting(self.storage.put(now, kind, value).value()))
    }
}

/// Whether two states of an object differ only in what is counted and noted about the write itself.
fn is_same(old: &Value, new: &Value) -> bool {
    if old == new {
        return true;
    }
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    let is_equal_beside =
        |skip: &[&str], old: &serde_json::Map<String, Value>, new: &serde_json::Map<String, Value>| {
            let rest = |map: &serde_json::Map<String, Value>| {
                map.keys().filter(|key| !skip.contains(&key.as_str())).count()
            };
            rest(old) == rest(new)
                && old
                    .iter()
                    .filter(|(key, _)| !skip.contains(&key.as_str()))
                    .all(|(key, value)| new.get(key) == Some(value))
        };
    let metadata =
        |map: &serde_json::Map<String, Value>| map.get("metadata").and_then(Value::as_object).cloned();
    let (Some(was), Some(is)) = (metadata(old), metadata(new)) else { return false };
    // Times of managed fields alone are no change; the owners are.
    let owners =
        |map: &serde_json::Map<String, Value>| crate::managed::without_times(map.get("managedFields"));
    is_equal_beside(&["metadata"], old, new)
        && is_equal_beside(&["managedFields", "resourceVersion"], &was, &is)
        && owners(&was) == owners(&is)
}

fn check_preconditions(kind: &Kind, object: &Object, options: &DeleteOptions) -> Result<(), ApiError> {
    // Kubernetes names the kind here, not the resource.
    let named = Named { kind: &kind.kind, group: &kind.group, name: &object.key.name };
    let revision = object.revision.to_string();
    let check = |what: &str, wanted: &Option<String>, is: &str, may_be: &str| match wanted {
        Some(wanted) if wanted != is => Err(ApiError::conflict(
            named,
            &format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object \
                 might have been {may_be}"
            ),
        )),
        Some(_) | None => Ok(()),
    };
    check("UID", &options.uid, &object.uid, "deleted and then recreated")?;
    check("ResourceVersion", &options.revision, &revision, "modified")
}

/// Puts in or takes out the finalizers of the garbage collector. Says whether that changed anything.
fn set_propagation(value: &mut Value, propagation: Option<Propagation>) -> bool {
    let Some(propagation) = propagation else { return false };
    let before = finalizers(value);
    let mut after: Vec<String> =
        before.iter().filter(|name| *name != FOREGROUND && *name != ORPHAN).cloned().collect();
    match propagation {
        Propagation::Background => {}
        Propagation::Foreground => after.push(FOREGROUND.into()),
        Propagation::Orphan => after.push(ORPHAN.into()),
    }
    let changed = before != after;
    if changed {
        set_finalizers(value, &after);
    }
    changed
}

/// Sets the deletion timestamp, or moves it nearer. Says whether that changed anything.
fn mark(value: &mut Value, now: Timestamp, grace_s: i64) -> bool {
    let metadata = &mut value["metadata"];
    if metadata["deletionTimestamp"].is_string() {
        let shorter = metadata["deletionGracePeriodSeconds"].as_i64().is_some_and(|given| grace_s < given);
        if !shorter {
            return false;
        }
    }
    metadata["deletionTimestamp"] = seconds(now + SignedDuration::from_secs(grace_s)).into();
    metadata["deletionGracePeriodSeconds"] = json!(grace_s);
    true
}

/// Whether objects of a kind are given time to end.
fn has_grace(kind: &Kind) -> bool {
    !kind.is_custom() && kind.group.is_empty() && kind.plural == "pods"
}

/// Seconds that an object is given. Only pods on a node are given any.
fn grace(kind: &Kind, value: &Value, asked_s: Option<i64>) -> i64 {
    let has_node = value["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
    let has_ended = matches!(value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !has_grace(kind) || !has_node || has_ended {
        return 0;
    }
    let usual = value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(POD_GRACE_S);
    match asked_s.unwrap_or(usual) {
        // As Kubernetes has it: no time at all is a decision of its own.
        ..0 => 1,
        grace_s => grace_s,
    }
}

fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "namespaces"
}

fn is_crd(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

/// Namespaces and CRDs do not name the grace that they were given.
fn without_grace(value: &mut Value) {
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("deletionGracePeriodSeconds");
    }
}

/// Names in `metadata.finalizers`.
pub(crate) fn finalizers(value: &Value) -> Vec<String> {
    let list = value["metadata"]["finalizers"].as_array().into_iter().flatten();
    list.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Writes `metadata.finalizers`.
pub(crate) fn set_finalizers(value: &mut Value, names: &[String]) {
    let metadata = value["metadata"].as_object_mut().expect("every stored object has metadata");
    if names.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), json!(names));
    }
}

/// Whether anything keeps an object that is deleted: finalizers, and of a namespace those in its spec.
fn has_finalizers(value: &Value) -> bool {
    let of_namespace = value["kind"] == "Namespace"
        && value["apiVersion"] == "v1"
        && value["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    of_namespace || !finalizers(value).is_empty()
}

/// Whether an object is marked as deleted and nothing keeps it any more.
fn is_done(value: &Value) -> bool {
    let metadata = &value["metadata"];
    metadata["deletionTimestamp"].is_string()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !has_finalizers(value)
}
