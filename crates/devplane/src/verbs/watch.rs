//! Watching: a cursor into the history of a bucket. Never here: what changes.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Call, Content, Reply, read, shown, shown_value};
use crate::kinds::Kind;
use crate::negotiate::Form;
use crate::plane::{Body, Plane};
use crate::query::Query;
use crate::status::ApiError;
use crate::storage::{Change, Compacted, Object};
use crate::table;

/// Changes that are sent at once. Enough to be cheap, few enough to hold the lock shortly.
const BATCH: usize = 256;

/// Half an hour: how long a watch lasts that does not say; Kubernetes takes 30 to 60 minutes.
const LIFETIME_S: u64 = 1800;

/// A minute between two bookmarks, as Kubernetes does.
const BOOKMARKS: SignedDuration = SignedDuration::from_mins(1);

/// A watch under way.
pub(crate) struct Watch {
    plane: Plane,
    kind: Arc<Kind>,
    namespace: Option<String>,
    query: Query,
    form: Form,
    table: table::Options,
    /// Everything up to this revision was sent.
    cursor: u64,
    /// What was there at the beginning, and is still to be sent.
    initial: Vec<Arc<Object>>,
    /// Whether the end of what was there at the beginning is still to be told.
    owes_end_of_list: bool,
    /// Whether a table has told its columns.
    has_columns: bool,
    wake: Arc<Notify>,
    ends: Timestamp,
    bookmark: Timestamp,
    has_ended: bool,
}

/// GET of a collection with `watch`.
pub(super) fn start(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut query = call.query.clone();
    if let Some(name) = &call.target.name {
        query.fields = query.fields.and_name(name);
    }
    check_initial(&query)?;
    let mut state = call.plane.lock();
    let (now, current) = (state.environment.now(), state.storage.revision());
    let from = if query.revision.is_empty() { 0 } else { read::parse_revision(&query.revision)? };
    let wants_initial = query.send_initial_events.unwrap_or(from == 0);
    let is_wanted =
        |object: &&Arc<Object>| query.labels.matches(&object.labels) && query.fields.matches(object);
    let mut initial = Vec::new();
    if wants_initial {
        let objects = state.storage.iter(&call.kind.bucket, call.target.namespace.as_deref());
        initial.extend(objects.filter(is_wanted).cloned());
    }
    let seconds = query.timeout_s.filter(|seconds| *seconds > 0).unwrap_or(LIFETIME_S);
    let ends = now + SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX / 1_000_000_000));
    let wake = Arc::new(Notify::new());
    state.storage.wake(&call.kind.bucket, &wake);
    let mut watch = Watch {
        plane: call.plane.clone(),
        kind: call.kind.clone(),
        namespace: call.target.namespace.clone(),
        form: call.form,
        table: call.table_options(now),
        cursor: if wants_initial || from == 0 { current } else { from },
        initial,
        owes_end_of_list: query.send_initial_events == Some(true),
        query,
        has_columns: false,
        wake,
        ends,
        bookmark: now + BOOKMARKS,
        has_ended: false,
    };
    watch.set_timer(&mut state);
    call.plane.poke();
    let mut reply = Reply::json(200, String::new());
    reply.content = Content::Watch(Box::new(watch));
    Ok(reply)
}

fn check_initial(query: &Query) -> Result<(), ApiError> {
    let errors = match (query.send_initial_events, &*query.revision_match) {
        (Some(_), "NotOlderThan") | (None, "") => return Ok(()),
        (Some(_), _) => vec![crate::status::FieldError::forbidden(
            "resourceVersionMatch",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )],
        (None, _) => vec![crate::status::FieldError::forbidden(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )],
    };
    Err(ApiError::invalid(read::LIST_OPTIONS, &errors))
}

impl Watch {
    /// The body of the answer, which ends with the watch.
    pub(crate) fn into_body(self) -> Body {
        let frames = stream::unfold(self, |mut watch| async move {
            let chunk = watch.next().await?;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from(chunk))), watch))
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// What is to be sent next; `None` at the end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if self.has_ended {
                return None;
            }
            let text = self.take();
            if !text.is_empty() {
                return Some(text);
            }
            if self.has_ended {
                return None;
            }
            self.wake.notified().await;
        }
    }

    /// What there is to send now.
    fn take(&mut self) -> String {
        let plane = self.plane.clone();
        let mut text = String::new();
        let initial = std::mem::take(&mut self.initial);
        let now;
        let taken = {
            let mut state = plane.lock();
            now = state.environment.now();
            let revision = state.storage.revision();
            let taken = state.storage.changes(&self.kind.bucket, self.cursor, BATCH);
            let taken = taken.map(|changes| (changes, revision));
            if now >= self.bookmark {
                self.bookmark = now + BOOKMARKS;
                self.set_timer(&mut state);
                plane.poke();
                if self.query.bookmarks && taken.as_ref().is_ok_and(|(changes, _)| changes.is_empty()) {
                    self.cursor = revision;
                    text.push_str(&self.bookmark_text(false));
                }
            }
            taken
        };
        for object in initial {
            text.push_str(&self.event("ADDED", &object, now));
        }
        if std::mem::take(&mut self.owes_end_of_list) {
            text.push_str(&self.bookmark_text(true));
        }
        match taken {
            Err(compacted) => {
                text.push_str(&self.too_old(compacted));
                self.has_ended = true;
            }
            Ok((changes, revision)) => {
                let is_all = changes.len() < BATCH;
                for change in &changes {
                    self.push_change(change, now, &mut text);
                }
                self.cursor = match changes.last() {
                    Some(last) if !is_all => last.revision,
                    _ => self.cursor.max(revision),
                };
                if !is_all {
                    self.wake.notify_one();
                }
            }
        }
        if now >= self.ends {
            self.has_ended = true;
        }
        text
    }

    fn push_change(&mut self, change: &Change, now: Timestamp, text: &mut String) {
        let was_wanted = change.before.as_ref().is_some_and(|before| self.is_wanted(before));
        let is_wanted = self.is_wanted(&change.now) && !change.is_deletion;
        match (was_wanted, is_wanted) {
            (false, false) => {}
            (false, true) => text.push_str(&self.event("ADDED", &change.now, now)),
            (true, true) => text.push_str(&self.event("MODIFIED", &change.now, now)),
            (true, false) if change.is_deletion => text.push_str(&self.event("DELETED", &change.now, now)),
            (true, false) => {
                // It left the selection: the last state that was in it, at the revision at which it left.
                let before = change.before.as_ref().expect("it was wanted before");
                let mut value = shown_value(&self.kind, before);
                value["metadata"]["resourceVersion"] = change.revision.to_string().into();
                text.push_str(&self.event_of("DELETED", &value, now));
            }
        }
    }

    fn is_wanted(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| object.key.namespace == *namespace)
            && self.query.labels.matches(&object.labels)
            && self.query.fields.matches(object)
    }

    fn event(&mut self, what: &str, object: &Object, now: Timestamp) -> String {
        if self.form == Form::Object {
            return line(what, &shown(&self.kind, object));
        }
        self.event_of(what, &shown_value(&self.kind, object), now)
    }

    fn event_of(&mut self, what: &str, value: &Value, now: Timestamp) -> String {
        match self.form {
            Form::Object => line(what, &value.to_string()),
            Form::Metadata => line(what, &table::partial(value).to_string()),
            Form::Table => {
                let metadata = json!({ "resourceVersion": value["metadata"]["resourceVersion"] });
                let rows = std::slice::from_ref(value);
                // Columns are told once.
                let with_columns = !std::mem::replace(&mut self.has_columns, true);
                let options = table::Options { with_columns, now, ..self.table };
                line(what, &table::table(&self.kind, metadata, rows, options).to_string())
            }
        }
    }

    fn bookmark_text(&self, ends_list: bool) -> String {
        let mut metadata = json!({ "resourceVersion": self.cursor.to_string(), "creationTimestamp": null });
        if ends_list {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let object = match self.form {
            Form::Object => {
                json!({ "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata })
            }
            Form::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            }),
            Form::Table => {
                let object = json!({
                    "kind": self.kind.kind, "apiVersion": self.kind.api_version(), "metadata": metadata,
                });
                let list = json!({ "resourceVersion": self.cursor.to_string() });
                let options = table::Options { with_columns: false, ..self.table };
                table::table(&self.kind, list, &[object], options)
            }
        };
        line("BOOKMARK", &object.to_string())
    }

    fn too_old(&self, Compacted(oldest): Compacted) -> String {
        let error = ApiError::expired(format!("too old resource version: {} ({oldest})", self.cursor));
        line("ERROR", &error.status().to_string())
    }

    /// Makes the plane wake this watch when it has to end or to send a bookmark.
    fn set_timer(&mut self, state: &mut crate::state::State) {
        let at = if self.query.bookmarks { self.ends.min(self.bookmark) } else { self.ends };
        let number = state.environment.random();
        state.timers.insert((at, number), Arc::downgrade(&self.wake));
    }
}

/// An event. The type comes first, so that a client can tell it before it reads the object.
fn line(what: &str, object: &str) -> String {
    format!("{{\"type\":\"{what}\",\"object\":{object}}}\n")
}
