//! The client to the API server: where it is, who we are, TLS, connections. How requests are limited and tried again is
//! in `govern`. Never here: paths or kinds.

use std::path::Path;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Bytes;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};

use crate::Error;
use crate::govern::{Governed, Limits};

/// How a client behaves towards the API server.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Value of the `User-Agent` header.
    pub user_agent: &'static str,
    /// Requests per second; 0 = unlimited.
    pub qps: f32,
    /// Requests that may be sent at once after a pause.
    pub burst: u32,
    /// Requests in flight, watches not counted; 0 = unlimited. Also bounds the idle connections that are kept.
    pub in_flight: usize,
    /// For one attempt of a request.
    pub timeout: Duration,
}

impl ClientOptions {
    /// User agent of the controllers.
    pub const OPERATOR: &'static str = concat!("machine-api-operator/", env!("CARGO_PKG_VERSION"));
    /// User agent of the simulated cloud, so that an audit log tells the two apart.
    pub const SIMULATED_CLOUD: &'static str =
        concat!("machine-api-simulated-cloud/", env!("CARGO_PKG_VERSION"));
}

impl Default for ClientOptions {
    /// No limit but 32 requests in flight: the server's own priority and fairness decides, and its 429 is waited out.
    fn default() -> Self {
        let timeout = Duration::from_secs(30);
        Self { user_agent: Self::OPERATOR, qps: 0.0, burst: 0, in_flight: 32, timeout }
    }
}

/// Two seconds: an idle connection costs about 100 KB here and a goroutine at the server, and a burst opens as many as
/// requests are in flight. Opening one again costs about a millisecond of CPU, which once in two seconds is nothing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Idle connections kept without a limit of requests in flight.
const IDLE_CONNECTIONS: usize = 32;

/// The configuration from a kubeconfig file, else that of the pod.
pub async fn config(kubeconfig: Option<&Path>) -> Result<kube::Config, Error> {
    let mut config = match kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)?;
            kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::incluster()?,
    };
    // Retries are ours and know idempotence (design decision 4): this would send a create again after a time-out.
    config.default_retry = false;
    Ok(config)
}

/// A client. Must be called inside the async runtime.
pub fn client(config: kube::Config, options: &ClientOptions) -> Result<kube::Client, Error> {
    if config.proxy_url.is_some() {
        tracing::warn!("proxies are not supported, the API server is contacted directly");
    }
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    // A watch may be silent for minutes: without probes a vanished server is noticed only at its end.
    connector.set_keepalive(Some(Duration::from_secs(30)));
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let idle = if options.in_flight == 0 { IDLE_CONNECTIONS } else { options.in_flight };
    let http: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(idle)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(http);
    let namespace = config.default_namespace;
    Ok(kube::Client::new(Governed::new(service, Limits::new(options)?), namespace))
}

/// A client whose requests a service answers, for example an API server in this process: with the same limits and
/// second attempts as one over the network. Must be called inside the async runtime.
pub fn client_over<S, B>(service: S, options: &ClientOptions) -> Result<kube::Client, Error>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let service = service.map_err(Into::into);
    Ok(kube::Client::new(Governed::new(service, Limits::new(options)?), "default"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use http_body_util::Full;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_over_a_service_says_who_it_is_and_waits_out_a_refusal() {
        let refusals = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&refusals);
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            let agent = request.headers()[http::header::USER_AGENT].to_str().unwrap().to_owned();
            let (status, text) = if is_first { (429, "later".to_owned()) } else { (200, agent) };
            let answer = Response::builder().status(status).body(Full::new(Bytes::from(text)));
            async move { Ok::<_, Infallible>(answer.unwrap()) }
        });
        let client = client_over(service, &ClientOptions::default()).unwrap();
        let request = Request::get("/version").body(vec![]).unwrap();
        assert_eq!(client.request_text(request).await.unwrap(), ClientOptions::OPERATOR);
        assert_eq!(refusals.load(Ordering::Relaxed), 2);
    }
}
