//! watch
use tokio::task::JoinHandle;
use serde::de::DeserializeOwned;
use mapi_api::Object;
use crate::{store::Store, CancellationToken};
/// Which namespaces are watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every namespace, or a cluster-scoped kind.
    All,
    /// One namespace.
    Namespace(String),
}
/// Which objects are watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Field selector.
    pub fields: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
}
/// x
pub fn run_watch<T>(_client: kube::Client, _scope: Scope, _filter: Filter, _store: Store<T>, _stop: CancellationToken) -> JoinHandle<()>
where T: Object + Clone + std::fmt::Debug + DeserializeOwned + Send + Sync + 'static { todo!() }
