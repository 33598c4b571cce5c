//! worker
use std::{fmt::Display, future::Future, hash::Hash, time::Duration};
use crate::{Error, queue::Queue};
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// x
    Done,
    /// x
    After(Duration),
    /// x
    Backoff,
}
/// x
pub async fn run<K, F, Fut>(_queue: Queue<K>, _workers: usize, _reconcile: F)
where
    K: Clone + Eq + Hash + Display + Send + Sync + 'static,
    F: Fn(K) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Requeue, Error>> + Send + 'static,
{ todo!() }
