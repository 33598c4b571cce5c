//! An API server that answers from a function. For tests only.

use std::sync::{Arc, Mutex};

use http::{Request, Response, header};
use http_body_util::Full;
use hyper::body::Bytes;
use kube::client::Body;
use serde_json::Value;
use tower::BoxError;

use crate::writes::Writer;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) media_type: String,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn line(&self) -> String {
        format!("{} {} {}", self.method, self.path, self.media_type)
    }
}

/// A writer to a server whose answers, status and body, come from `f`; and the requests that arrived. A body that is a
/// string is sent as plain text.
pub(crate) fn answering(
    f: impl Fn(&Seen) -> (u16, Value) + Send + Sync + 'static,
) -> (Writer, Arc<Mutex<Vec<Seen>>>) {
    let (all, f) = (Arc::new(Mutex::new(Vec::new())), Arc::new(f));
    let seen = all.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (all, f) = (all.clone(), f.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let seen = Seen {
                method: head.method.to_string(),
                path: head.uri.to_string(),
                media_type: head
                    .headers
                    .get(header::CONTENT_TYPE)
                    .map_or("", |value| value.to_str().unwrap())
                    .to_owned(),
                body: if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? },
            };
            let (status, answer) = f(&seen);
            all.lock().unwrap().push(seen);
            let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            Ok::<_, BoxError>(Response::builder().status(status).body(Full::new(Bytes::from(text)))?)
        }
    });
    (Writer::new(kube::Client::new(service, "default")), seen)
}
