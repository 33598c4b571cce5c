//! queue
use std::time::Duration;
use std::hash::Hash;
use std::marker::PhantomData;
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// x
    pub base: Duration,
    /// x
    pub max: Duration,
}
impl Default for Backoff { fn default() -> Self { Self { base: Duration::from_millis(5), max: Duration::from_secs(1000) } } }
/// x
pub struct Queue<K>(PhantomData<K>);
impl<K> Clone for Queue<K> { fn clone(&self) -> Self { todo!() } }
impl<K: Clone + Eq + Hash> Queue<K> {
    /// x
    pub fn new(_name: &'static str, _backoff: Backoff) -> Self { todo!() }
    /// x
    pub fn name(&self) -> &'static str { todo!() }
    /// x
    pub fn add(&self, _key: K) { todo!() }
    /// x
    pub fn add_low(&self, _key: K) { todo!() }
    /// x
    pub fn add_after(&self, _key: K, _delay: Duration) { todo!() }
    /// x
    pub fn add_backoff(&self, _key: K) -> Duration { todo!() }
    /// x
    pub fn forget(&self, _key: &K) { todo!() }
    /// x
    pub async fn next(&self) -> Option<K> { todo!() }
    /// x
    pub fn done(&self, _key: &K) { todo!() }
    /// x
    pub fn close(&self) { todo!() }
    /// x
    pub fn len(&self) -> usize { todo!() }
    /// x
    pub fn is_empty(&self) -> bool { todo!() }
    /// x
    pub fn failures(&self, _key: &K) -> u32 { todo!() }
}
