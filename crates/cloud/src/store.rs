//! A narrow typed store, for clouds whose far side is Kubernetes objects. They get this instead of a client.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mapi_api::Key;

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There is no such object.
    #[error("not found")]
    NotFound,
    /// There is such an object already.
    #[error("already exists")]
    AlreadyExists,
    /// The object is another one or has changed.
    #[error("conflict: {0}")]
    Conflict(String),
    /// The server refused the content.
    #[error("refused: {0}")]
    Invalid(String),
    /// The server refused the caller.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// No answer; a write may have taken effect.
    #[error("no answer: {0}")]
    NoAnswer(String),
}

/// Objects of one kind.
#[async_trait]
pub trait Objects<T>: Send + Sync + 'static {
    /// The object in the cache, which may lag behind.
    fn cached(&self, key: &Key) -> Option<Arc<T>>;
    /// The objects of a namespace in the cache.
    fn cached_in(&self, namespace: &str) -> Vec<Arc<T>>;
    /// The object at the server.
    async fn get(&self, key: &Key) -> Result<Option<T>, StoreError>;
    /// Creates an object.
    async fn create(&self, object: &T) -> Result<T, StoreError>;
    /// Merge-patches an object.
    async fn patch(&self, key: &Key, patch: &serde_json::Value) -> Result<T, StoreError>;
    /// Deletes the object with this UID. `None`: it is gone; else it is marked and held by a finalizer.
    async fn delete(&self, key: &Key, uid: &str) -> Result<Option<T>, StoreError>;
    /// Objects as they change; a deleted object is told with its last state.
    fn changes(&self) -> BoxStream<'static, Arc<T>>;
}
