//! The life of CRDs: their names are accepted, their kinds are served, and when they go their objects go first.
//! Never here: what a kind of a CRD looks like.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::environment::seconds;
use crate::kinds::{Approval, Bucket, Kind, Origin, approval, kinds_of_crd};
use crate::state::{DeleteOptions, State, finalizers, set_finalizers};
use crate::storage::{Change, Key, Object};

use super::World;
use super::catalogue::Class;
use super::writes::{Condition, SERVER, condition, delete, set_condition, write_status};

/// Keeps a CRD until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What is known about the CRDs there are.
#[derive(Default)]
pub(super) struct Crds {
    entries: BTreeMap<String, Entry>,
    /// CRDs to look at.
    dirty: BTreeSet<String>,
    /// The CRDs that wait for their bucket to be empty.
    ending: HashMap<Bucket, String>,
}

#[derive(Default)]
struct Entry {
    group: String,
    /// `status.acceptedNames`.
    accepted: Value,
    /// Specification and names that are served.
    served: Option<(Value, Value)>,
}

/// Marks a CRD whose deletion begins, so that it stays until its objects are gone. Says whether that changed anything.
pub(crate) fn mark_ending(crd: &mut Value, now: Timestamp) -> bool {
    let mut names = finalizers(crd);
    if names.iter().any(|name| name == CLEANUP) {
        return false;
    }
    names.push(CLEANUP.into());
    set_finalizers(crd, &names);
    let condition = Condition {
        kind: "Terminating",
        status: "True",
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    };
    set_condition(crd, condition, &seconds(now));
    true
}

/// Whether the CRD of a kind is being deleted: nothing may be created any more.
pub(crate) fn is_ending(state: &State, kind: &Kind) -> bool {
    let Origin::Custom(name) = &kind.origin else { return false };
    let key = Key { namespace: String::new(), name: name.clone() };
    let crds = state.kinds.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let crd = crds.and_then(|crds| state.storage.get(&crds.bucket, &key));
    crd.is_some_and(|crd| crd.is_deleting)
}

impl Crds {
    pub(super) fn see(&mut self, change: &Change) {
        let name = &change.now.key.name;
        self.dirty.insert(name.clone());
        if change.is_deletion
            && let Some(gone) = self.entries.remove(name)
        {
            // Others may have waited for its names.
            let same = self.entries.iter().filter(|(_, entry)| entry.group == gone.group);
            self.dirty.extend(same.map(|(name, _)| name.clone()));
        }
    }

    pub(super) fn see_instance(&mut self, change: &Change) {
        if change.is_deletion
            && let Some(name) = self.ending.get(&change.bucket)
        {
            self.dirty.insert(name.clone());
        }
    }

    pub(super) fn step(&mut self, world: &mut World<'_>) {
        let Some(kind) = world.catalogue.of(Class::Crd).cloned() else { return };
        while let Some(name) = self.dirty.pop_first() {
            let key = Key { namespace: String::new(), name };
            let Some(crd) = world.state.storage.get(&kind.bucket, &key).cloned() else {
                withdraw(world.state, &key.name);
                continue;
            };
            if crd.is_deleting {
                self.end(world, &kind, &crd);
            } else {
                self.settle(world, &kind, &crd);
            }
        }
    }

    /// Brings the status of a CRD to what its specification asks for, and serves it.
    fn settle(&mut self, world: &mut World<'_>, kind: &Kind, object: &Object) {
        let name = &object.key.name;
        let mut crd = object.value();
        let before = crd["status"].clone();
        let time = seconds(world.now);
        let was_accepted = is_true(&crd, "NamesAccepted");
        approve(&mut crd, &time);
        self.accept_names(name, &mut crd, &time);
        establish(&mut crd, was_accepted, &time);
        note_stored_version(&mut crd);
        if is_true(&crd, "Established") {
            self.entries.entry(name.clone()).or_default().serve(world.state, name, &crd);
        }
        if crd["status"] != before {
            write_status(world.state, kind, object, crd, SERVER);
        }
    }

    /// Takes the names that nobody else of the group has.
    fn accept_names(&mut self, name: &str, crd: &mut Value, time: &str) {
        let group = crd["spec"]["group"].as_str().unwrap_or_default().to_owned();
        let wanted = crd["spec"]["names"].clone();
        let others = || self.entries.iter().filter(|(other, entry)| *other != name && entry.group == group);
        let resources: BTreeSet<&str> =
            others().flat_map(|(_, other)| resource_names(&other.accepted)).collect();
        let kinds: BTreeSet<&str> = others().flat_map(|(_, other)| kind_names(&other.accepted)).collect();
        let (accepted, conflict) = choose(&wanted, &crd["status"]["acceptedNames"], &resources, &kinds);
        let entry = self.entries.entry(name.to_owned()).or_default();
        entry.group = group;
        entry.accepted = accepted.clone();
        crd["status"]["acceptedNames"] = accepted;
        let status = if conflict.is_none() { "True" } else { "False" };
        let (reason, message) = conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
        set_condition(crd, Condition { kind: "NamesAccepted", status, reason, message: &message }, time);
    }

    /// Deletes the objects of a CRD, and the CRD once there are none.
    fn end(&mut self, world: &mut World<'_>, kind: &Arc<Kind>, crd: &Object) {
        let name = &crd.key.name;
        let mut value = crd.value();
        if !finalizers(&value).iter().any(|finalizer| finalizer == CLEANUP) {
            return;
        }
        let condition = Condition {
            kind: "Terminating",
            status: "True",
            reason: "InstanceDeletionInProgress",
            message: "CustomResource deletion is in progress",
        };
        if set_condition(&mut value, condition, &seconds(world.now)) {
            // It is looked at again because of this write.
            write_status(world.state, kind, crd, value, SERVER);
            return;
        }
        let origin = Origin::Custom(name.clone());
        let served = world.state.kinds.all().find(|kind| kind.origin == origin).cloned();
        if let Some(served) = served {
            let instances: Vec<Arc<Object>> =
                world.state.storage.iter(&served.bucket, None).cloned().collect();
            for instance in instances.iter().filter(|instance| !instance.is_deleting) {
                delete(world.state, &served, instance, DeleteOptions::default());
            }
            if world.state.storage.count(&served.bucket) > 0 {
                self.ending.insert(served.bucket.clone(), name.clone());
                return;
            }
            self.ending.remove(&served.bucket);
        }
        withdraw(world.state, name);
        let rest: Vec<String> = finalizers(&value).into_iter().filter(|name| name != CLEANUP).collect();
        if rest.is_empty() {
            // Whoever watches is told of the last state that was kept, its finalizer included.
            world.state.storage.remove(world.now, kind, value);
            return;
        }
        set_finalizers(&mut value, &rest);
        let condition = Condition {
            kind: "Terminating",
            status: "False",
            reason: "InstanceDeletionCompleted",
            message: "removed all instances",
        };
        set_condition(&mut value, condition, &seconds(world.now));
        world.state.update(kind, crd, value);
    }
}

impl Entry {
    /// Serves what the specification says under the names that were accepted.
    fn serve(&mut self, state: &mut State, name: &str, crd: &Value) {
        let is_served = |(spec, names): &(Value, Value)| *spec == crd["spec"] && *names == self.accepted;
        if self.served.as_ref().is_some_and(is_served) {
            return;
        }
        let mut named = crd.clone();
        named["spec"]["names"] = self.accepted.clone();
        match kinds_of_crd(&named) {
            Ok(kinds) => state.kinds.set_custom(name, kinds),
            Err(errors) => {
                let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
                tracing::warn!(crd = name, errors = texts.join(", "), "cannot serve a CRD");
            }
        }
        self.served = Some((crd["spec"].clone(), self.accepted.clone()));
    }
}

/// Serves nothing of a CRD any more.
fn withdraw(state: &mut State, name: &str) {
    let origin = Origin::Custom(name.to_owned());
    if state.kinds.all().any(|kind| kind.origin == origin) {
        state.kinds.set_custom(name, Vec::new());
    }
}

fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The names that are accepted of those wanted, and the last conflict.
fn choose(
    wanted: &Value,
    accepted: &Value,
    resources: &BTreeSet<&str>,
    kinds: &BTreeSet<&str>,
) -> (Value, Option<(&'static str, String)>) {
    let mut names = accepted.as_object().cloned().unwrap_or_default();
    let mut conflict = None;
    let is_used = |name: &str| format!("\"{name}\" is already in use");
    let mut take = |field: &str, used: &BTreeSet<&str>, reason: &'static str| {
        let name = wanted[field].as_str().unwrap_or_default();
        if accepted[field] != name && used.contains(name) {
            return Some((reason, is_used(name)));
        }
        if !name.is_empty() {
            names.insert(field.into(), name.into());
        }
        None
    };
    for (field, used, reason) in
        [("plural", resources, "PluralConflict"), ("singular", resources, "SingularConflict")]
    {
        conflict = take(field, used, reason).or(conflict);
    }
    let had: Vec<&str> = strings(&accepted["shortNames"]).collect();
    let taken = |name: &&str| !had.contains(name) && resources.contains(*name);
    let errors: Vec<String> = strings(&wanted["shortNames"]).filter(taken).map(is_used).collect();
    if let [one] = &*errors {
        conflict = Some(("ShortNamesConflict", one.clone()));
    } else if !errors.is_empty() {
        conflict = Some(("ShortNamesConflict", format!("[{}]", errors.join(", "))));
    }
    for (field, used, reason) in [("kind", kinds, "KindConflict"), ("listKind", kinds, "ListKindConflict")] {
        conflict = take(field, used, reason).or(conflict);
    }
    let lists = [("shortNames", errors.is_empty()), ("categories", true)];
    for (field, _) in lists.into_iter().filter(|(_, is_accepted)| *is_accepted) {
        match &wanted[field] {
            Value::Array(list) if !list.is_empty() => names.insert(field.into(), wanted[field].clone()),
            _ => names.remove(field),
        };
    }
    for field in ["plural", "kind"] {
        names.entry(field).or_insert_with(|| "".into());
    }
    (Value::Object(names), conflict)
}

/// Sets the condition that says whether a CRD in a group of the Kubernetes project is approved.
fn approve(crd: &mut Value, time: &str) {
    let (status, reason, message) = match approval(crd) {
        Some(Approval::Given(at)) => ("True", "ApprovedAnnotation", format!("approved in {at}")),
        Some(Approval::Waived(text)) => ("False", "UnapprovedAnnotation", format!("not approved: {text:?}")),
        // They are refused when they are written.
        Some(Approval::Missing | Approval::Unclear(_)) | None => return,
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    set_condition(crd, Condition { kind, status, reason, message: &message }, time);
}

/// Sets the condition `Established`. Once it is True it stays so.
fn establish(crd: &mut Value, was_accepted: bool, time: &str) {
    let is_accepted = is_true(crd, "NamesAccepted");
    let (status, reason, message) = if is_true(crd, "Established") {
        return;
    } else if is_accepted && was_accepted {
        ("True", "InitialNamesAccepted", "the initial names have been accepted")
    } else if is_accepted {
        ("False", "Installing", "the initial names have been accepted")
    } else {
        ("False", "NotAccepted", "not all names are accepted")
    };
    set_condition(crd, Condition { kind: "Established", status, reason, message }, time);
}

/// Remembers in which versions objects may have been stored.
pub(crate) fn note_stored_version(crd: &mut Value) {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let Some(name) =
        versions.into_iter().find(|version| version["storage"] == true).map(|v| v["name"].clone())
    else {
        return;
    };
    let stored = &mut crd["status"]["storedVersions"];
    match stored.as_array_mut() {
        Some(list) if list.contains(&name) => {}
        Some(list) => list.push(name),
        None => *stored = json!([name]),
    }
}

fn resource_names(names: &Value) -> Vec<&str> {
    let single = ["plural", "singular"].into_iter().filter_map(|field| names[field].as_str());
    single.chain(strings(&names["shortNames"])).filter(|name| !name.is_empty()).collect()
}

fn kind_names(names: &Value) -> Vec<&str> {
    let names = ["kind", "listKind"].into_iter().filter_map(|field| names[field].as_str());
    names.filter(|name| !name.is_empty()).collect()
}

fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}
