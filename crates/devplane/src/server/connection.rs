//! One connection: who sends, how much, for how long. Never here: what a request is answered.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::plane::{Body, Plane};
use crate::status::ApiError;

/// Ten seconds for a handshake: longer than any client takes, too short to pile up.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Two minutes for the head of a request, which is also how long a connection may lie idle. Clients give theirs up after
/// 90 seconds; were the server first, a request could meet the end of its connection.
const HEAD: Duration = Duration::from_secs(120);

/// A minute for the body of a request.
const REQUEST: Duration = Duration::from_secs(60);

/// Bytes of a body. Source: the default of Kubernetes.
const LIMIT: usize = 3 << 20;

/// Serves one connection until it or the server ends.
pub(super) async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    plane: Plane,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), String> {
    // A watch sends small pieces that must not wait for each other.
    stream.set_nodelay(true).map_err(|error| error.to_string())?;
    let handshake = timeout(HANDSHAKE, acceptor.accept(stream)).await;
    let stream =
        handshake.map_err(|_| "no handshake in time".to_owned())?.map_err(|error| error.to_string())?;
    let ends = stopped.clone();
    let service = service_fn(move |request| {
        let (plane, ends) = (plane.clone(), ends.clone());
        async move { answer(request, &plane).await.map(|response| response.map(|body| Until::new(body, ends))) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let result = tokio::select! {
        result = &mut connection => result,
        () = ended(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    result.map_err(|error| error.to_string())
}

/// Ends when the server does; one that is gone has ended too.
pub(super) async fn ended(stopped: &mut watch::Receiver<bool>) {
    drop(stopped.wait_for(|is_stopped| *is_stopped).await);
}

/// Reads a request, finds out who sends it, and hands it to the plane.
async fn answer(request: Request<Incoming>, plane: &Plane) -> Result<Response<Body>, String> {
    let Some(user) = bearer(request.headers()).and_then(|token| plane.authenticate(token)) else {
        return Ok(refuse(&ApiError::new(401, "Unauthorized", "Unauthorized")));
    };
    let (head, body) = request.into_parts();
    match read(body).await? {
        Some(body) => Ok(plane.call(Request::from_parts(head, body), &user).await),
        None => {
            let message = format!("Request entity too large: limit is {LIMIT}");
            Ok(refuse(&ApiError::new(413, "RequestEntityTooLarge", message)))
        }
    }
}

/// The body of a request; `None` if it is too long.
async fn read(body: Incoming) -> Result<Option<Bytes>, String> {
    if body.size_hint().lower() > LIMIT as u64 {
        return Ok(None);
    }
    let all = timeout(REQUEST, Limited::new(body, LIMIT).collect()).await;
    match all.map_err(|_| "no body in time".to_owned())? {
        Ok(all) => Ok(Some(all.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn refuse(error: &ApiError) -> Response<Body> {
    let text = Bytes::from(error.status().to_string());
    let response = Response::builder()
        .status(error.code)
        .header(CONTENT_TYPE, "application/json")
        .header(CACHE_CONTROL, "no-cache, private")
        .body(Full::new(text).boxed_unsync());
    response.expect("the headers are ours")
}

/// A body that ends with the server if nobody knows how long it is: a watch.
struct Until {
    body: Body,
    stopped: Option<BoxFuture<'static, ()>>,
}

impl Until {
    fn new(body: Body, mut stopped: watch::Receiver<bool>) -> Self {
        let is_stream = body.size_hint().exact().is_none();
        let stopped = is_stream
            .then(|| -> BoxFuture<'static, ()> { Box::pin(async move { ended(&mut stopped).await }) });
        Until { body, stopped }
    }
}

impl http_body::Body for Until {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(stopped) = &mut self.stopped
            && stopped.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
