//! Which bucket holds what, looked up once for each set of kinds. Never here: objects.

use std::collections::HashMap;
use std::sync::Arc;

use crate::kinds::{Bucket, Kind, Kinds};

/// What the loops tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Crd,
    Namespace,
    Node,
    Lease,
    Pod,
    Budget,
    Event,
    ServiceAccount,
    ConfigMap,
    /// Anything with a number of replicas.
    Scalable,
    Other,
}

/// Kinds by their bucket.
#[derive(Default)]
pub(super) struct Catalogue {
    generation: Option<u64>,
    kinds: HashMap<Bucket, (Class, Arc<Kind>)>,
    known: HashMap<Class, Arc<Kind>>,
}

impl Catalogue {
    /// Looks again if the kinds have changed, and says whether they have.
    pub(super) fn refresh(&mut self, kinds: &Kinds) -> bool {
        if self.generation == Some(kinds.generation) {
            return false;
        }
        self.generation = Some(kinds.generation);
        self.kinds.clear();
        self.known.clear();
        for kind in kinds.all() {
            let class = classify(kind);
            self.kinds.entry(kind.bucket.clone()).or_insert_with(|| (class, kind.clone()));
            self.known.entry(class).or_insert_with(|| kind.clone());
        }
        true
    }

    /// What a bucket holds.
    pub(super) fn class(&self, bucket: &Bucket) -> Class {
        self.kinds.get(bucket).map_or(Class::Other, |(class, _)| *class)
    }

    /// The kind of a bucket's objects, in one of its versions; `None` if it is not served any more.
    pub(super) fn kind(&self, bucket: &Bucket) -> Option<&Arc<Kind>> {
        self.kinds.get(bucket).map(|(_, kind)| kind)
    }

    /// The one kind of a class, if it is served.
    pub(super) fn of(&self, class: Class) -> Option<&Arc<Kind>> {
        self.known.get(&class)
    }
}

fn classify(kind: &Kind) -> Class {
    if kind.is_custom() {
        return if kind.scale.is_some() { Class::Scalable } else { Class::Other };
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("apiextensions.k8s.io", "customresourcedefinitions") => Class::Crd,
        ("", "namespaces") => Class::Namespace,
        ("", "nodes") => Class::Node,
        ("coordination.k8s.io", "leases") => Class::Lease,
        ("", "pods") => Class::Pod,
        ("policy", "poddisruptionbudgets") => Class::Budget,
        ("" | "events.k8s.io", "events") => Class::Event,
        ("", "serviceaccounts") => Class::ServiceAccount,
        ("", "configmaps") => Class::ConfigMap,
        ("apps", "deployments" | "replicasets" | "statefulsets") | ("", "replicationcontrollers") => {
            Class::Scalable
        }
        _ => Class::Other,
    }
}
