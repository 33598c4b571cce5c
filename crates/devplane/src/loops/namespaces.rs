//! Namespaces: what a new one is given, and how one ends. Never here: what a request may do in one that ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::environment::seconds;
use crate::kinds::{Bucket, Kind};
use crate::state::{DeleteOptions, Propagation, finalizers};
use crate::storage::{Change, Object};

use super::World;
use super::catalogue::Class;
use super::writes::{CONTROLLERS, Condition, create, delete, get, set_condition, write_status};

/// In the specification of a namespace: it stays until it is empty.
const FINALIZER: &str = "kubernetes";
const ACCOUNT: &str = "default";
const AUTHORITY: &str = "kube-root-ca.crt";
const AUTHORITY_TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                              endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                              guaranteed across distributions of Kubernetes clusters.";

/// How often a namespace says what it still waits for. That it is empty is seen at once.
const PERIOD: SignedDuration = SignedDuration::from_secs(5);

/// What is in which namespace.
#[derive(Default)]
pub(super) struct Namespaces {
    /// How many objects of each bucket a namespace holds.
    contents: HashMap<String, BTreeMap<Bucket, usize>>,
    /// Namespaces that end, and when to look at them; `None`: when pods are gone.
    ending: BTreeMap<String, Option<Timestamp>>,
    /// Namespaces that may lack what each is given.
    lacking: BTreeSet<String>,
}

/// What a namespace that ends still holds.
#[derive(Default)]
struct Remains {
    /// How many objects, by resource.
    resources: BTreeMap<String, usize>,
    /// How many objects, by finalizer.
    finalizers: BTreeMap<String, usize>,
}

impl Namespaces {
    pub(super) fn see(&mut self, change: &Change, class: Class, now: Timestamp) {
        let key = &change.now.key;
        if class == Class::Namespace {
            self.see_namespace(change, now);
        }
        if key.namespace.is_empty() {
            return;
        }
        let is_account = class == Class::ServiceAccount && key.name == ACCOUNT;
        let is_authority = class == Class::ConfigMap && key.name == AUTHORITY;
        if is_account || is_authority {
            self.lacking.insert(key.namespace.clone());
        }
        self.count(change, class, now);
    }

    fn see_namespace(&mut self, change: &Change, now: Timestamp) {
        let name = &change.now.key.name;
        if change.is_deletion {
            self.ending.remove(name);
        } else if change.now.is_deleting {
            if !change.before.as_ref().is_some_and(|before| before.is_deleting) {
                self.ending.insert(name.clone(), Some(now));
            }
        } else if change.before.is_none() {
            self.lacking.insert(name.clone());
        }
    }

    /// Counts what comes and goes, and wakes a namespace that waits for that.
    fn count(&mut self, change: &Change, class: Class, now: Timestamp) {
        let namespace = &change.now.key.namespace;
        if change.before.is_none() && !change.is_deletion {
            let counts = self.contents.entry(namespace.clone()).or_default();
            *counts.entry(change.bucket.clone()).or_default() += 1;
            if let Some(due) = self.ending.get_mut(namespace) {
                *due = Some(now);
            }
            return;
        }
        if !change.is_deletion {
            return;
        }
        let Some(counts) = self.contents.get_mut(namespace) else { return };
        let left = counts.get_mut(&change.bucket).map_or(0, |count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left == 0 {
            counts.remove(&change.bucket);
        }
        let is_empty = counts.is_empty();
        if is_empty {
            self.contents.remove(namespace);
        }
        if let Some(due) = self.ending.get_mut(namespace)
            && (is_empty || (left == 0 && class == Class::Pod))
        {
            *due = Some(now);
        }
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.ending.values().flatten().min().copied()
    }

    pub(super) fn step(&mut self, world: &mut World<'_>) {
        let Some(kind) = world.catalogue.of(Class::Namespace).cloned() else { return };
        while let Some(name) = self.lacking.pop_first() {
            if get(world.state, &kind, "", &name).is_some_and(|namespace| !namespace.is_deleting) {
                furnish(world, &name);
            }
        }
        let is_due = |due: &Option<Timestamp>| due.is_some_and(|due| due <= world.now);
        let due = self.ending.iter().filter(|(_, due)| is_due(due)).map(|(name, _)| name.clone());
        for name in due.collect::<Vec<String>>() {
            match get(world.state, &kind, "", &name) {
                Some(namespace) => self.end(world, &kind, &namespace),
                None => drop(self.ending.remove(&name)),
            }
        }
    }

    /// Deletes what a namespace holds, the pods before all else, and lets it go when it is empty.
    fn end(&mut self, world: &mut World<'_>, kind: &Kind, namespace: &Object) {
        let name = &namespace.key.name;
        let value = namespace.value();
        let waits =
            value["spec"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|one| one == FINALIZER));
        if !waits {
            self.ending.remove(name);
            return;
        }
        let buckets: Vec<Bucket> =
            self.contents.get(name).into_iter().flat_map(|all| all.keys().cloned()).collect();
        let is_pods = |bucket: &&Bucket| world.catalogue.class(bucket) == Class::Pod;
        let (pods, others): (Vec<&Bucket>, Vec<&Bucket>) = buckets.iter().partition(is_pods);
        clear(world, name, &pods);
        if count(world, name, &pods) > 0 {
            self.ending.insert(name.clone(), None);
            tell(world, kind, namespace, &Remains::default());
            return;
        }
        clear(world, name, &others);
        let remains = Remains::of(world, name, &others);
        tell(world, kind, namespace, &remains);
        if !remains.resources.is_empty() {
            self.ending.insert(name.clone(), Some(world.now + PERIOD));
            return;
        }
        self.ending.remove(name);
        if let Some(namespace) = get(world.state, kind, "", name) {
            release(world, kind, &namespace);
        }
    }
}

impl Remains {
    fn of(world: &World<'_>, namespace: &str, buckets: &[&Bucket]) -> Remains {
        let mut remains = Remains::default();
        for bucket in buckets {
            let Some(kind) = world.catalogue.kind(bucket) else { continue };
            let mut count = 0;
            for object in world.state.storage.iter(bucket, Some(namespace)) {
                count += 1;
                for finalizer in finalizers(&object.value()) {
                    *remains.finalizers.entry(finalizer).or_default() += 1;
                }
            }
            if count > 0 {
                remains.resources.insert(format!("{}.{}", kind.plural, kind.group), count);
            }
        }
        remains
    }
}

/// Gives a namespace what each has: an account, and the authority that signs for the server.
fn furnish(world: &mut World<'_>, namespace: &str) {
    if let Some(kind) = world.catalogue.of(Class::ServiceAccount).cloned()
        && get(world.state, &kind, namespace, ACCOUNT).is_none()
    {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace},
        });
        create(world.state, &kind, account);
    }
    let Some(authority) = &world.options.ca else { return };
    let Some(kind) = world.catalogue.of(Class::ConfigMap).cloned() else { return };
    let data = json!({"ca.crt": authority});
    let Some(map) = get(world.state, &kind, namespace, AUTHORITY) else {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {
                "name": AUTHORITY, "namespace": namespace,
                "annotations": {"kubernetes.io/description": AUTHORITY_TEXT},
            },
        });
        return create(world.state, &kind, map);
    };
    let mut value = map.value();
    if value["data"] != data && !map.is_deleting {
        value["data"] = data;
        world.state.update(&kind, &map, value);
    }
}

/// Deletes everything of some buckets that is not being deleted yet.
fn clear(world: &mut World<'_>, namespace: &str, buckets: &[&Bucket]) {
    for bucket in buckets {
        let Some(kind) = world.catalogue.kind(bucket).cloned() else { continue };
        let objects = world.state.storage.iter(bucket, Some(namespace)).filter(|object| !object.is_deleting);
        for object in objects.cloned().collect::<Vec<Arc<Object>>>() {
            let options =
                DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
            delete(world.state, &kind, &object, options);
        }
    }
}

fn count(world: &World<'_>, namespace: &str, buckets: &[&Bucket]) -> usize {
    buckets.iter().map(|bucket| world.state.storage.iter(bucket, Some(namespace)).count()).sum()
}

/// Says in the conditions of a namespace what it waits for.
fn tell(world: &mut World<'_>, kind: &Kind, namespace: &Object, remains: &Remains) {
    let mut value = namespace.value();
    let time = seconds(world.now);
    let list = |counts: &BTreeMap<String, usize>, word: &str| {
        let all = counts.iter().map(|(name, count)| format!("{name} {word} {count} resource instances"));
        all.collect::<Vec<String>>().join(", ")
    };
    let resources = format!("Some resources are remaining: {}", list(&remains.resources, "has"));
    let finalizers = format!(
        "Some content in the namespace has finalizers remaining: {}",
        list(&remains.finalizers, "in")
    );
    let content = if remains.resources.is_empty() {
        ("False", "ContentRemoved", "All content successfully removed")
    } else {
        ("True", "SomeResourcesRemain", resources.as_str())
    };
    let kept = if remains.finalizers.is_empty() {
        ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
    } else {
        ("True", "SomeFinalizersRemain", finalizers.as_str())
    };
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            ("False", "ResourcesDiscovered", "All resources successfully discovered"),
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            ("False", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ),
        (
            "NamespaceDeletionContentFailure",
            ("False", "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
        ),
        ("NamespaceContentRemaining", content),
        ("NamespaceFinalizersRemaining", kept),
    ];
    let mut changed = false;
    for (kind, (status, reason, message)) in rows {
        changed |= set_condition(&mut value, Condition { kind, status, reason, message }, &time);
    }
    if changed {
        write_status(world.state, kind, namespace, value, CONTROLLERS);
    }
}

/// Takes away what keeps a namespace that is empty.
fn release(world: &mut World<'_>, kind: &Kind, namespace: &Object) {
    let mut value = namespace.value();
    let rest: Vec<Value> = value["spec"]["finalizers"].as_array().into_iter().flatten().cloned().collect();
    let rest: Vec<Value> = rest.into_iter().filter(|finalizer| finalizer != FINALIZER).collect();
    if rest.is_empty() && finalizers(&value).is_empty() {
        // Whoever watches is told of the last state that was kept, with what kept it.
        world.state.storage.remove(world.now, kind, value);
        return;
    }
    if let Some(spec) = value["spec"].as_object_mut() {
        spec.remove("finalizers");
        if !rest.is_empty() {
            spec.insert("finalizers".into(), rest.into());
        }
    }
    world.state.update(kind, namespace, value);
}
