//! Refusals: what went wrong with a request, as Kubernetes puts it. Never here: who decides that.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value, json};

/// A refusal of a request. It becomes a `Status` object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// One of Kubernetes' words, such as `NotFound`; empty is left out.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: String,
    /// What `details` holds; empty is left out, unless `has_details`.
    pub details: Map<String, Value>,
    /// Whether there are details although nothing is in them.
    pub has_details: bool,
    /// `metadata.continue`: where a list that is too old may go on.
    pub r#continue: Option<String>,
}

/// What an object is called in messages: resource and group of its kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    /// Plural of the resource, or the kind where Kubernetes names that (in `Invalid`).
    pub kind: &'a str,
    /// API group, empty for the core.
    pub group: &'a str,
    /// Name of the object.
    pub name: &'a str,
}

impl Named<'_> {
    fn details(self) -> Map<String, Value> {
        let mut details = Map::new();
        for (key, value) in [("name", self.name), ("group", self.group), ("kind", self.kind)] {
            if !value.is_empty() {
                details.insert(key.into(), value.into());
            }
        }
        details
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named { kind, group, name } = self;
        let dot = if group.is_empty() { "" } else { "." };
        write!(f, "{kind}{dot}{group} \"{name}\"")
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Required,
    Invalid,
    /// A value of another type than the schema wants; `Invalid value: "string"` shows the type that was given.
    TypeInvalid,
    Unsupported,
    Forbidden,
    TooLong,
    TooMany,
    Duplicate,
    NotFound,
}

/// A complaint about one field of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    /// What is wrong.
    pub fault: Fault,
    /// Path such as `spec.template.items[0].name`; maps with dots in keys are `metadata.labels[a.b/c]`.
    pub path: String,
    /// The value as the message shows it: JSON text, a quoted string, a type's name in quotes; empty where none is shown.
    pub value: String,
    /// The rest of the sentence; may be empty.
    pub detail: String,
}

impl FieldError {
    /// A complaint that shows a value as JSON.
    pub(crate) fn new(
        fault: Fault,
        path: impl Into<String>,
        value: &Value,
        detail: impl Into<String>,
    ) -> Self {
        FieldError { fault, path: path.into(), value: value.to_string(), detail: detail.into() }
    }

    /// A field that must be there.
    pub(crate) fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError { fault: Fault::Required, path: path.into(), value: String::new(), detail: detail.into() }
    }

    /// A field that must not be there, or not change.
    pub(crate) fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        FieldError { fault: Fault::Forbidden, path: path.into(), value: String::new(), detail: detail.into() }
    }

    /// A value that is wrong.
    pub(crate) fn invalid(path: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        FieldError::new(Fault::Invalid, path, value, detail)
    }

    /// A value that is none of those that are allowed.
    pub(crate) fn unsupported(path: impl Into<String>, value: &Value, allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(|value| format!("{value:?}")).collect();
        FieldError::new(Fault::Unsupported, path, value, format!("supported values: {}", allowed.join(", ")))
    }

    fn cause(&self) -> Value {
        let (reason, _) = self.fault.words();
        json!({ "reason": reason, "message": self.body(), "field": self.path })
    }

    fn body(&self) -> String {
        let (_, words) = self.fault.words();
        if self.value.is_empty() {
            return if self.detail.is_empty() {
                words.to_owned()
            } else {
                format!("{words}: {}", self.detail)
            };
        }
        let shown = match self.fault {
            Fault::Required | Fault::Forbidden | Fault::TooLong => words.to_owned(),
            Fault::Invalid
            | Fault::TypeInvalid
            | Fault::Unsupported
            | Fault::TooMany
            | Fault::Duplicate
            | Fault::NotFound => {
                format!("{words}: {}", self.value)
            }
        };
        if self.detail.is_empty() { shown } else { format!("{shown}: {}", self.detail) }
    }
}

impl Fault {
    /// The reason in `details.causes` and the words of the message. Source: the API conventions of Kubernetes.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Fault::Required => ("FieldValueRequired", "Required value"),
            Fault::Invalid => ("FieldValueInvalid", "Invalid value"),
            Fault::TypeInvalid => ("FieldValueTypeInvalid", "Invalid value"),
            Fault::Unsupported => ("FieldValueNotSupported", "Unsupported value"),
            Fault::Forbidden => ("FieldValueForbidden", "Forbidden"),
            Fault::TooLong => ("FieldValueTooLong", "Too long"),
            Fault::TooMany => ("FieldValueTooMany", "Too many"),
            Fault::Duplicate => ("FieldValueDuplicate", "Duplicate value"),
            Fault::NotFound => ("FieldValueNotFound", "Not found"),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl ApiError {
    /// A refusal without details.
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        ApiError {
            code,
            reason: reason.into(),
            message: message.into(),
            details: Map::new(),
            has_details: false,
            r#continue: None,
        }
    }

    /// There is no such path.
    pub(crate) fn no_path() -> Self {
        let error = ApiError::new(404, "NotFound", "the server could not find the requested resource");
        ApiError { has_details: true, ..error }
    }

    /// There is no such object.
    pub(crate) fn not_found(named: Named<'_>) -> Self {
        ApiError { details: named.details(), ..ApiError::new(404, "NotFound", format!("{named} not found")) }
    }

    /// There is one of that name.
    pub(crate) fn already_exists(named: Named<'_>) -> Self {
        let message = format!("{named} already exists");
        ApiError { details: named.details(), ..ApiError::new(409, "AlreadyExists", message) }
    }

    /// The object is not as the request supposes it.
    pub(crate) fn conflict(named: Named<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {named}: {why}");
        ApiError { details: named.details(), ..ApiError::new(409, "Conflict", message) }
    }

    /// The object may not be so. `named.kind` is the kind here, not the resource.
    pub(crate) fn invalid(named: Named<'_>, errors: &[FieldError]) -> Self {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let list = if let [one] = &*texts { one.clone() } else { format!("[{}]", texts.join(", ")) };
        let mut details = named.details();
        details.insert("causes".into(), errors.iter().map(FieldError::cause).collect());
        ApiError { details, ..ApiError::new(422, "Invalid", format!("{named} is invalid: {list}")) }
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        ApiError::new(400, "BadRequest", message)
    }

    /// The revision that was asked for is not kept any more.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        ApiError::new(410, "Expired", message)
    }

    /// A refusal on principle, such as a new object in a namespace that ends.
    pub(crate) fn forbidden(named: Named<'_>, why: &str) -> Self {
        let message = format!("{named} is forbidden: {why}");
        ApiError { details: named.details(), ..ApiError::new(403, "Forbidden", message) }
    }

    /// The `Status` object of this refusal.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = (&*self.reason).into();
        }
        if let Some(token) = &self.r#continue {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if self.has_details || !self.details.is_empty() {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}
