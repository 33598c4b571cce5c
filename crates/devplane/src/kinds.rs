//! What kinds are served. Never here: what happens to their objects.

mod built_in;
mod custom;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::schema::Schema;

pub(crate) use custom::{kinds_of_crd, warnings_of_crd};

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
    /// The whole object, `metadata` included.
    pub schema: Arc<Schema>,
    /// What `kubectl get` shows; for built-in kinds with columns of their own see `table`.
    pub columns: Vec<Column>,
    /// Paths that field selectors may name beside `metadata.name` and `metadata.namespace`.
    pub selectable: &'static [&'static str],
    pub bucket: Bucket,
    pub origin: Origin,
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

/// Who brought a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A kind of Kubernetes.
    BuiltIn,
    /// The CRD of this name.
    Custom(String),
}

/// Paths of the scale subresource, as a CRD gives them: `.spec.replicas`.
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
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.all().find(|known| known.kind == kind && known.group == group && known.version == version)
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

    /// Whether a CRD brought it.
    pub(crate) fn is_custom(&self) -> bool {
        self.origin != Origin::BuiltIn
    }
}
