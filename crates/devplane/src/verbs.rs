//! What can be asked about a resource. Never here: what a single verb does.

mod changes;
mod create;
mod delete;
mod read;
mod review;
pub(crate) mod scale;
mod start;
mod update;
mod watch;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Kind, Verb};
use crate::negotiate::Form;
use crate::path::Target;
use crate::plane::{Plane, User};
use crate::query::Query;
use crate::status::{ApiError, Named};
use crate::storage::{Key, Object};
use crate::table::{self, Include};

pub(crate) use start::found;

/// A request for a resource that is served.
pub(crate) struct Call<'a> {
    pub plane: &'a Plane,
    pub kind: Arc<Kind>,
    /// That of the kind.
    pub api_version: String,
    pub target: Target,
    pub query: Query,
    pub form: Form,
    pub user: &'a User,
    /// The header `User-Agent`.
    pub agent: &'a str,
    pub content_type: &'a str,
    pub body: &'a [u8],
}

/// An answer.
pub(crate) struct Reply {
    pub code: u16,
    pub content_type: String,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
    pub retry_after_s: Option<u64>,
    pub content: Content,
}

/// What an answer holds.
pub(crate) enum Content {
    Text(Bytes),
    Watch(Box<watch::Watch>),
}

impl Reply {
    /// An answer in JSON that is text already.
    pub(crate) fn json(code: u16, json: String) -> Reply {
        let content = Content::Text(json.into());
        Reply {
            code,
            content_type: "application/json".into(),
            warnings: Vec::new(),
            retry_after_s: None,
            content,
        }
    }

    /// An answer in JSON that many get.
    pub(crate) fn bytes(json: Bytes) -> Reply {
        Reply { content: Content::Text(json), ..Reply::json(200, String::new()) }
    }

    /// An answer in JSON under another name.
    pub(crate) fn json_as(content_type: String, value: &Value) -> Reply {
        Reply { content_type, ..Reply::json(200, value.to_string()) }
    }

    /// Plain text.
    pub(crate) fn text(code: u16, text: &str) -> Reply {
        Reply { content_type: "text/plain; charset=utf-8".into(), ..Reply::json(code, text.into()) }
    }

    /// What a path is answered with that nobody serves.
    pub(crate) fn no_path() -> Reply {
        Reply::text(404, "404 page not found\n")
    }

    /// A refusal.
    pub(crate) fn error(error: &ApiError) -> Reply {
        let retry_after_s = error.details.get("retryAfterSeconds").and_then(Value::as_u64);
        Reply { retry_after_s, ..Reply::json(error.code, crate::plane::status_text(error)) }
    }

    /// Adds warnings.
    pub(crate) fn warn(mut self, warnings: Vec<String>) -> Reply {
        self.warnings.extend(warnings);
        self
    }
}

/// Answers a request for a resource.
pub(crate) async fn answer(call: Call<'_>, method: &Method) -> Result<Reply, ApiError> {
    call.check_place()?;
    let subresource = call.target.subresource.clone();
    let has_name = call.target.name.is_some();
    match subresource.as_deref() {
        None => {}
        Some("status") if call.kind.has_status => {}
        Some("scale") if call.kind.scale.is_some() => return scale::answer(&call, method).await,
        Some(other) => {
            return match review::subresource(&call, method, other).await {
                Some(reply) => reply,
                None => Err(ApiError::no_path()),
            };
        }
    }
    let wanted = match (method, has_name) {
        (&Method::GET, true) if !call.query.is_watch => Verb::Get,
        (&Method::GET, _) if call.query.is_watch => Verb::Watch,
        (&Method::GET, _) => Verb::List,
        (&Method::POST, false) => Verb::Create,
        (&Method::PUT, true) => Verb::Update,
        (&Method::PATCH, true) => Verb::Patch,
        (&Method::DELETE, true) => Verb::Delete,
        (&Method::DELETE, false) => Verb::DeleteCollection,
        _ => return Err(not_allowed()),
    };
    if !call.kind.verbs.contains(&wanted) {
        return Err(not_allowed());
    }
    match wanted {
        Verb::Get => read::get(&call),
        Verb::List => read::list(&call),
        Verb::Watch => watch::start(&call),
        Verb::Create => match review::create(&call) {
            Some(reply) => reply,
            None => create::create(&call).await,
        },
        Verb::Update => update::replace(&call).await,
        Verb::Patch => update::patch(&call).await,
        Verb::Delete => delete::one(&call).await,
        Verb::DeleteCollection => delete::many(&call).await,
    }
}

pub(crate) fn not_allowed() -> ApiError {
    ApiError::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
}

impl Call<'_> {
    /// Refuses a namespace where there is none, and single objects without one.
    fn check_place(&self) -> Result<(), ApiError> {
        let has_namespace = self.target.namespace.is_some();
        let is_missing = self.kind.namespaced && !has_namespace && self.target.name.is_some();
        if is_missing || (!self.kind.namespaced && has_namespace) {
            return Err(ApiError::no_path());
        }
        Ok(())
    }

    /// Where the object of the request is.
    fn key(&self) -> Key {
        Key { namespace: self.namespace().into(), name: self.name().into() }
    }

    fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }

    /// How the object is named in refusals.
    fn named<'b>(&'b self, name: &'b str) -> Named<'b> {
        Named { kind: &self.kind.plural, group: &self.kind.group, name }
    }

    /// The same where Kubernetes names the kind.
    fn named_kind<'b>(&'b self, name: &'b str) -> Named<'b> {
        Named { kind: &self.kind.kind, group: &self.kind.group, name }
    }

    /// The object of the request.
    fn find(&self) -> Result<Arc<Object>, ApiError> {
        let state = self.plane.lock();
        let object = state.storage.get(&self.kind.bucket, &self.key()).cloned();
        object.ok_or_else(|| ApiError::not_found(self.named(self.name())))
    }

    /// Answers with an object in the form that was asked for.
    fn reply(&self, code: u16, value: &Value) -> Reply {
        let json = match self.form {
            Form::Object => value.to_string(),
            Form::Metadata => table::partial(value).to_string(),
            Form::Table => {
                let revision = &value["metadata"]["resourceVersion"];
                let metadata = json!({ "resourceVersion": revision });
                let options = self.table_options(self.plane.lock().environment.now());
                table::table(&self.kind, metadata, std::slice::from_ref(value), options).to_string()
            }
        };
        Reply::json(code, json)
    }

    fn table_options(&self, now: Timestamp) -> table::Options {
        let include = match &*self.query.include_object {
            "None" => Include::None,
            "Object" => Include::Object,
            // Others were refused when the request came in.
            _ => Include::Metadata,
        };
        table::Options { include, with_columns: true, now }
    }

    /// Who is noted as the manager of what a request writes.
    fn manager(&self) -> &str {
        if !self.query.manager.is_empty() {
            return &self.query.manager;
        }
        let agent = self.agent.split('/').next().unwrap_or_default();
        if agent.is_empty() { "unknown" } else { agent }
    }
}

/// The text of an object as this kind shows it.
fn shown<'a>(kind: &Kind, object: &'a Object) -> Cow<'a, str> {
    if kind.has_api_version(&object.api_version) {
        Cow::Borrowed(&object.json)
    } else {
        Cow::Owned(kind.show(object.value()).to_string())
    }
}

/// The value of an object as this kind shows it.
fn shown_value(kind: &Kind, object: &Object) -> Value {
    let value = object.value();
    if kind.has_api_version(&object.api_version) { value } else { kind.show(value) }
}
