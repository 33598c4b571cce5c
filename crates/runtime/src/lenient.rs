//! An object that may not be decodable, so that one poison object never stops a list or a watch (I24).
//! Never here: what is done about such an object.

use std::borrow::Cow;

use kube::Resource;
use kube::core::DynamicResourceScope;
use mapi_api::{Misfit, Object, ObjectMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// An object as it came from the server: decoded, or its metadata and why it could not be decoded.
#[derive(Clone, Debug)]
pub struct Lenient<T>(Result<T, Box<Broken>>);

/// What is left of an object that is not decodable.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) metadata: ObjectMeta,
    pub(crate) error: String,
}

impl<T> From<T> for Lenient<T> {
    fn from(object: T) -> Self {
        Self(Ok(object))
    }
}

impl<T> Lenient<T> {
    /// An object that could not be decoded.
    pub fn broken(metadata: ObjectMeta, error: impl Into<String>) -> Self {
        Self(Err(Box::new(Broken { metadata, error: error.into() })))
    }

    pub(crate) fn into_result(self) -> Result<T, Box<Broken>> {
        self.0
    }
}

/// Works on JSON text only, and in a watch event only if `type` comes before `object`, as every API server writes it.
impl<'de, T: Object + DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(match mapi_api::salvage::read(raw.get()) {
            Ok(object) => Self(Ok(object)),
            Err(error) => {
                let Misfit { path, message } = Misfit::of(raw.get(), &error);
                let error = Misfit { path, message: without_values(&message) };
                Self::broken(metadata_of(raw.get()), error.to_string())
            }
        })
    }
}

/// The scope is said to be dynamic because one type of watch serves namespaced and cluster-scoped kinds.
impl<T: Object> Resource for Lenient<T> {
    type DynamicType = ();
    type Scope = DynamicResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        T::kind(&())
    }
    fn group(_: &()) -> Cow<'_, str> {
        T::group(&())
    }
    fn version(_: &()) -> Cow<'_, str> {
        <T as Resource>::version(&())
    }
    fn plural(_: &()) -> Cow<'_, str> {
        T::plural(&())
    }
    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(broken) => &broken.metadata,
        }
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(broken) => &mut broken.metadata,
        }
    }
}

/// The metadata of an object that is otherwise unreadable; identity alone when the metadata is unreadable too.
fn metadata_of(text: &str) -> ObjectMeta {
    #[derive(Deserialize)]
    struct MetadataOnly {
        #[serde(deserialize_with = "mapi_api::meta::lite")]
        metadata: ObjectMeta,
    }
    if let Ok(found) = serde_json::from_str::<MetadataOnly>(text) {
        return found.metadata;
    }
    let tree: Value = serde_json::from_str(text).unwrap_or_default();
    let field =
        |name: &str| tree.pointer(&format!("/metadata/{name}")).and_then(Value::as_str).map(str::to_owned);
    ObjectMeta {
        name: field("name"),
        namespace: field("namespace"),
        uid: field("uid"),
        resource_version: field("resourceVersion"),
        ..ObjectMeta::default()
    }
}

/// A decoding error quotes the value that it met. The text ends in logs and events, and a value may be a secret (I27).
fn without_values(error: &str) -> String {
    let mut pieces = error.split('"');
    let mut clean = pieces.next().unwrap_or_default().to_owned();
    let rest: Vec<&str> = pieces.collect();
    if let Some(last) = rest.last() {
        clean.push('…');
        // An odd number of quotes means that the value held one: everything up to the last is taken for the value.
        clean.push_str(last);
    }
    clean
}

#[cfg(test)]
mod tests {
    use kube::api::{ObjectList, WatchEvent};
    use mapi_api::lease::Lease;

    use super::*;

    const GOOD: &str = r#"{"metadata":{"name":"good","resourceVersion":"1"},"spec":{"leaseTransitions":1}}"#;
    const POISON: &str = r#"{"metadata":{"name":"poison","namespace":"ns","uid":"u","resourceVersion":"2"},
        "spec":{"leaseTransitions":"hunter\"2"}}"#;

    #[test]
    fn a_list_with_a_poison_object_yields_the_others() {
        let text = format!(
            r#"{{"kind":"LeaseList","apiVersion":"x/v1","metadata":{{}},"items":[{POISON},{GOOD}]}}"#
        );
        let list: ObjectList<Lenient<Lease>> = serde_json::from_str(&text).unwrap();
        let [poison, good] = list.items.try_into().unwrap();
        assert_eq!(poison.key().to_string(), "ns/poison");
        assert!(good.into_result().is_ok());
        let error = poison.into_result().unwrap_err().error;
        assert_eq!(error, "spec.leaseTransitions: invalid type: string …, expected i32");
    }

    #[test]
    fn a_watch_event_with_a_poison_object_keeps_its_identity_and_version() {
        let text = format!(r#"{{"type":"MODIFIED","object":{POISON}}}"#);
        let WatchEvent::Modified(poison) = serde_json::from_str::<WatchEvent<Lenient<Lease>>>(&text).unwrap()
        else {
            panic!("a modification");
        };
        assert_eq!((poison.uid(), poison.version()), ("u", "2"));
    }

    #[test]
    fn identity_survives_unreadable_metadata() {
        let text = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"3","labels":{"x":1}}}"#;
        let poison: Lenient<Lease> = serde_json::from_str(text).unwrap();
        assert_eq!((poison.name(), poison.uid(), poison.version()), ("a", "u", "3"));
    }
}
