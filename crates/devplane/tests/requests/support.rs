//! A plane in virtual time, and requests to it without a runtime.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::Body as _;
use jiff::{SignedDuration, Timestamp};
use mapi_devplane::{Body, Environment, Options, Plane, User};
use serde_json::Value;

/// Time that a test moves, and numbers that repeat.
struct Virtual {
    now: Mutex<Timestamp>,
    count: AtomicU64,
}

impl Environment for Virtual {
    fn now(&self) -> Timestamp {
        *self.now.lock().expect("nobody panics with it")
    }

    fn random(&self) -> u64 {
        // A multiplier that spreads the count over all bits (Knuth's for 64 bits).
        self.count.fetch_add(1, Ordering::Relaxed).wrapping_mul(6_364_136_223_846_793_005).rotate_left(29)
    }
}

pub struct World {
    pub plane: Plane,
    time: Arc<Virtual>,
}

impl World {
    pub fn new() -> World {
        let start = "2026-01-01T00:00:00Z".parse().expect("a time");
        let time = Arc::new(Virtual { now: Mutex::new(start), count: AtomicU64::new(1) });
        let plane = Plane::new(time.clone(), Options::default());
        World { plane, time }
    }

    /// Lets seconds pass, one by one.
    pub fn pass(&self, seconds: i64) {
        for _ in 0..seconds {
            *self.time.now.lock().expect("nobody panics with it") += SignedDuration::from_secs(1);
            self.plane.work();
        }
    }

    /// A request, its status code and its body.
    pub fn ask(&self, method: &str, path: &str, body: Value) -> (StatusCode, Value) {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.ask_as(method, path, content, body)
    }

    /// The same with a body of some type.
    pub fn ask_as(&self, method: &str, path: &str, content: &str, body: Value) -> (StatusCode, Value) {
        let (code, mut body) = self.send(method, path, content, body);
        let text = chunk(&mut body).unwrap_or_default();
        (code, serde_json::from_slice(&text).unwrap_or_else(|_| String::from_utf8_lossy(&text).into()))
    }

    /// A watch.
    pub fn watch(&self, path: &str) -> Watch {
        let (code, body) = self.send("GET", path, "application/json", Value::Null);
        assert_eq!(code, StatusCode::OK);
        Watch { body, lines: Vec::new(), has_ended: false }
    }

    fn send(&self, method: &str, path: &str, content: &str, body: Value) -> (StatusCode, Body) {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body)
            .expect("a request");
        let user = User::admin();
        let mut answer = pin!(self.plane.call(request, &user));
        match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => {
                let (head, body) = response.into_parts();
                (head.status, body)
            }
            Poll::Pending => panic!("an answer without webhooks needs no waiting"),
        }
    }
}

pub struct Watch {
    body: Body,
    lines: Vec<Value>,
    has_ended: bool,
}

impl Watch {
    /// The next event, if there is one now.
    pub fn take(&mut self) -> Option<Value> {
        if self.lines.is_empty() {
            self.poll();
        }
        if self.lines.is_empty() { None } else { Some(self.lines.remove(0)) }
    }

    /// Whether the watch is over, with all its events taken.
    pub fn has_ended(&mut self) -> bool {
        self.poll();
        self.has_ended && self.lines.is_empty()
    }

    fn poll(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            match std::pin::Pin::new(&mut self.body).poll_frame(&mut context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.into_data().expect("a watch has no trailers");
                    let text = String::from_utf8(data.to_vec()).expect("JSON is UTF-8");
                    self.lines.extend(
                        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("an event")),
                    );
                }
                Poll::Ready(Some(Err(never))) => match never {},
                Poll::Ready(None) => {
                    self.has_ended = true;
                    return;
                }
                Poll::Pending => return,
            }
        }
    }
}

fn chunk(body: &mut Body) -> Option<Bytes> {
    match std::pin::Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
        Poll::Ready(_) | Poll::Pending => None,
    }
}
