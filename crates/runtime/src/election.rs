//! election
use std::{future::Future, sync::Arc, time::Duration};
use crate::{CancellationToken, clock::Clock, writes::Writer};
/// x
#[derive(Clone, Debug)]
pub struct ElectionConfig {
    /// x
    pub namespace: String,
    /// x
    pub lease: String,
    /// x
    pub identity: String,
    /// x
    pub duration: Duration,
    /// x
    pub renew: Duration,
    /// x
    pub retry: Duration,
}
/// x
pub struct Leadership;
impl Leadership {
    /// x
    pub async fn acquire(_writer: Writer, _config: ElectionConfig, _clock: Arc<dyn Clock>, _stop: CancellationToken) -> Option<Self> { todo!() }
    /// x
    pub fn lost(&self) -> impl Future<Output = ()> + Send + 'static { async { todo!() } }
    /// x
    pub async fn release(self) { todo!() }
}
