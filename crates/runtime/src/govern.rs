//! Limits and second attempts of requests to the API server. Never here: connections, kinds.
//!
//! A request is sent again only if that cannot do a thing twice: the server refused it before looking at it (429), it was
//! never sent (no connection), or it only reads. An eviction's 429 is an answer (a disruption budget), not a refusal.

use std::collections::hash_map::RandomState;
use std::error::Error as StdError;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Collected, Either};
use hyper::body::Bytes;
use hyper_util::client::legacy;
use kube::client::Body;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tower::{BoxError, Service};

use crate::client::ClientOptions;
use crate::metrics::REQUESTS;

/// A minute: as long as the API server works on one request. After it the caller's own back-off takes over.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ten seconds: the longest pause between two attempts that no `Retry-After` asked for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What all requests of a client share.
pub(crate) struct Limits {
    user_agent: HeaderValue,
    bucket: Option<Bucket>,
    in_flight: Option<Semaphore>,
    timeout: Duration,
}

impl Limits {
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, header::InvalidHeaderValue> {
        Ok(Self {
            user_agent: HeaderValue::from_str(options.user_agent)?,
            bucket: (options.qps > 0.0)
                .then(|| Bucket::new(f64::from(options.qps), f64::from(options.burst.max(1)))),
            in_flight: (options.in_flight > 0).then(|| Semaphore::new(options.in_flight)),
            timeout: options.timeout,
        })
    }
}

/// A service with limits and second attempts.
#[derive(Clone)]
pub(crate) struct Governed<S> {
    inner: S,
    limits: Arc<Limits>,
}

impl<S> Governed<S> {
    pub(crate) fn new(inner: S, limits: Limits) -> Self {
        Self { inner, limits: Arc::new(limits) }
    }
}

/// The answer of a watch is a stream; any other is read whole within its time.
type Answer<B> = Response<Either<Collected<Bytes>, B>>;

impl<S, B> Service<Request<Body>> for Governed<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer<B>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let this = self.clone();
        request.headers_mut().entry(header::USER_AGENT).or_insert_with(|| self.limits.user_agent.clone());
        async move { this.send(request).await }.boxed()
    }
}

impl<S, B> Governed<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn send(self, mut request: Request<Body>) -> Result<Answer<B>, BoxError> {
        let manner = Manner::of(&request);
        let deadline = Instant::now() + PATIENCE;
        for attempt in 0.. {
            let again = copy(&request);
            let answer = Self::attempt(self.inner.clone(), &self.limits, request, &manner).await;
            let status =
                answer.as_ref().map_or("none".to_owned(), |answer| answer.status().as_str().to_owned());
            REQUESTS.with_label_values(&[status.as_str(), manner.method.as_str()]).inc();
            let pause = match &answer {
                Ok(answer) => manner.pause_after_answer(answer.status(), answer.headers(), attempt),
                Err(error) => manner.pause_after_error(&**error, attempt),
            };
            match (pause, again) {
                (Some(pause), Some(next)) if Instant::now() + pause < deadline => {
                    drop(answer);
                    sleep(pause).await;
                    request = next;
                }
                _ => return answer,
            }
        }
        unreachable!("the loop has no end but its deadline")
    }

    async fn attempt(
        mut inner: S,
        limits: &Limits,
        request: Request<Body>,
        manner: &Manner,
    ) -> Result<Answer<B>, BoxError> {
        if let Some(bucket) = &limits.bucket {
            sleep(bucket.take(Instant::now())).await;
        }
        let _permit = match &limits.in_flight {
            Some(in_flight) if !manner.is_watch => Some(in_flight.acquire().await?),
            Some(_) | None => None,
        };
        let call = async {
            poll_fn(|context| inner.poll_ready(context)).await?;
            let answer = inner.call(request).await?;
            let (head, body) = answer.into_parts();
            let body = match manner.is_watch && head.status.is_success() {
                true => Either::Right(body),
                false => Either::Left(body.collect().await.map_err(Into::into)?),
            };
            Ok(Response::from_parts(head, body))
        };
        let late =
            |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {:?}", limits.timeout));
        timeout(limits.timeout, call).await.map_err(late)?
    }
}

/// What of a request decides how it may be treated.
struct Manner {
    method: Method,
    is_watch: bool,
    is_eviction: bool,
}

impl Manner {
    fn of(request: &Request<Body>) -> Self {
        let uri = request.uri();
        let mut parameters = uri.query().unwrap_or_default().split('&');
        Self {
            method: request.method().clone(),
            is_watch: parameters.any(|parameter| matches!(parameter, "watch=true" | "watch=1")),
            is_eviction: uri.path().ends_with("/eviction"),
        }
    }

    fn only_reads(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }

    fn pause_after_answer(&self, status: StatusCode, headers: &HeaderMap, attempt: u32) -> Option<Duration> {
        let is_worth_it = match status {
            StatusCode::TOO_MANY_REQUESTS => !self.is_eviction,
            StatusCode::SERVICE_UNAVAILABLE => self.only_reads(),
            _ => false,
        };
        // Never earlier than the server asks, and not all at once.
        let pause = || {
            retry_after(headers)
                .map_or_else(|| doubled(attempt), |asked| asked + asked.mul_f64(fraction() / 4.0))
        };
        is_worth_it.then(pause)
    }

    fn pause_after_error(&self, error: &(dyn StdError + 'static), attempt: u32) -> Option<Duration> {
        let is_safe = is_never_sent(error) || self.only_reads();
        (is_safe && is_broken_connection(error)).then(|| doubled(attempt))
    }
}

/// What the server asks to wait.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// Whether the connection was never there, so that the server cannot have acted.
pub(crate) fn is_never_sent(error: &(dyn StdError + 'static)) -> bool {
    causes(error).any(|cause| cause.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect))
}

/// A server that restarts: nobody listens, or the connection broke. A wrong certificate is not among these.
fn is_broken_connection(error: &(dyn StdError + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::UnexpectedEof
        )
    })
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn doubled(attempt: u32) -> Duration {
    let pause = Duration::from_millis(100).saturating_mul(2_u32.saturating_pow(attempt)).min(LONGEST_PAUSE);
    pause.mul_f64(0.75 + fraction() / 2.0)
}

/// A number from 0 to 1 that differs between processes and calls. Not for secrets.
pub(crate) fn fraction() -> f64 {
    // The upper 32 bits fit a double exactly.
    f64::from((RandomState::new().hash_one(()) >> 32) as u32) / f64::from(u32::MAX)
}

fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}

/// A token bucket that lends: whoever comes too early is told how long to wait, in order.
struct Bucket {
    per_second: f64,
    burst: f64,
    state: Mutex<(f64, Instant)>,
}

impl Bucket {
    fn new(per_second: f64, burst: f64) -> Self {
        Self { per_second, burst, state: Mutex::new((burst, Instant::now())) }
    }

    fn take(&self, now: Instant) -> Duration {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (tokens, last) = *state;
        let earned = now.saturating_duration_since(last).as_secs_f64() * self.per_second;
        let left = (tokens + earned).min(self.burst) - 1.0;
        *state = (left, now);
        Duration::from_secs_f64((-left / self.per_second).max(0.0))
    }
}

#[cfg(test)]
mod tests;
