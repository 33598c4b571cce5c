//! The service: a request in, an answer out. Never here: sockets, and what a single verb does.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use tokio::sync::Notify;
use tower::Service;

use crate::admission::Caller;
use crate::audit::{Audit, Noted};
use crate::environment::Environment;
use crate::kinds::Kinds;
use crate::loops;
use crate::negotiate::Form;
use crate::options::Options;
use crate::path::Target;
use crate::query::Query;
use crate::state::State;
use crate::status::ApiError;
use crate::verbs::{self, Call, Reply};
use crate::{discovery, openapi};

/// What an answer carries: all of it, or a watch that goes on.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// As in TokenReview.
    pub name: String,
    /// As in TokenReview; empty where there is none.
    pub uid: String,
    /// As in TokenReview.
    pub groups: Vec<String>,
}

impl User {
    /// The user of an administrator.
    pub fn admin() -> User {
        User {
            name: "kubernetes-admin".into(),
            uid: String::new(),
            groups: vec!["system:masters".into(), "system:authenticated".into()],
        }
    }
}

/// The embedded control plane. Clones are the same one.
#[derive(Clone)]
pub struct Plane {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// Wakes whoever runs the loops.
    changed: Notify,
    audit: Option<Arc<Audit>>,
}

impl Plane {
    /// An empty control plane, with the namespaces that every cluster has.
    pub fn new(environment: Arc<dyn Environment>, options: Options) -> Plane {
        let audit = options.audit.clone();
        let state = State::new(environment, options);
        let plane =
            Plane { inner: Arc::new(Inner { state: Mutex::new(state), changed: Notify::new(), audit }) };
        verbs::found(&plane);
        plane.work();
        // What was before the beginning is nobody's past.
        plane.compact();
        plane
    }

    /// Answers a request.
    pub async fn call(&self, request: Request<Bytes>, user: &User) -> Response<Body> {
        let (head, body) = request.into_parts();
        let noted = self.inner.audit.as_ref().and_then(|audit| {
            let agent = head.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
            let now = self.lock().environment.now();
            Some((audit, Noted::of(&head.method, head.uri.path(), agent.unwrap_or_default(), now)?))
        });
        let reply = match self.route(&head.method, &head.uri, &head.headers, &body, user).await {
            Ok(reply) => reply,
            Err(error) => Reply::error(&error),
        };
        // What only reads changes nothing that the loops would have to see; a watch wakes them for its timer.
        if head.method != Method::GET {
            self.poke();
        }
        if let Some((audit, noted)) = noted {
            let now = self.lock().environment.now();
            audit(&noted.event(user, reply.code, now));
        }
        reply.into_response()
    }

    /// Does what the loops have to do now, and says when they have something to do next if nothing changes.
    pub fn work(&self) -> Option<Timestamp> {
        let mut state = self.lock();
        let now = state.environment.now();
        let next = loops::work(&mut state, now);
        let later = state.timers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        due.into_values().filter_map(|watch| watch.upgrade()).for_each(|watch| watch.notify_one());
        let timer = state.timers.keys().next().map(|(at, _)| *at);
        [next, timer].into_iter().flatten().min()
    }

    /// Ends when [`Plane::work`] should be called, because something changed.
    pub async fn changed(&self) {
        self.inner.changed.notified().await;
    }

    /// Hands in what reaches webhooks. Until then, every call of one fails.
    pub fn set_caller(&self, caller: Arc<dyn Caller>) {
        self.lock().caller = Some(caller);
    }

    /// Forgets the past: watches from before now have to begin anew. What a real server does every some minutes.
    pub fn compact(&self) {
        self.lock().storage.compact();
    }

    /// The service that a user's client calls in process.
    pub fn client_service(&self, user: User) -> Local {
        Local { plane: self.clone(), user: Arc::new(user) }
    }

    /// A new token of a user, valid until a time or for good.
    pub fn issue(&self, user: User, expires: Option<Timestamp>) -> String {
        let mut state = self.lock();
        let token = format!("{:016x}{:016x}", state.environment.random(), state.environment.random());
        state.tokens.insert(token.clone(), (user, expires));
        token
    }

    /// Whose token this is, if it is valid.
    pub fn authenticate(&self, token: &str) -> Option<User> {
        let state = self.lock();
        let (user, expires) = state.tokens.get(token)?;
        expires.is_none_or(|expires| state.environment.now() < expires).then(|| user.clone())
    }

    /// Wakes whoever runs the loops.
    pub(crate) fn poke(&self) {
        self.inner.changed.notify_one();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn route(
        &self,
        method: &Method,
        uri: &http::Uri,
        headers: &HeaderMap,
        body: &[u8],
        user: &User,
    ) -> Result<Reply, ApiError> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let path = uri.path();
        let found = Target::parse(path).and_then(|target| {
            let state = self.lock();
            let kind = state.kinds.resource(&target.group, &target.version, &target.plural)?.clone();
            Some((target, kind))
        });
        let Some((target, kind)) = found else {
            return self.beside_resources(method, path, text(header::ACCEPT));
        };
        let mut query = Query::parse(uri.query().unwrap_or_default())?;
        query.fields = query.fields.bind(&kind)?;
        let is_list = method == Method::GET && target.name.is_none() && !query.is_watch;
        let call = Call {
            plane: self,
            api_version: kind.api_version(),
            kind,
            target,
            query,
            form: Form::of(text(header::ACCEPT), is_list)?,
            user,
            agent: text(header::USER_AGENT),
            content_type: text(header::CONTENT_TYPE),
            body,
        };
        let deprecation = call.kind.deprecation.clone();
        let reply = match verbs::answer(call, method).await {
            Ok(reply) => reply,
            Err(error) => Reply::error(&error),
        };
        Ok(reply.warn(deprecation.into_iter().collect()))
    }

    /// Paths that are no resources: health, version, discovery, schemas.
    fn beside_resources(&self, method: &Method, path: &str, accept: &str) -> Result<Reply, ApiError> {
        if method != Method::GET && method != Method::HEAD {
            let kinds = &self.lock().kinds;
            let is_known = path == "/version" || discovery::answer(kinds, path, accept).is_some();
            return match (is_known, is_served(kinds, path)) {
                (true, _) => Err(verbs::not_allowed()),
                (false, true) => Err(ApiError::no_path()),
                (false, false) => Ok(Reply::no_path()),
            };
        }
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            return Ok(Reply::text(200, "ok"));
        }
        let mut state = self.lock();
        if let Some((content_type, value)) = discovery::answer(&state.kinds, path, accept) {
            return Ok(Reply::json_as(content_type.into(), &value));
        }
        let State { documents, kinds, .. } = &mut *state;
        match openapi::answer(documents, kinds, path) {
            Some(text) => Ok(Reply::bytes(text)),
            // A version that a group does not have is told apart from a group that is not there.
            None if is_served(&state.kinds, path) => Err(ApiError::no_path()),
            None => Ok(Reply::no_path()),
        }
    }
}

/// Whether a path is below a group that is served, where what is missing is told apart from a path of nobody's.
fn is_served(kinds: &Kinds, path: &str) -> bool {
    match path.trim_start_matches('/').split('/').collect::<Vec<_>>()[..] {
        ["api", _, ..] => true,
        ["apis", group, _, ..] => kinds.all().any(|kind| kind.group == group && !kind.is_custom()),
        _ => false,
    }
}

/// The control plane as the service of a client in the same process.
#[derive(Clone)]
pub struct Local {
    plane: Plane,
    user: Arc<User>,
}

impl<B> Service<Request<B>> for Local
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<Body>;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, tower::BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Local { plane, user } = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            Ok(plane.call(Request::from_parts(head, body), &user).await)
        })
    }
}

impl Reply {
    fn into_response(self) -> Response<Body> {
        let Reply { code, content_type, warnings, retry_after_s, content } = self;
        let mut builder = Response::builder()
            .status(code)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::CACHE_CONTROL, "no-cache, private");
        for warning in warnings {
            // 299: "miscellaneous persistent warning", the code that Kubernetes uses.
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            builder = builder.header(header::WARNING, format!("299 - \"{text}\""));
        }
        if let Some(seconds) = retry_after_s {
            builder = builder.header(header::RETRY_AFTER, seconds);
        }
        let body = match content {
            verbs::Content::Text(text) => Full::new(text).boxed_unsync(),
            verbs::Content::Watch(watch) => watch.into_body(),
        };
        let response = builder.body(body);
        response.unwrap_or_else(|_| {
            // A warning with a line feed cannot be a header; the answer is worth more than it.
            Response::new(Full::new(Bytes::from_static(b"{}")).boxed_unsync())
        })
    }
}

/// What a client in the same process sends and gets as JSON.
pub(crate) fn status_text(error: &ApiError) -> String {
    error.status().to_string()
}
