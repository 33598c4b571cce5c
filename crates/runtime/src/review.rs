//! Who may read the metrics: the API server is asked. Never here: HTTP of the endpoint.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::writes::{ApiError, Call, JSON, Writer};

/// A minute: what a revoked permission may still be used, and how often a scraper costs two requests.
const VALID: Duration = Duration::from_secs(60);

/// Tokens remembered. More than any cluster has scrapers; strangers with many tokens push each other out.
const LIMIT: usize = 64;

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Forbidden,
    Unauthenticated,
}

/// Asks about tokens, and remembers the answers for a while.
pub(crate) struct Reviewer {
    writer: Writer,
    answers: Mutex<HashMap<String, (Verdict, Instant)>>,
}

#[derive(Deserialize)]
struct TokenReview {
    #[serde(default)]
    status: TokenStatus,
}

#[derive(Default, Deserialize)]
struct TokenStatus {
    #[serde(default)]
    authenticated: bool,
    #[serde(default)]
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: Value,
}

impl Reviewer {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer, answers: Mutex::default() }
    }

    /// Whether a bearer of this token may `get` a path that is no resource.
    pub(crate) async fn may_get(&self, token: &str, path: &str) -> Result<Verdict, ApiError> {
        if let Some(verdict) = self.remembered(token) {
            return Ok(verdict);
        }
        let verdict = self.ask(token, path).await?;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if answers.len() >= LIMIT {
            answers.retain(|_, (_, until)| *until > now);
        }
        if answers.len() >= LIMIT {
            answers.clear();
        }
        answers.insert(token.to_owned(), (verdict, now + VALID));
        Ok(verdict)
    }

    fn remembered(&self, token: &str) -> Option<Verdict> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(token).filter(|(_, until)| *until > Instant::now()).map(|(verdict, _)| *verdict)
    }

    async fn ask(&self, token: &str, path: &str) -> Result<Verdict, ApiError> {
        let question = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        let call = Call::question("/apis/authentication.k8s.io/v1/tokenreviews");
        let review: TokenReview = self.writer.send(&call, Some(&question), JSON).await?;
        let TokenStatus { authenticated, user } = review.status;
        if !authenticated {
            return Ok(Verdict::Unauthenticated);
        }
        let User { username, uid, groups, extra } = user;
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": username,
                "uid": uid,
                "groups": groups,
                "extra": extra,
                "nonResourceAttributes": {"path": path, "verb": "get"},
            },
        });
        let call = Call::question("/apis/authorization.k8s.io/v1/subjectaccessreviews");
        let review: Value = self.writer.send(&call, Some(&question), JSON).await?;
        let is_allowed = review["status"]["allowed"] == true && review["status"]["denied"] != true;
        Ok(if is_allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::answering;

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_a_minute_and_an_error_for_none() {
        let (writer, seen) = answering(|seen| match seen.body["kind"].as_str() {
            Some("TokenReview") => match seen.body["spec"]["token"].as_str() {
                Some("good" | "other") => {
                    let user = json!({"username": seen.body["spec"]["token"], "groups": ["g"]});
                    (201, json!({"status": {"authenticated": true, "user": user}}))
                }
                Some("bad") => (201, json!({"status": {}})),
                _ => (500, json!("no")),
            },
            _ => (201, json!({"status": {"allowed": seen.body["spec"]["user"] == "good"}})),
        });
        let reviewer = Reviewer::new(writer);
        let requests = || seen.lock().unwrap().len();
        for (token, verdict, asked) in [
            ("good", Verdict::Allowed, 2),
            ("good", Verdict::Allowed, 2),
            ("other", Verdict::Forbidden, 4),
            ("bad", Verdict::Unauthenticated, 5),
            ("bad", Verdict::Unauthenticated, 5),
        ] {
            assert_eq!(reviewer.may_get(token, "/metrics").await.unwrap(), verdict, "{token}");
            assert_eq!(requests(), asked, "{token}");
        }
        for asked in [6, 7] {
            reviewer.may_get("fails", "/metrics").await.unwrap_err();
            assert_eq!(requests(), asked);
        }
        tokio::time::advance(VALID).await;
        reviewer.may_get("good", "/metrics").await.unwrap();
        assert_eq!(requests(), 9);
    }
}
