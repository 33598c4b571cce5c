//! Every request of ours that is not a watch. All writes pass here and are counted here.
//!
//! Never here: what is written. Trimmed types are never sent back (design decision 3): a write is a patch of named fields,
//! a create, or a delete; only a Lease is written whole.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Bytes;
use kube::client::Body;
use mapi_api::{Key, Object};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use crate::api_error::ApiError;
use crate::govern::retry_after;
use crate::metrics::API_WRITES;
use crate::store::Lenient;

/// Which part of an object a patch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sub {
    /// Everything but the status.
    Main,
    /// The status.
    Status,
}

/// What must hold for a delete to be carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preconditions {
    /// It is this object and not a later one of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Nobody changed it since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
}

impl Preconditions {
    /// That the UID is this one.
    pub fn uid(uid: &str) -> Self {
        Self { uid: Some(uid.to_owned()), resource_version: None }
    }
}

/// What a delete did.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted<T> {
    /// The object is gone, or was gone before.
    Gone,
    /// The object is marked and goes when its finalizers are removed or its grace period is over.
    Marked(T),
}

/// What became of a request to evict a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The pod goes.
    Accepted,
    /// No such pod any more.
    Gone,
    /// A disruption budget forbids it now.
    Blocked {
        /// The server's words, with the name of the budget where it tells one.
        message: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The namespace of the pod goes, and the pod with it.
    NamespaceTerminating,
}

/// Sends requests and counts writes. Clones share the client and what is known of kinds.
#[derive(Clone)]
pub struct Writer {
    /// The client that is used.
    pub client: kube::Client,
    /// By group and version, then kind: the plural.
    pub(crate) plurals: Arc<Mutex<BTreeMap<String, BTreeMap<String, String>>>>,
}

/// One request, as far as errors and metrics tell it apart.
pub(crate) struct Call {
    method: Method,
    path: String,
    /// For metrics; empty for requests that change nothing.
    resource: String,
    verb: &'static str,
    /// For messages: what is done to which object.
    what: String,
}

impl Writer {
    /// Sends through a client.
    pub fn new(client: kube::Client) -> Self {
        Self { client, plurals: Arc::default() }
    }

    /// Patches fields: a member that is `null` is removed, a list is replaced whole.
    pub async fn merge_patch<T: Object + DeserializeOwned>(
        &self,
        key: &Key,
        sub: Sub,
        patch: &Value,
    ) -> Result<T, ApiError> {
        self.patch(key, sub, patch, MERGE_PATCH).await
    }

    /// Patches fields of a built-in kind: lists with a merge key are merged by it.
    pub async fn strategic_patch<T: Object + DeserializeOwned>(
        &self,
        key: &Key,
        sub: Sub,
        patch: &Value,
    ) -> Result<T, ApiError> {
        self.patch(key, sub, patch, "application/strategic-merge-patch+json").await
    }

    /// Creates an object. The namespace is empty for a cluster-scoped kind.
    pub async fn create<T: Object + DeserializeOwned>(
        &self,
        namespace: &str,
        object: &Value,
    ) -> Result<T, ApiError> {
        let name = object["metadata"]["name"].as_str().or(object["metadata"]["generateName"].as_str());
        let key = Key::new(namespace, name.unwrap_or_default());
        let mut call = Call::of::<T>(Method::POST, "create", &key, Sub::Main);
        call.path = collection::<T>(namespace);
        self.send(&call, Some(object), JSON).await
    }

    /// Writes an object whole, if nobody changed it since it was read. For Leases only.
    pub async fn replace<T: Object + Serialize + DeserializeOwned>(&self, object: &T) -> Result<T, ApiError> {
        let call = Call::of::<T>(Method::PUT, "update", &object.key(), Sub::Main);
        let mut whole = serde_json::to_value(object).map_err(|error| ApiError::invalid(&call.what, error))?;
        whole["apiVersion"] = T::api_version(&()).into();
        whole["kind"] = T::kind(&()).into();
        self.send(&call, Some(&whole), JSON).await
    }

    /// Deletes an object if the preconditions hold.
    pub async fn delete<T: Object + DeserializeOwned>(
        &self,
        key: &Key,
        preconditions: Preconditions,
    ) -> Result<Deleted<T>, ApiError> {
        self.delete_by(Call::of::<T>(Method::DELETE, "delete", key, Sub::Main), preconditions).await
    }

    /// Reads an object from the server. `None`: there is none.
    pub async fn get<T: Object + DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, ApiError> {
        found(self.send(&Call::of::<T>(Method::GET, "get", key, Sub::Main), NOTHING, JSON).await)
    }

    /// Reads objects from the server, page by page. Those that cannot be decoded are logged and left out.
    pub async fn list<T: Object + DeserializeOwned>(
        &self,
        namespace: Option<&str>,
        fields: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<T>, ApiError> {
        #[derive(Deserialize)]
        #[serde(bound(deserialize = "T: Object + DeserializeOwned"))]
        struct Page<T> {
            #[serde(default)]
            metadata: kube::core::ListMeta,
            items: Vec<Lenient<T>>,
        }
        let mut all = Vec::new();
        let mut token: Option<String> = None;
        loop {
            let mut call =
                Call::of::<T>(Method::GET, "list", &Key::new(namespace.unwrap_or_default(), ""), Sub::Main);
            call.path = format!("{}?limit=500", collection::<T>(namespace.unwrap_or_default()));
            let parameters =
                [("fieldSelector", fields), ("labelSelector", labels), ("continue", token.as_deref())];
            for (name, value) in parameters {
                if let Some(value) = value {
                    call.path = format!("{}&{name}={}", call.path, encoded(value));
                }
            }
            let page: Page<T> = self.send(&call, NOTHING, JSON).await?;
            for object in page.items {
                let key = object.key();
                match object.into_result() {
                    Ok(object) => all.push(object),
                    Err(broken) => {
                        tracing::warn!(kind = %T::kind(&()), %key, error = broken.error, "cannot decode")
                    }
                }
            }
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(all);
            }
        }
    }

    /// Asks for the eviction of a pod of this UID, which respects disruption budgets.
    pub async fn evict(&self, pod: &Key, uid: &str, grace_s: Option<i64>) -> Result<Eviction, ApiError> {
        let mut options = json!({"preconditions": {"uid": uid}});
        if let Some(grace_s) = grace_s {
            options["gracePeriodSeconds"] = grace_s.into();
        }
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": &*pod.name, "namespace": &*pod.namespace},
            "deleteOptions": options,
        });
        let call = Call {
            method: Method::POST,
            path: format!(
                "/api/v1/namespaces/{}/pods/{}/eviction",
                encoded(&pod.namespace),
                encoded(&pod.name)
            ),
            resource: "pods/eviction".to_owned(),
            verb: "create",
            what: format!("evict pod `{pod}`"),
        };
        match self.send::<Value>(&call, Some(&body), JSON).await {
            Ok(_) => Ok(Eviction::Accepted),
            Err(error) if error.is_not_found() => Ok(Eviction::Gone),
            // A pod of the same name and another UID is not the one that was meant.
            Err(error) if error.is_conflict() && is_about_uid(&error.message) => Ok(Eviction::Gone),
            Err(error) if error.code == 429 && error.has_cause("DisruptionBudget") => Ok(blocked(error)),
            Err(error) if error.is_namespace_terminating() => Ok(Eviction::NamespaceTerminating),
            Err(error) => Err(error),
        }
    }

    async fn patch<T: Object + DeserializeOwned>(
        &self,
        key: &Key,
        sub: Sub,
        patch: &Value,
        media_type: &'static str,
    ) -> Result<T, ApiError> {
        let call = Call::of::<T>(Method::PATCH, "patch", key, sub);
        let answer: Box<RawValue> = self.send(&call, Some(patch), media_type).await?;
        // Read as the cache reads it: a Machine that is only partly readable can be removed.
        mapi_api::salvage::read(answer.get())
            .map_err(|error| ApiError::undecodable(&call.what, StatusCode::OK, error))
    }

    pub(crate) async fn delete_by<T: DeserializeOwned>(
        &self,
        call: Call,
        preconditions: Preconditions,
    ) -> Result<Deleted<T>, ApiError> {
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        match self.send::<Value>(&call, Some(&body), JSON).await {
            Ok(answer) if answer["kind"] == "Status" || answer["metadata"]["deletionTimestamp"].is_null() => {
                Ok(Deleted::Gone)
            }
            Ok(object) => {
                let object = serde_json::from_value(object);
                object
                    .map(Deleted::Marked)
                    .map_err(|error| ApiError::undecodable(&call.what, StatusCode::OK, error))
            }
            Err(error) if error.is_not_found() => Ok(Deleted::Gone),
            Err(error) => Err(error),
        }
    }

    /// Sends a request, counts it if it asks for a change, and decodes the answer.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        call: &Call,
        body: Option<&(impl Serialize + ?Sized)>,
        media_type: &'static str,
    ) -> Result<T, ApiError> {
        let body =
            body.map(serde_json::to_vec).transpose().map_err(|error| ApiError::invalid(&call.what, error))?;
        let request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(header::ACCEPT, JSON)
            .header(header::CONTENT_TYPE, media_type)
            .body(Body::from(body.unwrap_or_default()))
            .map_err(|error| ApiError::invalid(&call.what, error))?;
        let answer = self.answer(call, request).await;
        if !call.resource.is_empty() {
            let code = match &answer {
                Ok((status, _)) => status.as_str().to_owned(),
                Err(error) => error.code.to_string(),
            };
            API_WRITES.with_label_values(&[&*call.resource, call.verb, &*code]).inc();
        }
        let (status, body) = answer?;
        serde_json::from_slice(&body).map_err(|error| ApiError::undecodable(&call.what, status, error))
    }

    async fn answer(&self, call: &Call, request: Request<Body>) -> Result<(StatusCode, Bytes), ApiError> {
        let unanswered = |error| ApiError::unanswered(&call.what, error);
        let response = self.client.send(request).await.map_err(unanswered)?;
        let (status, asked) = (response.status(), retry_after(response.headers()));
        let body = response.into_body().collect().await.map_err(unanswered)?.to_bytes();
        if status.is_success() {
            Ok((status, body))
        } else {
            Err(ApiError::refused(&call.what, status, &body, asked))
        }
    }
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
/// No body.
pub(crate) const NOTHING: Option<&Value> = None;

impl Call {
    fn of<T: Object>(method: Method, verb: &'static str, key: &Key, sub: Sub) -> Self {
        let collection = collection::<T>(&key.namespace);
        let below = match sub {
            Sub::Main => "",
            Sub::Status => "/status",
        };
        Self {
            path: format!("{collection}/{}{below}", encoded(&key.name)),
            resource: if method == Method::GET {
                String::new()
            } else {
                format!("{}{below}", T::plural(&()))
            },
            what: format!("{verb} {} `{key}`", T::kind(&())),
            method,
            verb,
        }
    }

    /// A request about a kind that is known by name only.
    pub(crate) fn new(method: Method, verb: &'static str, path: String, plural: &str) -> Self {
        let resource = if method == Method::GET { String::new() } else { plural.to_owned() };
        Self { what: format!("{verb} `{path}`"), method, path, resource, verb }
    }

    /// A question that is asked with a POST and changes nothing.
    pub(crate) fn question(path: &'static str) -> Self {
        let what = format!("ask `{path}`");
        Self { method: Method::POST, path: path.to_owned(), resource: String::new(), verb: "create", what }
    }
}

/// The path of a kind, in a namespace unless that is empty.
fn collection<T: Object>(namespace: &str) -> String {
    T::url_path(&(), Some(namespace).filter(|namespace| !namespace.is_empty()).map(encoded).as_deref())
}

pub(crate) fn found<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The server has two ways to say that a UID precondition did not hold, and no reason of its own for it.
fn is_about_uid(message: &str) -> bool {
    message.contains("UID in precondition") || message.contains("UID in the precondition")
}

fn blocked(error: ApiError) -> Eviction {
    let causes = error.causes.iter().map(|(_, words)| words.as_str()).filter(|words| !words.is_empty());
    let message = std::iter::once(error.words()).chain(causes).collect::<Vec<_>>().join(" ");
    Eviction::Blocked { message, retry_after: error.retry_after }
}

/// Escapes everything but what is allowed everywhere in a URL. Names may come from a user's object, so a slash in one must
/// not reach another path.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    // A dot segment would be resolved away before it reaches the server.
    if out == "." || out == ".." { out.replace('.', "%2E") } else { out }
}

#[cfg(test)]
mod tests;
