//! Objects handed to clouds whose far side is Kubernetes objects: a cache and writes of one kind, no client.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use mapi_api::{Key, Object};
use mapi_cloud::{Objects, StoreError};
use mapi_runtime::store::{Change, Store};
use mapi_runtime::writes::{ApiError, Deleted, Preconditions, Sub, Writer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

/// A cache of one kind and the way to write it, under the cloud's own user agent.
pub struct ObjectStore<T: 'static> {
    store: Store<T>,
    writer: Writer,
}

impl<T: 'static> ObjectStore<T> {
    /// Objects of a kind. The caller feeds the cache.
    pub fn new(store: Store<T>, writer: Writer) -> Self {
        Self { store, writer }
    }
}

fn store_error(error: ApiError) -> StoreError {
    if error.is_not_found() {
        StoreError::NotFound
    } else if error.is_already_exists() {
        StoreError::AlreadyExists
    } else if error.is_conflict() {
        StoreError::Conflict(error.message)
    } else {
        match error.code {
            400 | 422 => StoreError::Invalid(error.message),
            401 | 403 => StoreError::Forbidden(error.message),
            _ => StoreError::NoAnswer(error.message),
        }
    }
}

#[async_trait]
impl<T> Objects<T> for ObjectStore<T>
where
    T: Object + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    fn cached(&self, key: &Key) -> Option<Arc<T>> {
        self.store.get(key)
    }

    fn cached_in(&self, namespace: &str) -> Vec<Arc<T>> {
        self.store.in_namespace(namespace)
    }

    async fn get(&self, key: &Key) -> Result<Option<T>, StoreError> {
        self.writer.get::<T>(key).await.map_err(store_error)
    }

    async fn create(&self, object: &T) -> Result<T, StoreError> {
        let mut value =
            serde_json::to_value(object).map_err(|error| StoreError::Invalid(error.to_string()))?;
        value["apiVersion"] = T::api_version(&()).as_ref().into();
        value["kind"] = T::kind(&()).as_ref().into();
        self.writer.create::<T>(&object.key().namespace, &value).await.map_err(store_error)
    }

    async fn patch(&self, key: &Key, patch: &Value) -> Result<T, StoreError> {
        self.writer.merge_patch::<T>(key, Sub::Main, patch).await.map_err(store_error)
    }

    async fn delete(&self, key: &Key, uid: &str) -> Result<Option<T>, StoreError> {
        let preconditions = Preconditions { uid: Some(uid.into()), resource_version: None };
        match self.writer.delete::<T>(key, preconditions).await.map_err(store_error)? {
            Deleted::Gone => Ok(None),
            Deleted::Marked(object) => Ok(Some(object)),
        }
    }

    fn changes(&self) -> BoxStream<'static, Arc<T>> {
        // Unbounded, but it holds shared pointers to objects that the cache holds too, and is drained at once.
        let (sender, receiver) = mpsc::unbounded_channel();
        self.store.subscribe(move |change| {
            let object = match change {
                Change::Added(object, _) | Change::Updated { new: object, .. } | Change::Removed(object) => {
                    object
                }
            };
            // The receiver is gone only when the process stops.
            let _ = sender.send(Arc::clone(object));
        });
        Box::pin(futures::stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|object| (object, receiver))
        }))
    }
}
