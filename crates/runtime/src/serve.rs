//! The endpoints of the process: metrics over HTTPS for those who may read them, health over plain HTTP for everybody.
//! Never here: what is measured or checked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::metrics::CONTENT_TYPE;
use crate::review::{Reviewer, Verdict};
use crate::tls::Certificate;
use crate::worker::chain;
use crate::writes::Writer;
use crate::{CancellationToken, Error};

/// Ten seconds for a handshake and for the head of a request: longer than any scraper takes, too short to pile up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A minute for a whole connection: one scrape or probe. Who wants more connects again.
const LIFETIME: Duration = Duration::from_secs(60);

/// Connections at once, for each endpoint.
const CONNECTIONS: usize = 16;

/// An endpoint that is served.
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    /// Ends after the process was told to stop.
    pub task: JoinHandle<()>,
}

type Named = (Path, &'static str, Check);
type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Named checks of the process. Clones share them.
#[derive(Clone, Default)]
pub struct Checks(Arc<RwLock<Vec<Named>>>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Healthz,
    Readyz,
}

impl Checks {
    /// Adds a check that must hold for the process to live on: if it fails, the process is restarted.
    pub fn healthz(
        &self,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.add(Path::Healthz, name, Arc::new(check));
    }

    /// Adds a check that must hold for the process to count as ready.
    pub fn readyz(&self, name: &'static str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        self.add(Path::Readyz, name, Arc::new(check));
    }

    fn add(&self, path: Path, name: &'static str, check: Check) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push((path, name, check));
    }

    fn run(&self, path: Path) -> (StatusCode, String) {
        let checks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let failures = checks.iter().filter(|(of, ..)| *of == path).filter_map(|(_, name, check)| {
            let why = check().err()?;
            Some(format!("{name}: {why}\n"))
        });
        let text: String = failures.collect();
        if text.is_empty() {
            (StatusCode::OK, "ok\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, text)
        }
    }
}

/// Serves `/healthz` and `/readyz` until `stop`. An address is `host:port` or `:port`; `0` or nothing switches it off.
pub async fn health(bind: &str, checks: Checks, stop: CancellationToken) -> Result<Option<Serving>, Error> {
    let Some(listener) = listen(bind).await? else { return Ok(None) };
    let answer = move |method: Method, path: String, _: HeaderMap| {
        let answer = match &*path {
            _ if method != Method::GET && method != Method::HEAD => plain(StatusCode::METHOD_NOT_ALLOWED),
            "/healthz" => checks.run(Path::Healthz),
            "/readyz" => checks.run(Path::Readyz),
            _ => plain(StatusCode::NOT_FOUND),
        };
        std::future::ready(answer)
    };
    serve(listener, stop, async |stream| Ok::<TcpStream, Error>(stream), answer).map(Some)
}

/// Serves `/metrics` until `stop`, to bearers of a token for whom the API server allows `get` of that path.
///
/// The certificate is `tls.crt` and `tls.key` of `tls_dir`, re-read when they change; without one it is self-signed.
pub async fn metrics(
    bind: &str,
    tls_dir: Option<PathBuf>,
    client: kube::Client,
    stop: CancellationToken,
) -> Result<Option<Serving>, Error> {
    let Some(listener) = listen(bind).await? else { return Ok(None) };
    let certificate = Arc::new(Certificate::new(tls_dir)?);
    let reviewer = Arc::new(Reviewer::new(Writer::new(client)));
    let secure = move |stream: TcpStream| {
        let acceptor = certificate.acceptor();
        async move { Ok::<_, Error>(timeout(PATIENCE, acceptor.accept(stream)).await??) }
    };
    let answer = move |method: Method, path: String, headers: HeaderMap| {
        let reviewer = reviewer.clone();
        async move {
            match &*path {
                "/metrics" if method == Method::GET => metrics_for(&reviewer, &headers).await,
                "/metrics" => plain(StatusCode::METHOD_NOT_ALLOWED),
                _ => plain(StatusCode::NOT_FOUND),
            }
        }
    };
    serve(listener, stop, secure, answer).map(Some)
}

async fn metrics_for(reviewer: &Reviewer, headers: &HeaderMap) -> (StatusCode, String) {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = value
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, token)) = token else { return plain(StatusCode::UNAUTHORIZED) };
    match reviewer.may_get(token.trim(), "/metrics").await {
        Ok(Verdict::Allowed) => (StatusCode::OK, crate::metrics::text()),
        Ok(Verdict::Forbidden) => plain(StatusCode::FORBIDDEN),
        Ok(Verdict::Unauthenticated) => plain(StatusCode::UNAUTHORIZED),
        Err(error) => {
            tracing::warn!(error = chain(&error), "cannot decide who reads the metrics");
            plain(StatusCode::SERVICE_UNAVAILABLE)
        }
    }
}

fn plain(status: StatusCode) -> (StatusCode, String) {
    (status, format!("{status}\n"))
}

async fn listen(bind: &str) -> Result<Option<TcpListener>, Error> {
    if matches!(bind, "" | "0") {
        return Ok(None);
    }
    let tried = match bind.strip_prefix(':') {
        // All addresses, of both families where the host has both.
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(bind).await,
    };
    tried.map(Some).map_err(|error| format!("cannot listen on `{bind}`: {error}").into())
}

/// Serves connections. `secure` turns each into a stream, `answer` a request into a status and a text.
fn serve<S, SFut, IO, F, Fut>(
    listener: TcpListener,
    stop: CancellationToken,
    secure: S,
    answer: F,
) -> Result<Serving, Error>
where
    S: Fn(TcpStream) -> SFut + Clone + Send + Sync + 'static,
    SFut: Future<Output = Result<IO, Error>> + Send,
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Method, String, HeaderMap) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = (StatusCode, String)> + Send + 'static,
{
    let address = listener.local_addr()?;
    let accept = async move {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let permit = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    // Out of file descriptors, usually: trying at once would only burn time.
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let (secure, answer) = (secure.clone(), answer.clone());
            tokio::spawn(async move {
                // What goes wrong on one connection is its peer's affair.
                let _ = timeout(LIFETIME, connection(stream, secure, answer)).await;
                drop(permit);
            });
        }
    };
    let task = tokio::spawn(async move {
        stop.run_until_cancelled(accept).await;
    });
    Ok(Serving { address, task })
}

async fn connection<S, SFut, IO, F, Fut>(stream: TcpStream, secure: S, answer: F) -> Result<(), Error>
where
    S: Fn(TcpStream) -> SFut,
    SFut: Future<Output = Result<IO, Error>>,
    IO: AsyncRead + AsyncWrite + Unpin + 'static,
    F: Fn(Method, String, HeaderMap) -> Fut,
    Fut: Future<Output = (StatusCode, String)>,
{
    let stream = secure(stream).await?;
    let service = service_fn(|request: Request<Incoming>| {
        let (head, _) = request.into_parts();
        let answer = answer(head.method, head.uri.path().to_owned(), head.headers);
        async move {
            let (status, text) = answer.await;
            let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, CONTENT_TYPE);
            if status == StatusCode::UNAUTHORIZED {
                response = response.header(header::WWW_AUTHENTICATE, "Bearer");
            }
            response.body(Full::new(Bytes::from(text)))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    http.serve_connection(TokioIo::new(stream), service).await?;
    Ok(())
}

#[cfg(test)]
mod tests;
