//! Why a request to the API server did not do what was asked. Never here: what is done about it.

use std::time::Duration;

use http::StatusCode;
use kube::core::Status;

use crate::Error;
use crate::govern::is_never_sent;

/// An error of the API server, or of the way to it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status; 0 if there was no answer.
    pub code: u16,
    /// The server's reason, for example `NotFound`; empty if there was no answer.
    pub reason: String,
    /// What could not be done, and the server's words.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// Reasons of the causes that the server names, each with its words.
    pub(crate) causes: Vec<(String, String)>,
    is_unknown_outcome: bool,
    /// Where the server's words begin in the message.
    words_from: usize,
    #[source]
    source: Option<Error>,
}

impl ApiError {
    /// An answer of the server, as tests and fakes make it.
    pub fn new(code: u16, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            retry_after: None,
            causes: Vec::new(),
            is_unknown_outcome: code == 0 || code >= 500,
            words_from: 0,
            source: None,
        }
    }

    /// That `what` could not be done, and why.
    fn about(what: &str, code: u16, reason: impl Into<String>, words: &str) -> Self {
        let what = format!("cannot {what}: ");
        Self { words_from: what.len(), ..Self::new(code, reason, what + words) }
    }

    /// The server's answer to `what`.
    pub(crate) fn refused(what: &str, code: StatusCode, body: &[u8], asked: Option<Duration>) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| Status {
            // A proxy, or the server's own limiter, which answers in plain text. One line is enough to tell which.
            message: String::from_utf8_lossy(body)
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect(),
            ..Status::default()
        });
        let seconds =
            status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0);
        let causes = status.details.into_iter().flat_map(|details| details.causes);
        let causes = causes.map(|cause| (cause.reason, cause.message)).collect();
        let words = if status.message.is_empty() { code.to_string() } else { status.message };
        Self {
            retry_after: asked.or(seconds.map(|seconds| Duration::from_secs(seconds.into()))),
            causes,
            ..Self::about(what, code.as_u16(), status.reason, &words)
        }
    }

    /// `what` got no answer.
    pub(crate) fn unanswered(what: &str, error: kube::Error) -> Self {
        let is_unknown_outcome = !is_never_sent(&error);
        let source = Some(error.into());
        Self { is_unknown_outcome, source, ..Self::about(what, 0, "", "no answer from the API server") }
    }

    /// `what` was done, and the answer cannot be decoded.
    pub(crate) fn undecodable(what: &str, code: StatusCode, error: serde_json::Error) -> Self {
        let about = Self::about(what, code.as_u16(), "Undecodable", "the answer cannot be decoded");
        Self { is_unknown_outcome: true, source: Some(error.into()), ..about }
    }

    /// `what` was never sent, because it is not a valid request.
    pub(crate) fn invalid(what: &str, error: impl Into<Error>) -> Self {
        let about = Self::about(what, 0, "BadRequest", "not a valid request");
        Self { is_unknown_outcome: false, source: Some(error.into()), ..about }
    }

    /// The server's words alone, for a text that says itself what could not be done.
    pub fn words(&self) -> &str {
        self.message.get(self.words_from..).unwrap_or(&self.message)
    }

    /// The object or the kind does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// A precondition or a resource version did not hold.
    pub fn is_conflict(&self) -> bool {
        self.code == 409 && self.reason != "AlreadyExists"
    }

    /// An object of that name exists.
    pub fn is_already_exists(&self) -> bool {
        self.code == 409 && self.reason == "AlreadyExists"
    }

    /// The object is refused as invalid, so that trying again cannot help.
    pub fn is_invalid(&self) -> bool {
        self.code == 422 || self.code == 400
    }

    /// The namespace is going, so that nothing can be created in it.
    pub fn is_namespace_terminating(&self) -> bool {
        self.code == 403 && self.has_cause("NamespaceTerminating")
    }

    /// The request may have been carried out: no answer, or an error of the server itself.
    pub fn is_unknown_outcome(&self) -> bool {
        self.is_unknown_outcome
    }

    pub(crate) fn has_cause(&self, reason: &str) -> bool {
        self.causes.iter().any(|(cause, _)| cause == reason)
    }
}
