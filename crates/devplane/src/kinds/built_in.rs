//! The kinds of Kubernetes that are served: a table, and their schemas as a real API server publishes them (the file is
//! written by `cargo xtask devplane-schemas`). Never here: kinds of CRDs; what happens to objects.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};

use super::{Kind, Origin, Scale, Subresource, Verb};
use crate::schema::Components;

/// A component of OpenAPI for each type, as in a document.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let schemas: Value =
        serde_json::from_str(include_str!("built_in.json")).expect("the generated file is JSON");
    json!({"components": {"schemas": schemas}})
});

/// The types of Kubernetes that are served and all that they consist of, by their names.
pub(crate) fn components() -> &'static Map<String, Value> {
    DOCUMENT["components"]["schemas"].as_object().expect("the generated file is an object")
}

/// All of them, with their schemas. They are made once and shared.
pub(super) fn kinds() -> Vec<Arc<Kind>> {
    static KINDS: LazyLock<Vec<Arc<Kind>>> = LazyLock::new(|| {
        let components = Components::new(&DOCUMENT);
        ROWS.iter().map(|row| Arc::new(row.kind(&components))).collect()
    });
    KINDS.clone()
}

/// A kind of Kubernetes whose schema the plane needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Served {
    /// API group, empty for the core.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind of the objects.
    pub kind: &'static str,
    /// Whether lists of it are served.
    pub has_list: bool,
}

/// The kinds of Kubernetes that are served, and those that their subresources take.
pub fn served() -> Vec<Served> {
    let rows = ROWS.iter().map(|row| Served {
        group: row.group,
        version: row.version,
        kind: row.kind,
        has_list: row.verbs.contains(&Verb::List),
    });
    let subresources = ROWS.iter().flat_map(|row| row.subresources).chain(&[SCALE]).map(|other| Served {
        group: other.group,
        version: other.version,
        kind: other.kind,
        has_list: false,
    });
    let mut served: Vec<Served> = rows.chain(subresources).collect();
    served.sort_unstable();
    served.dedup();
    served
}

/// The name of the component that describes a kind.
pub(crate) fn component(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    static NAMES: LazyLock<BTreeMap<[&'static str; 3], &'static str>> = LazyLock::new(|| {
        let kinds = components().iter().flat_map(|(name, schema)| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
            kinds.map(move |kind| (["group", "version", "kind"].map(|part| text(&kind[part])), name.as_str()))
        });
        kinds.collect()
    });
    NAMES.get(&[group, version, kind]).copied()
}

fn text(value: &'static Value) -> &'static str {
    value.as_str().unwrap_or_default()
}

/// A line of the table.
#[derive(Clone, Copy)]
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    namespaced: bool,
    verbs: &'static [Verb],
    has_status: bool,
    has_scale: bool,
    subresources: &'static [Subresource],
    selectable: &'static [&'static str],
}

impl Row {
    fn kind(&self, components: &Components<'_>) -> Kind {
        let (kind, group) = (self.kind.to_owned(), self.group.to_owned());
        let name = component(self.group, self.version, self.kind).expect("the generated file has every kind");
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Kind {
            version: self.version.into(),
            list_kind: format!("{kind}List"),
            plural: self.plural.into(),
            singular: kind.to_lowercase(),
            short_names: owned(self.short_names),
            categories: owned(self.categories),
            namespaced: self.namespaced,
            verbs: self.verbs,
            has_status: self.has_status,
            scale: self.has_scale.then(scale),
            subresources: self.subresources,
            schema: components.schema(name).expect("the component has just been found"),
            columns: Vec::new(),
            selectable: self.selectable,
            bucket: self.bucket(),
            origin: Origin::BuiltIn,
            deprecation: None,
            kind,
            group,
        }
    }

    /// Events are the same in both of their groups.
    fn bucket(&self) -> Arc<str> {
        match self.group {
            "" | "events.k8s.io" => self.plural.into(),
            group => format!("{}.{group}", self.plural).into(),
        }
    }
}

/// Of every kind here that can be scaled; `selector` is that of labels, an object.
fn scale() -> Scale {
    Scale {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        selector: Some(".spec.selector".into()),
    }
}

/// What `scale` is read and written as.
pub(crate) const SCALE: Subresource = Subresource {
    name: "scale",
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
    verbs: &[Verb::Get, Verb::Patch, Verb::Update],
};
const EVICTION: Subresource = Subresource {
    name: "eviction",
    group: "policy",
    version: "v1",
    kind: "Eviction",
    verbs: &[Verb::Create],
};
const BINDING: Subresource =
    Subresource { name: "binding", group: "", version: "v1", kind: "Binding", verbs: &[Verb::Create] };
const FINALIZE: Subresource =
    Subresource { name: "finalize", group: "", version: "v1", kind: "Namespace", verbs: &[Verb::Update] };
const TOKEN: Subresource = Subresource {
    name: "token",
    group: "authentication.k8s.io",
    version: "v1",
    kind: "TokenRequest",
    verbs: &[Verb::Create],
};

const ALL_VERBS: &[Verb] = &[
    Verb::Create,
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Update,
    Verb::Watch,
];
const ONE_BY_ONE: &[Verb] =
    &[Verb::Create, Verb::Delete, Verb::Get, Verb::List, Verb::Patch, Verb::Update, Verb::Watch];

const NAMESPACED: Row = Row {
    group: "",
    version: "v1",
    kind: "",
    plural: "",
    short_names: &[],
    categories: &[],
    namespaced: true,
    verbs: ALL_VERBS,
    has_status: false,
    has_scale: false,
    subresources: &[],
    selectable: &[],
};
const CLUSTER: Row = Row { namespaced: false, ..NAMESPACED };
const APPS: Row = Row { group: "apps", categories: &["all"], has_status: true, ..NAMESPACED };
const AUTHENTICATION: Row = Row { group: "authentication.k8s.io", verbs: &[Verb::Create], ..CLUSTER };
const AUTHORIZATION: Row = Row { group: "authorization.k8s.io", verbs: &[Verb::Create], ..CLUSTER };
const RBAC: Row = Row { group: "rbac.authorization.k8s.io", ..NAMESPACED };
const ADMISSION: Row =
    Row { group: "admissionregistration.k8s.io", categories: &["api-extensions"], ..CLUSTER };

/// The kinds, in the order in which a real API server lists their groups, and by name within each.
const ROWS: &[Row] = &[
    Row { kind: "ConfigMap", plural: "configmaps", short_names: &["cm"], ..NAMESPACED },
    Row {
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        selectable: super::event::SELECTABLE,
        ..NAMESPACED
    },
    Row {
        kind: "Namespace",
        plural: "namespaces",
        short_names: &["ns"],
        verbs: ONE_BY_ONE,
        has_status: true,
        subresources: &[FINALIZE],
        selectable: &["status.phase"],
        ..CLUSTER
    },
    Row {
        kind: "Node",
        plural: "nodes",
        short_names: &["no"],
        has_status: true,
        selectable: &["spec.unschedulable"],
        ..CLUSTER
    },
    Row {
        kind: "Pod",
        plural: "pods",
        short_names: &["po"],
        categories: &["all"],
        has_status: true,
        subresources: &[BINDING, EVICTION],
        selectable: &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        ..NAMESPACED
    },
    Row { kind: "Secret", plural: "secrets", selectable: &["type"], ..NAMESPACED },
    Row {
        kind: "ServiceAccount",
        plural: "serviceaccounts",
        short_names: &["sa"],
        subresources: &[TOKEN],
        ..NAMESPACED
    },
    Row {
        kind: "Service",
        plural: "services",
        short_names: &["svc"],
        categories: &["all"],
        has_status: true,
        selectable: &["spec.clusterIP", "spec.type"],
        ..NAMESPACED
    },
    Row { kind: "DaemonSet", plural: "daemonsets", short_names: &["ds"], ..APPS },
    Row { kind: "Deployment", plural: "deployments", short_names: &["deploy"], has_scale: true, ..APPS },
    Row { kind: "ReplicaSet", plural: "replicasets", short_names: &["rs"], has_scale: true, ..APPS },
    Row {
        group: "events.k8s.io",
        kind: "Event",
        plural: "events",
        short_names: &["ev"],
        selectable: super::event::SELECTABLE,
        ..NAMESPACED
    },
    Row { kind: "SelfSubjectReview", plural: "selfsubjectreviews", ..AUTHENTICATION },
    Row { kind: "TokenReview", plural: "tokenreviews", ..AUTHENTICATION },
    Row {
        kind: "LocalSubjectAccessReview",
        plural: "localsubjectaccessreviews",
        namespaced: true,
        ..AUTHORIZATION
    },
    Row { kind: "SelfSubjectAccessReview", plural: "selfsubjectaccessreviews", ..AUTHORIZATION },
    Row { kind: "SelfSubjectRulesReview", plural: "selfsubjectrulesreviews", ..AUTHORIZATION },
    Row { kind: "SubjectAccessReview", plural: "subjectaccessreviews", ..AUTHORIZATION },
    Row {
        group: "policy",
        kind: "PodDisruptionBudget",
        plural: "poddisruptionbudgets",
        short_names: &["pdb"],
        has_status: true,
        ..NAMESPACED
    },
    Row { kind: "ClusterRoleBinding", plural: "clusterrolebindings", namespaced: false, ..RBAC },
    Row { kind: "ClusterRole", plural: "clusterroles", namespaced: false, ..RBAC },
    Row { kind: "RoleBinding", plural: "rolebindings", ..RBAC },
    Row { kind: "Role", plural: "roles", ..RBAC },
    Row { kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations", ..ADMISSION },
    Row {
        kind: "ValidatingAdmissionPolicy",
        plural: "validatingadmissionpolicies",
        has_status: true,
        ..ADMISSION
    },
    Row {
        kind: "ValidatingAdmissionPolicyBinding",
        plural: "validatingadmissionpolicybindings",
        ..ADMISSION
    },
    Row { kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations", ..ADMISSION },
    Row {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
        short_names: &["crd", "crds"],
        categories: &["api-extensions"],
        has_status: true,
        ..CLUSTER
    },
    Row {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        plural: "priorityclasses",
        short_names: &["pc"],
        ..CLUSTER
    },
    Row { group: "coordination.k8s.io", kind: "Lease", plural: "leases", ..NAMESPACED },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_served_is_described() {
        for served in served() {
            let kinds = [served.kind.to_owned(), format!("{}List", served.kind)];
            let wanted = if served.has_list { 2 } else { 1 };
            for kind in &kinds[..wanted] {
                assert!(component(served.group, served.version, kind).is_some(), "{} {kind}", served.group);
            }
        }
    }

    #[test]
    fn nothing_is_served_twice() {
        let kinds = kinds();
        for (index, kind) in kinds.iter().enumerate() {
            let is_same = |other: &&Arc<Kind>| other.group == kind.group && other.plural == kind.plural;
            assert_eq!(kinds[index + 1..].iter().find(is_same).map(|other| &other.kind), None);
        }
    }

    #[test]
    fn both_kinds_of_events_are_kept_in_one_place() {
        let kinds = super::super::Kinds::new();
        let theirs = kinds.resource("events.k8s.io", "v1", "events").unwrap();
        let ours = kinds.resource("", "v1", "events").unwrap();
        assert_eq!(theirs.bucket, ours.bucket);
    }
}
