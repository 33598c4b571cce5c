//! What kinds are served. Never here: what happens to their objects.

mod built_in;
mod custom;
pub(crate) mod event;
pub(crate) mod select;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::schema::Schema;

pub(crate) use built_in::{SCALE, component, components};
pub use built_in::{Served, served};
pub(crate) use custom::{Approval, approval, kinds_of_crd, warnings_of_crd};
pub(crate) use select::Selected;

/// Where objects are kept: one for each resource, whatever versions it is served in.
pub(crate) type Bucket = Arc<str>;

/// A resource as it is served in one version.
#[derive(Debug)]
pub(crate) struct Kind {
    /// API group, empty for the core.
    pub group: String,
    pub version: String,
    pub kind: String,
    pub list_kind: String,
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub namespaced: bool,
    pub verbs: &'static [Verb],
    /// Whether there is a subresource `status`.
    pub has_status: bool,
    /// Where the subresource `scale` finds its numbers, if there is one.
    pub scale: Option<Scale>,
    /// Subresources beside `status` and `scale`.
    pub subresources: &'static [Subresource],
    /// The whole object, `metadata` included.
    pub schema: Arc<Schema>,
    /// What `kubectl get` shows; for built-in kinds with columns of their own see `table`.
    pub columns: Vec<Column>,
    /// Paths that field selectors may name beside `metadata.name` and `metadata.namespace`, in the form that is kept.
    /// Requests go by [`Kind::selected`].
    pub selectable: &'static [&'static str],
    pub bucket: Bucket,
    pub origin: Origin,
    /// What whoever asks for it is warned of, because this version is to go.
    pub deprecation: Option<String>,
}

/// What may be done with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

/// A subresource that takes objects of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subresource {
    pub name: &'static str,
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: &'static [Verb],
}

impl Verb {
    /// As discovery names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Create => "create",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Patch => "patch",
            Verb::Update => "update",
            Verb::Watch => "watch",
        }
    }
}

/// What may be done with objects of CRDs, in the order in which a real API server names it.
pub(crate) const CUSTOM_VERBS: &[Verb] = &[
    Verb::Delete,
    Verb::DeleteCollection,
    Verb::Get,
    Verb::List,
    Verb::Patch,
    Verb::Create,
    Verb::Update,
    Verb::Watch,
];

/// Who brought a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A kind of Kubernetes.
    BuiltIn,
    /// The CRD of this name.
    Custom(String),
}

/// Paths of the scale subresource, as a CRD gives them: `.spec.replicas`. The selector of a CRD is text, that of a
/// built-in kind an object.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub selector: Option<String>,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    pub format: String,
    pub description: String,
    /// Above 0: shown with `-o wide` only.
    pub priority: i64,
    /// JSON path, as in a CRD: `.status.phase`.
    pub path: String,
}

/// All kinds that are served now.
pub(crate) struct Kinds {
    built_in: Vec<Arc<Kind>>,
    /// By name of the CRD.
    custom: BTreeMap<String, Vec<Arc<Kind>>>,
    /// Grows with each change, so that discovery and OpenAPI know when to be made again.
    pub generation: u64,
}

/// The value at a path as a CRD gives it: `.spec.replicas`.
pub(crate) fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|name| !name.is_empty()).fold(value, |value, name| &value[name])
}

impl Kinds {
    /// The kinds of Kubernetes.
    pub(crate) fn new() -> Self {
        Kinds { built_in: built_in::kinds(), custom: BTreeMap::new(), generation: 0 }
    }

    /// Everything that is served.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.built_in.iter().chain(self.custom.values().flatten())
    }

    /// The resource of a request.
    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.all().find(|kind| kind.plural == plural && kind.group == group && kind.version == version)
    }

    /// The kind of an object.
    pub(crate) fn of_object(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.all().find(|known| known.kind == kind && known.has_api_version(api_version))
    }

    /// Replaces what a CRD brings; nothing takes it away.
    pub(crate) fn set_custom(&mut self, crd: &str, kinds: Vec<Arc<Kind>>) {
        self.generation += 1;
        if kinds.is_empty() {
            self.custom.remove(crd);
        } else {
            self.custom.insert(crd.to_owned(), kinds);
        }
    }
}

impl Kind {
    /// `group/version`, or the version alone for the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether a text is what [`Kind::api_version`] makes. It is asked for each object of a list.
    pub(crate) fn has_api_version(&self, text: &str) -> bool {
        let (group, version) = text.split_once('/').unwrap_or(("", text));
        self.group == group && self.version == version
    }

    /// Whether a CRD brought it.
    pub(crate) fn is_custom(&self) -> bool {
        self.origin != Origin::BuiltIn
    }
}

impl Kind {
    /// An object that is stored in another form, in the one of this kind.
    pub(crate) fn show(&self, mut stored: Value) -> Value {
        if self.group == event::GROUP {
            event::from_stored(&mut stored);
        } else {
            stored["apiVersion"] = self.api_version().into();
        }
        stored
    }

    /// An object of this kind in the form that is stored.
    pub(crate) fn keep(&self, mut shown: Value) -> Value {
        if self.group == event::GROUP {
            event::to_stored(&mut shown);
        } else if self.plural == "events" && !self.is_custom() {
            event::complete(&mut shown);
        }
        shown
    }
}
