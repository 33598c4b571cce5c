//! A plane's state for tests of loops: a clock that stands still until it is moved, and kinds without schemas.
//! Never here: assertions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::environment::{Environment, seconds};
use crate::kinds::{Kind, Kinds, Origin, Verb};
use crate::schema::Schema;
use crate::state::{DeleteOptions, Propagation, State};
use crate::storage::{Key, Object};

use super::{Options, work};

/// When tests begin.
const START: &str = "2030-01-01T00:00:00Z";

/// A clock that is moved by hand, and numbers that count up.
pub(crate) struct Still {
    now: Mutex<Timestamp>,
    count: AtomicU64,
}

impl Environment for Still {
    fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    fn random(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }
}

/// A state and its clock.
pub(crate) struct Bench {
    pub state: State,
    pub clock: Arc<Still>,
    /// What `work` said last.
    pub next: Option<Timestamp>,
}

/// Groups, plurals and kinds of the tests; a star is for those without namespaces.
const KINDS: &[(&str, &str, &str, &str)] = &[
    ("", "v1", "namespaces*", "Namespace"),
    ("", "v1", "nodes*", "Node"),
    ("", "v1", "pods", "Pod"),
    ("", "v1", "configmaps", "ConfigMap"),
    ("", "v1", "secrets", "Secret"),
    ("", "v1", "serviceaccounts", "ServiceAccount"),
    ("", "v1", "events", "Event"),
    ("apps", "v1", "deployments", "Deployment"),
    ("apps", "v1", "replicasets", "ReplicaSet"),
    ("coordination.k8s.io", "v1", "leases", "Lease"),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions*", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations*", "MutatingWebhookConfiguration"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations*",
        "ValidatingWebhookConfiguration",
    ),
];

const VERBS: &[Verb] = &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Watch];

/// A kind without a schema.
pub(crate) fn kind(group: &str, version: &str, plural: &str, kind: &str, origin: Origin) -> Arc<Kind> {
    let name = plural.trim_end_matches('*');
    Arc::new(Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List"),
        plural: name.into(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: name == plural,
        verbs: VERBS,
        has_status: true,
        subresources: &[],
        scale: None,
        schema: Arc::new(Schema { preserve_unknown: true, ..Schema::default() }),
        columns: Vec::new(),
        selectable: &[],
        bucket: format!("{group}/{name}").into(),
        deprecation: None,
        origin,
    })
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Bench {
        let clock = Arc::new(Still { now: Mutex::new(START.parse().unwrap()), count: AtomicU64::new(0) });
        let mut kinds = Kinds::new();
        let missing = KINDS.iter().filter(|(group, version, plural, _)| {
            kinds.resource(group, version, plural.trim_end_matches('*')).is_none()
        });
        let missing: Vec<Arc<Kind>> = missing
            .map(|(group, version, plural, name)| kind(group, version, plural, name, Origin::BuiltIn))
            .collect();
        kinds.set_custom("tests", missing);
        let state = State { kinds, ..State::new(clock.clone(), options) };
        Bench { state, clock, next: None }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets the loops work.
    pub(crate) fn work(&mut self) {
        self.next = work(&mut self.state, self.clock.now());
    }

    /// Moves the clock to each time that the loops ask for, up to `span_s` from now, and lets them work.
    pub(crate) fn pass(&mut self, span_s: i64) {
        let end = self.now() + SignedDuration::from_secs(span_s);
        self.work();
        while let Some(next) = self.next
            && next <= end
        {
            *self.clock.now.lock().unwrap() = next;
            self.work();
        }
        *self.clock.now.lock().unwrap() = end;
        self.work();
    }

    fn kind_of(&self, value: &Value) -> Arc<Kind> {
        let text = |name: &str| value[name].as_str().unwrap().to_owned();
        self.state.kinds.of_object(&text("apiVersion"), &text("kind")).expect("tests know the kind").clone()
    }

    fn resource(&self, plural: &str) -> Arc<Kind> {
        self.state.kinds.all().find(|kind| kind.plural == plural).expect("tests know the resource").clone()
    }

    /// Creates or replaces an object, without the loops. A new one is given a uid, its name if it has none.
    pub(crate) fn put(&mut self, mut value: Value) {
        let kind = self.kind_of(&value);
        if value["metadata"]["uid"].is_null() {
            value["metadata"]["uid"] = value["metadata"]["name"].clone();
        }
        if value["metadata"]["creationTimestamp"].is_null() {
            value["metadata"]["creationTimestamp"] = seconds(self.now()).into();
        }
        let now = self.now();
        self.state.storage.put(now, &kind, value);
    }

    fn key(path: &str) -> Key {
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        Key { namespace: namespace.into(), name: name.into() }
    }

    /// The object at `namespace/name`, or `name`.
    pub(crate) fn get(&self, plural: &str, path: &str) -> Option<Value> {
        let kind = self.resource(plural);
        self.state.storage.get(&kind.bucket, &Self::key(path)).map(|object| object.value())
    }

    /// The same as it is kept.
    pub(crate) fn object(&self, plural: &str, path: &str) -> Arc<Object> {
        let kind = self.resource(plural);
        self.state.storage.get(&kind.bucket, &Self::key(path)).expect("it is there").clone()
    }

    /// Changes an object that is there, as a client would: it goes with its last finalizer.
    pub(crate) fn change(&mut self, plural: &str, path: &str, change: impl FnOnce(&mut Value)) {
        let kind = self.resource(plural);
        let object = self.state.storage.get(&kind.bucket, &Self::key(path)).expect("it is there").clone();
        let mut value = object.value();
        change(&mut value);
        self.state.update(&kind, &object, value);
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, plural: &str, path: &str, propagation: Option<Propagation>) {
        let kind = self.resource(plural);
        let object = self.state.storage.get(&kind.bucket, &Self::key(path)).expect("it is there").clone();
        let options = DeleteOptions { propagation, ..DeleteOptions::default() };
        assert!(self.state.delete(&kind, &object, &options).is_ok());
    }

    /// All objects but those that every namespace is given: `plural namespace/name`, with `deleting` and finalizers.
    pub(crate) fn objects(&self) -> Vec<String> {
        let mut lines = Vec::new();
        // Events of both groups are kept in one place.
        let mut buckets = std::collections::BTreeSet::new();
        for kind in self.state.kinds.all().filter(|kind| buckets.insert(kind.bucket.clone())) {
            for object in self.state.storage.iter(&kind.bucket, None) {
                let value = object.value();
                let mut line = format!("{} {}/{}", kind.plural, object.key.namespace, object.key.name);
                if object.is_deleting {
                    line += " deleting";
                }
                for finalizer in crate::state::finalizers(&value) {
                    line += &format!(" +{finalizer}");
                }
                let owners: Vec<&str> = object.owners.iter().map(|owner| owner.uid.as_str()).collect();
                if !owners.is_empty() {
                    line += &format!(" of {}", owners.join(","));
                }
                lines.push(line);
            }
        }
        lines.sort();
        lines
    }
}

/// A ConfigMap in the namespace `default`. `owners` are uids of ConfigMaps; `!` before one: it waits for this.
pub(crate) fn map(name: &str, owners: &str) -> Value {
    let reference = |owner: &str| {
        let uid = owner.trim_start_matches('!');
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid, "blockOwnerDeletion": uid != owner,
        })
    };
    let owners: Vec<Value> = owners.split_whitespace().map(reference).collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
    })
}
