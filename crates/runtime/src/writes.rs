//! writes
use std::time::Duration;
use mapi_api::{Key, Object};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use crate::Error;
/// x
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// x
    pub code: u16,
    /// x
    pub reason: String,
    /// x
    pub message: String,
    /// x
    pub retry_after: Option<Duration>,
    #[source]
    source: Option<Error>,
}
impl ApiError {
    /// An answer of the server, for tests and for errors found on our side.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self { Self { code, reason: reason.into(), message: message.into(), retry_after: None, source: None } }
    /// x
    pub fn is_not_found(&self) -> bool { todo!() }
    /// x
    pub fn is_conflict(&self) -> bool { todo!() }
    /// x
    pub fn is_already_exists(&self) -> bool { todo!() }
    /// x
    pub fn is_unknown_outcome(&self) -> bool { todo!() }
}
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sub {
    /// x
    Main,
    /// x
    Status,
}
/// x
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preconditions {
    /// x
    pub uid: Option<String>,
    /// x
    pub resource_version: Option<String>,
}
/// x
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted<T> {
    /// x
    Gone,
    /// x
    Marked(T),
}
/// x
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// x
    Accepted,
    /// x
    Gone,
    /// x
    Blocked {
        /// x
        message: String,
        /// x
        retry_after: Option<Duration>,
    },
    /// x
    NamespaceTerminating,
}
/// x
#[derive(Clone)]
pub struct Writer {
    /// x
    pub client: kube::Client,
}
impl Writer {
    /// x
    pub fn new(client: kube::Client) -> Self { Self { client } }
    /// x
    pub async fn merge_patch<T: Object + DeserializeOwned>(&self, _key: &Key, _sub: Sub, _patch: &Value) -> Result<T, ApiError> { todo!() }
    /// x
    pub async fn strategic_patch<T: Object + DeserializeOwned>(&self, _key: &Key, _sub: Sub, _patch: &Value) -> Result<T, ApiError> { todo!() }
    /// x
    pub async fn create<T: Object + DeserializeOwned>(&self, _namespace: &str, _object: &Value) -> Result<T, ApiError> { todo!() }
    /// x
    pub async fn replace<T: Object + Serialize + DeserializeOwned>(&self, _object: &T) -> Result<T, ApiError> { todo!() }
    /// x
    pub async fn delete<T: Object + DeserializeOwned>(&self, _key: &Key, _preconditions: Preconditions) -> Result<Deleted<T>, ApiError> { todo!() }
    /// x
    pub async fn get<T: Object + DeserializeOwned>(&self, _key: &Key) -> Result<Option<T>, ApiError> { todo!() }
    /// x
    pub async fn list<T: Object + DeserializeOwned>(&self, _namespace: Option<&str>, _fields: Option<&str>, _labels: Option<&str>) -> Result<Vec<T>, ApiError> { todo!() }
    /// x
    pub async fn evict(&self, _pod: &Key, _uid: &str, _grace_s: Option<i64>) -> Result<Eviction, ApiError> { todo!() }
    /// x
    pub async fn get_dynamic(&self, _api_version: &str, _plural: &str, _key: &Key) -> Result<Option<Value>, ApiError> { todo!() }
    /// x
    pub async fn create_dynamic(&self, _api_version: &str, _plural: &str, _namespace: &str, _object: &Value) -> Result<Value, ApiError> { todo!() }
    /// x
    pub async fn delete_dynamic(&self, _api_version: &str, _plural: &str, _key: &Key, _preconditions: Preconditions) -> Result<Deleted<Value>, ApiError> { todo!() }
    /// x
    pub async fn resource_of(&self, _api_version: &str, _kind: &str) -> Result<Option<String>, ApiError> { todo!() }
}
