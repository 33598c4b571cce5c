//! serve
use std::{net::SocketAddr, path::PathBuf};
use tokio::task::JoinHandle;
use crate::{CancellationToken, Error};
/// x
pub struct Serving {
    /// x
    pub address: SocketAddr,
    /// x
    pub task: JoinHandle<()>,
}
/// x
#[derive(Clone, Default)]
pub struct Checks;
impl Checks {
    /// x
    pub fn healthz(&self, _name: &'static str, _check: impl Fn() -> Result<(), String> + Send + Sync + 'static) { todo!() }
    /// x
    pub fn readyz(&self, _name: &'static str, _check: impl Fn() -> Result<(), String> + Send + Sync + 'static) { todo!() }
}
/// x
pub async fn health(_bind: &str, _checks: Checks, _stop: CancellationToken) -> Result<Option<Serving>, Error> { todo!() }
/// x
pub async fn metrics(_bind: &str, _tls_dir: Option<PathBuf>, _client: kube::Client, _stop: CancellationToken) -> Result<Option<Serving>, Error> { todo!() }
