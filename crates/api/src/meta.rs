//! Object identity and metadata, decoded without `managedFields`.

use std::fmt;
use std::sync::Arc;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

use crate::names;

/// Name of an object of a known kind. Cluster-scoped objects have an empty namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: Arc<str>,
    /// Object name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of `namespace/name`.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(name: &str) -> Self {
        Self::new("", name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A time as the wire holds it where whole seconds are too coarse: cut to microseconds.
pub fn micro(time: jiff::Timestamp) -> MicroTime {
    MicroTime(jiff::Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
}

/// What every kind of ours can tell about itself.
pub trait Object: Resource<DynamicType = ()> {
    /// Namespace and name.
    fn key(&self) -> Key {
        Key::new(self.meta().namespace.as_deref().unwrap_or_default(), self.name())
    }
    /// Object name; empty only for an object that was never stored.
    fn name(&self) -> &str {
        self.meta().name.as_deref().unwrap_or_default()
    }
    /// Object UID; empty only for an object that was never stored.
    fn uid(&self) -> &str {
        self.meta().uid.as_deref().unwrap_or_default()
    }
    /// `metadata.resourceVersion`, opaque on the wire.
    fn version(&self) -> &str {
        self.meta().resource_version.as_deref().unwrap_or_default()
    }
    /// Value of a label.
    fn label(&self, key: &str) -> Option<&str> {
        self.meta().labels.as_ref()?.get(key).map(String::as_str)
    }
    /// Value of an annotation.
    fn annotation(&self, key: &str) -> Option<&str> {
        self.meta().annotations.as_ref()?.get(key).map(String::as_str)
    }
    /// Whether the deletion timestamp is set.
    fn is_deleting(&self) -> bool {
        self.meta().deletion_timestamp.is_some()
    }
    /// Whether a finalizer is present.
    fn has_finalizer(&self, finalizer: &str) -> bool {
        self.meta().finalizers.iter().flatten().any(|f| f == finalizer)
    }
    /// The owner reference that has `controller: true`, of whatever kind.
    fn controller_owner(&self) -> Option<&OwnerReference> {
        self.meta().owner_references.iter().flatten().find(|o| o.controller == Some(true))
    }
    /// UID of the MachineSet that controls this object.
    fn set_owner(&self) -> Option<&OwnerReference> {
        self.controller_owner().filter(|o| {
            o.kind == names::KIND_MACHINE_SET && o.api_version.starts_with("machine.openshift.io/")
        })
    }
}

impl<T: Resource<DynamicType = ()>> Object for T {}

/// Implements [`kube::Resource`] for a view type whose field `metadata` is an [`ObjectMeta`].
#[macro_export]
macro_rules! resource {
    ($type:ty, $scope:ident, $group:expr, $version:expr, $kind:expr, $plural:expr) => {
        impl kube::Resource for $type {
            type DynamicType = ();
            type Scope = kube::core::$scope;
            fn kind(_: &()) -> std::borrow::Cow<'_, str> {
                $kind.into()
            }
            fn group(_: &()) -> std::borrow::Cow<'_, str> {
                $group.into()
            }
            fn version(_: &()) -> std::borrow::Cow<'_, str> {
                $version.into()
            }
            fn plural(_: &()) -> std::borrow::Cow<'_, str> {
                $plural.into()
            }
            fn meta(&self) -> &$crate::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut $crate::ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

/// The part of the metadata that is kept. `managedFields` is skipped by the parser without allocating: it makes up
/// four fifths of a cached object (measured, design decision 3).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Lite {
    annotations: Option<std::collections::BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<std::collections::BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

/// For `#[serde(deserialize_with)]` on `metadata`: everything but `managedFields`. The annotation of `kubectl apply`
/// that repeats the whole object is dropped too: nothing reads it and no write of ours sends annotations back whole.
pub fn lite<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    let mut lite = Lite::deserialize(deserializer)?;
    if let Some(annotations) = &mut lite.annotations {
        annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    }
    let Lite {
        annotations,
        creation_timestamp,
        deletion_grace_period_seconds,
        deletion_timestamp,
        finalizers,
        generate_name,
        generation,
        labels,
        name,
        namespace,
        owner_references,
        resource_version,
        uid,
    } = lite;
    Ok(ObjectMeta {
        annotations,
        creation_timestamp,
        deletion_grace_period_seconds,
        deletion_timestamp,
        finalizers,
        generate_name,
        generation,
        labels,
        managed_fields: None,
        name,
        namespace,
        owner_references,
        resource_version,
        self_link: None,
        uid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_kept_without_managed_fields_and_the_last_applied_copy() {
        let text = r#"{"name":"a","managedFields":[{"manager":"x","fieldsV1":{"f:spec":{}}}],
            "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","keep":"1"}}"#;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let meta = lite(&mut deserializer).expect("valid metadata");
        assert_eq!(meta.managed_fields, None);
        assert_eq!(meta.annotations.expect("one is kept").into_keys().collect::<Vec<_>>(), ["keep"]);
    }

    #[test]
    fn keys_print_like_kubectl() {
        assert_eq!(Key::new("ns", "a").to_string(), "ns/a");
        assert_eq!(Key::cluster("a").to_string(), "a");
    }
}
