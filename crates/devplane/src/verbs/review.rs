//! Reviews, tokens and evictions: requests that are answered rather than stored. Never here: who may do what; everybody
//! who is known may do everything.

use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Call, Reply, changes};
use crate::admit::{self, Operation};
use crate::environment::seconds;
use crate::eviction;
use crate::plane::User;
use crate::protobuf::Expected;
use crate::status::ApiError;
use crate::storage::Key;

/// Validity of a token that asks for none. Source: the TokenRequest API of Kubernetes.
const TOKEN_S: i64 = 3600;

/// POST of a review; `None` for every other kind.
pub(super) fn create(call: &Call<'_>) -> Option<Result<Reply, ApiError>> {
    let answer: fn(&Call<'_>, &Value) -> Value = match (&*call.kind.group, &*call.kind.plural) {
        ("authentication.k8s.io", "tokenreviews") => token_review,
        ("authentication.k8s.io", "selfsubjectreviews") => |call, _| json!({ "userInfo": info(call.user) }),
        ("authorization.k8s.io", "selfsubjectrulesreviews") => |_, _| {
            json!({
                "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
                "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
                "incomplete": false,
            })
        },
        ("authorization.k8s.io", _) => {
            |_, _| json!({ "allowed": true, "reason": "this server does not evaluate authorisation" })
        }
        _ => return None,
    };
    Some(changes::read_object(call).map(|mut review| {
        review["status"] = answer(call, &review);
        if !review["metadata"].is_object() {
            review["metadata"] = json!({});
        }
        Reply::json(201, review.to_string())
    }))
}

fn token_review(call: &Call<'_>, review: &Value) -> Value {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    match call.plane.authenticate(token) {
        Some(user) => {
            json!({ "authenticated": true, "user": info(&user), "audiences": ["https://kubernetes.default.svc"] })
        }
        None => json!({ "authenticated": false, "user": {}, "error": "the token is not known" }),
    }
}

fn info(user: &User) -> Value {
    let mut info = json!({ "username": user.name, "groups": user.groups });
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    info
}

/// A request for a subresource that only one kind has; `None` where there is no such subresource.
pub(super) async fn subresource(
    call: &Call<'_>,
    method: &Method,
    name: &str,
) -> Option<Result<Reply, ApiError>> {
    if call.kind.is_custom() || !call.kind.group.is_empty() {
        return None;
    }
    match (&*call.kind.plural, name) {
        ("pods", "eviction") if method == Method::POST => Some(evict(call).await),
        ("serviceaccounts", "token") if method == Method::POST => Some(token(call).await),
        ("namespaces", "finalize") if method == Method::PUT => Some(super::update::replace(call).await),
        ("pods", "eviction") | ("serviceaccounts", "token") | ("namespaces", "finalize") => {
            Some(Err(super::not_allowed()))
        }
        _ => None,
    }
}

/// Reads the body of a request to a subresource. What it does not say of its kind is filled in.
fn read(call: &Call<'_>, expected: Expected<'_>) -> Result<Value, ApiError> {
    let mut body = crate::negotiate::body(call.content_type, call.body, expected)?;
    if !body.is_object() {
        return Err(ApiError::bad_request("the body of the request is not a JSON object"));
    }
    for (field, value) in [("kind", expected.kind), ("apiVersion", expected.api_version)] {
        if body[field].is_null() {
            body[field] = value.into();
        }
    }
    Ok(body)
}

/// Issues a token for a ServiceAccount, if policies and webhooks allow it.
async fn token(call: &Call<'_>) -> Result<Reply, ApiError> {
    let request = read(call, Expected::TOKEN_REQUEST)?;
    let account = call.find()?;
    let (mut request, mut warnings) = admit::mutate(call, Operation::Create, None, request).await?;
    warnings.extend(admit::validate(call, Operation::Create, None, Some(&request)).await?);
    let valid_s = request["spec"]["expirationSeconds"].as_i64().unwrap_or(TOKEN_S);
    let expires = call.plane.lock().environment.now() + SignedDuration::from_secs(valid_s);
    let Key { namespace, name } = &account.key;
    let user = User {
        name: format!("system:serviceaccount:{namespace}:{name}"),
        uid: account.uid.clone(),
        groups: vec![
            "system:serviceaccounts".into(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".into(),
        ],
    };
    let token = call.plane.issue(user, Some(expires));
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    request["spec"]["expirationSeconds"] = valid_s.into();
    request["status"] = json!({ "token": token, "expirationTimestamp": seconds(expires) });
    Ok(Reply::json(201, request.to_string()).warn(warnings))
}

/// Evicts a pod, if policies, webhooks and its budgets allow it.
async fn evict(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut body = read(call, Expected::EVICTION)?;
    if body["metadata"].is_object() && body["metadata"]["namespace"].is_null() {
        body["metadata"]["namespace"] = call.namespace().into();
    }
    let (body, mut warnings) = admit::mutate(call, Operation::Create, None, body).await?;
    warnings.extend(admit::validate(call, Operation::Create, None, Some(&body)).await?);
    let mut state = call.plane.lock();
    let status = eviction::evict(&mut state, call.namespace(), call.name(), &body, call.query.is_dry_run)?;
    Ok(Reply::json(201, status.to_string()).warn(warnings))
}
