//! client
use std::path::Path;
use std::time::Duration;
use crate::Error;
/// How a client behaves towards the API server.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Value of the `User-Agent` header.
    pub user_agent: &'static str,
    /// Requests per second, 0 = unlimited.
    pub qps: f32,
    /// Requests that may be sent at once after a pause.
    pub burst: u32,
    /// Requests in flight, watches not counted; also the number of idle connections kept. 0 = unlimited.
    pub in_flight: usize,
    /// Time for one attempt of a request.
    pub timeout: Duration,
}
/// x
pub async fn config(_kubeconfig: Option<&Path>) -> Result<kube::Config, Error> { todo!() }
/// x
pub fn client(_config: kube::Config, _options: &ClientOptions) -> Result<kube::Client, Error> { todo!() }
