//! Requests about kinds that are known by name only, such as remediation templates. Never here: what they mean.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use http::Method;
use mapi_api::Key;
use serde::Deserialize;
use serde_json::Value;

use crate::writes::{
    ApiError, Call, Deleted, JSON, MERGE_PATCH, NOTHING, Preconditions, Writer, encoded, found,
};

/// Groups whose kinds are remembered: more than any cluster has of kinds that are named in objects of ours.
const REMEMBERED_GROUPS: usize = 64;

impl Writer {
    /// Reads an object. `None`: there is none, or no such kind.
    pub async fn get_dynamic(
        &self,
        api_version: &str,
        plural: &str,
        key: &Key,
    ) -> Result<Option<Value>, ApiError> {
        let path = object_path(api_version, plural, key);
        found(self.send(&Call::new(Method::GET, "get", path, plural), NOTHING, JSON).await)
    }

    /// Creates an object. The namespace is empty for a cluster-scoped kind.
    pub async fn create_dynamic(
        &self,
        api_version: &str,
        plural: &str,
        namespace: &str,
        object: &Value,
    ) -> Result<Value, ApiError> {
        let path = collection_path(api_version, plural, namespace);
        self.send(&Call::new(Method::POST, "create", path, plural), Some(object), JSON).await
    }

    /// Patches fields: a member that is `null` is removed, a list is replaced whole.
    pub async fn patch_dynamic(
        &self,
        api_version: &str,
        plural: &str,
        key: &Key,
        patch: &Value,
    ) -> Result<Value, ApiError> {
        let path = object_path(api_version, plural, key);
        self.send(&Call::new(Method::PATCH, "patch", path, plural), Some(patch), MERGE_PATCH).await
    }

    /// Deletes an object if the preconditions hold.
    pub async fn delete_dynamic(
        &self,
        api_version: &str,
        plural: &str,
        key: &Key,
        preconditions: Preconditions,
    ) -> Result<Deleted<Value>, ApiError> {
        let path = object_path(api_version, plural, key);
        self.delete_by(Call::new(Method::DELETE, "delete", path, plural), preconditions).await
    }

    /// The plural of a kind, as the server tells it. `None`: the server does not serve it. What was found is
    /// remembered; what was not is asked again, because the kind may be installed later.
    pub async fn resource_of(&self, api_version: &str, kind: &str) -> Result<Option<String>, ApiError> {
        #[derive(Deserialize)]
        struct Resources {
            #[serde(default)]
            resources: Vec<Resource>,
        }
        #[derive(Deserialize)]
        struct Resource {
            name: String,
            kind: String,
        }
        if let Some(plural) = self.remembered(api_version, kind) {
            return Ok(Some(plural));
        }
        let call = Call::new(Method::GET, "get", group_path(api_version), "");
        let Some(Resources { resources }) = found(self.send(&call, NOTHING, JSON).await)? else {
            return Ok(None);
        };
        let own = resources.into_iter().filter(|resource| !resource.name.contains('/'));
        let plurals: BTreeMap<_, _> = own.map(|resource| (resource.kind, resource.name)).collect();
        let plural = plurals.get(kind).cloned();
        let mut known = self.plurals.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED_GROUPS {
            known.clear();
        }
        known.insert(api_version.to_owned(), plurals);
        Ok(plural)
    }

    fn remembered(&self, api_version: &str, kind: &str) -> Option<String> {
        let known = self.plurals.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(api_version)?.get(kind).cloned()
    }
}

fn group_path(api_version: &str) -> String {
    match api_version.split_once('/') {
        Some((group, version)) => format!("/apis/{}/{}", encoded(group), encoded(version)),
        None => format!("/api/{}", encoded(api_version)),
    }
}

fn collection_path(api_version: &str, plural: &str, namespace: &str) -> String {
    let (group, plural) = (group_path(api_version), encoded(plural));
    if namespace.is_empty() {
        format!("{group}/{plural}")
    } else {
        format!("{group}/namespaces/{}/{plural}", encoded(namespace))
    }
}

fn object_path(api_version: &str, plural: &str, key: &Key) -> String {
    format!("{}/{}", collection_path(api_version, plural, &key.namespace), encoded(&key.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{Seen, answering};

    #[tokio::test]
    async fn a_kind_is_looked_up_once_and_a_missing_one_every_time() {
        let (writer, seen) = answering(|_| {
            let resources =
                json!([{"name": "fixes/status", "kind": "Fix"}, {"name": "fixes", "kind": "Fix"}]);
            (200, json!({"resources": resources}))
        });
        for _ in 0..2 {
            assert_eq!(writer.resource_of("x.io/v1", "Fix").await.unwrap().as_deref(), Some("fixes"));
            assert_eq!(writer.resource_of("x.io/v1", "Other").await.unwrap(), None);
        }
        assert_eq!(seen.lock().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn a_group_that_is_not_served_has_no_kinds_and_no_objects() {
        let (writer, seen) =
            answering(|_| (404, json!({"kind": "Status", "code": 404, "reason": "NotFound"})));
        assert_eq!(writer.resource_of("v1", "Fix").await.unwrap(), None);
        assert_eq!(writer.get_dynamic("x.io/v1", "fixes", &Key::new("ns", "a/b")).await.unwrap(), None);
        let gone =
            writer.delete_dynamic("x.io/v1", "fixes", &Key::cluster("a"), Preconditions::default()).await;
        assert_eq!(gone.unwrap(), Deleted::Gone);
        let lines: Vec<String> = seen.lock().unwrap().iter().map(|seen: &Seen| seen.path.clone()).collect();
        assert_eq!(lines, ["/api/v1", "/apis/x.io/v1/namespaces/ns/fixes/a%2Fb", "/apis/x.io/v1/fixes/a"]);
    }
}
