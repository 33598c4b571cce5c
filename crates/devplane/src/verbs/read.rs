//! Getting and listing. Never here: changes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Call, Reply, shown, shown_value};
use crate::negotiate::Form;
use crate::status::{ApiError, Fault, FieldError, Named};
use crate::storage::{Key, Object, Page};
use crate::table;

/// How refusals of options of a list begin.
pub(super) const LIST_OPTIONS: Named<'static> = Named { kind: "ListOptions", group: "meta.k8s.io", name: "" };

/// What tells where a list goes on.
struct Token {
    revision: u64,
    after: Key,
}

/// GET of an object.
pub(super) fn get(call: &Call<'_>) -> Result<Reply, ApiError> {
    let object = call.find()?;
    if call.form == Form::Object {
        return Ok(Reply::json(200, shown(&call.kind, &object).into_owned()));
    }
    Ok(call.reply(200, &shown_value(&call.kind, &object)))
}

/// GET of a collection.
pub(super) fn list(call: &Call<'_>) -> Result<Reply, ApiError> {
    let query = &call.query;
    if query.send_initial_events.is_some() {
        let error = FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
        return Err(ApiError::invalid(LIST_OPTIONS, &[error]));
    }
    let token = if query.r#continue.is_empty() { None } else { Some(read_token(&query.r#continue)?) };
    let (page, revision, now) = {
        let state = call.plane.lock();
        let current = state.storage.revision();
        let revision = match &token {
            Some(_) if !query.revision.is_empty() && query.revision != "0" => {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            Some(token) => token.revision,
            None => wanted_revision(query.revision.as_str(), query.revision_match.as_str(), current)?,
        };
        let after = token.as_ref().map(|token| &token.after);
        let page = state
            .storage
            .page(&call.kind.bucket, revision, after, query.limit, |object| is_wanted(call, object));
        let page = page.map_err(|_| too_old(token.as_ref(), current))?;
        (page, revision, state.environment.now())
    };
    let mut metadata = json!({ "resourceVersion": revision.to_string() });
    if page.remaining > 0 {
        let last = page.objects.last().expect("a page that something follows is not empty");
        metadata["continue"] = token_text(revision, &last.key).into();
        // With a selector the count would need a look at everything, which a real server does not do.
        if query.labels.is_empty() && query.fields.is_empty() {
            metadata["remainingItemCount"] = page.remaining.into();
        }
    }
    Ok(Reply::json(200, list_text(call, metadata, &page, now)))
}

fn list_text(call: &Call<'_>, metadata: Value, page: &Page, now: jiff::Timestamp) -> String {
    let kind = &call.kind;
    let values = || page.objects.iter().map(|object| shown_value(kind, object));
    match call.form {
        Form::Table => {
            table::table(kind, metadata, &values().collect::<Vec<_>>(), call.table_options(now)).to_string()
        }
        Form::Metadata => table::partial_list(metadata, &values().collect::<Vec<_>>()).to_string(),
        Form::Object => {
            let size: usize = page.objects.iter().map(|object| object.json.len() + 1).sum();
            let mut text = String::with_capacity(size + 256);
            let (name, version) = (json!(kind.list_kind), json!(kind.api_version()));
            text.push_str(&format!(
                "{{\"kind\":{name},\"apiVersion\":{version},\"metadata\":{metadata},\"items\":["
            ));
            for (at, object) in page.objects.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&shown(kind, object));
            }
            text.push_str("]}");
            text
        }
    }
}

/// Whether an object is in the collection of a request and meets its selectors.
pub(super) fn is_wanted(call: &Call<'_>, object: &Object) -> bool {
    call.target.namespace.as_ref().is_none_or(|namespace| object.key.namespace == *namespace)
        && call.query.labels.matches(&object.labels)
        && call.query.fields.matches(object)
}

/// At which revision a list is to be made.
fn wanted_revision(revision: &str, matching: &str, current: u64) -> Result<u64, ApiError> {
    if !matching.is_empty() && revision.is_empty() {
        return Err(forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided"));
    }
    let number = if revision.is_empty() { 0 } else { parse_revision(revision)? };
    match matching {
        "" | "NotOlderThan" => {}
        "Exact" if number == 0 => {
            return Err(forbidden_match(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
        "Exact" => {}
        _ => {
            let error = FieldError {
                fault: Fault::Unsupported,
                path: "resourceVersionMatch".into(),
                value: format!("{matching:?}"),
                detail: "supported values: \"Exact\", \"NotOlderThan\", \"\"".into(),
            };
            return Err(ApiError::invalid(LIST_OPTIONS, &[error]));
        }
    }
    if number > current {
        return Err(too_large(number, current));
    }
    Ok(if matching == "Exact" { number } else { current })
}

fn forbidden_match(why: &str) -> ApiError {
    ApiError::invalid(LIST_OPTIONS, &[FieldError::forbidden("resourceVersionMatch", why)])
}

/// A revision as a number.
pub(super) fn parse_revision(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::bad_request(format!("invalid resource version: {text:?}")))
}

fn too_large(wanted: u64, current: u64) -> ApiError {
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    let mut error = ApiError::new(504, "Timeout", message);
    let cause = json!([{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }]);
    error.details.insert("causes".into(), cause);
    error.details.insert("retryAfterSeconds".into(), 1.into());
    error
}

fn too_old(token: Option<&Token>, current: u64) -> ApiError {
    match token {
        None => ApiError::expired("The resourceVersion for the provided list is too old."),
        Some(token) => {
            let message = "The provided continue parameter is too old to display a consistent list result. You can \
                           start a new list without the continue parameter, or use the continue token in this response \
                           to retrieve the remainder of the results. Continuing with the provided token results in an \
                           inconsistent list - objects that were created, modified, or deleted between the time the \
                           first chunk was returned and now may show up in the list.";
            let mut error = ApiError::expired(message);
            error.r#continue = Some(token_text(current, &token.after));
            error
        }
    }
}

fn token_text(revision: u64, after: &Key) -> String {
    let start = format!("{}/{}", after.namespace, after.name);
    URL_SAFE_NO_PAD.encode(json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": start }).to_string())
}

fn read_token(text: &str) -> Result<Token, ApiError> {
    let read = || {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let (namespace, name) = value["start"].as_str()?.split_once('/')?;
        Some(Token {
            revision: value["rv"].as_u64()?,
            after: Key { namespace: namespace.into(), name: name.into() },
        })
    };
    read().ok_or_else(|| ApiError::bad_request("continue key is not valid: it is not one of this server's"))
}
