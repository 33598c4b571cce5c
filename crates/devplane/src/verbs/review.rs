//! Reviews, tokens and evictions: requests that are answered rather than stored. Never here: who may do what; everybody
//! who is known may do everything.

use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Call, Reply, changes};
use crate::admit::{self, Operation};
use crate::environment::seconds;
use crate::eviction;
use crate::loops::writes;
use crate::plane::User;
use crate::protobuf::Expected;
use crate::status::{ApiError, FieldError, Named};
use crate::storage::Key;

/// Validity of a token that asks for none, and what may be asked for. Source: the TokenRequest API of Kubernetes.
const TOKEN_S: i64 = 3600;
const TOKEN_LEAST_S: i64 = 600;
const TOKEN_MOST_S: i64 = 1 << 32;

/// Whom tokens are for.
const AUDIENCE: &str = "https://kubernetes.default.svc";

/// POST of a review; `None` for every other kind.
pub(super) fn create(call: &Call<'_>) -> Option<Result<Reply, ApiError>> {
    let answer: fn(&Call<'_>, &Value) -> Result<Value, ApiError> =
        match (&*call.kind.group, &*call.kind.plural) {
            ("authentication.k8s.io", "tokenreviews") => token_review,
            ("authentication.k8s.io", "selfsubjectreviews") => {
                |call, _| Ok(json!({ "userInfo": info(call.user) }))
            }
            ("authorization.k8s.io", "selfsubjectrulesreviews") => rules,
            ("authorization.k8s.io", _) => access,
            _ => return None,
        };
    Some(changes::read_object(call).and_then(|mut review| {
        review["status"] = answer(call, &review)?;
        if !review["metadata"].is_object() {
            review["metadata"] = json!({});
        }
        Ok(Reply::json(201, review.to_string()))
    }))
}

fn token_review(call: &Call<'_>, review: &Value) -> Result<Value, ApiError> {
    let token = review["spec"]["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    Ok(match call.plane.authenticate(token) {
        Some(user) => {
            json!({ "authenticated": true, "user": info(&user), "audiences": [AUDIENCE] })
        }
        None => json!({ "user": {}, "error": "invalid bearer token" }),
    })
}

fn rules(_: &Call<'_>, review: &Value) -> Result<Value, ApiError> {
    if review["spec"]["namespace"].as_str().is_none_or(str::is_empty) {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    Ok(json!({
        "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
        "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        "incomplete": false,
    }))
}

/// Whether somebody may do something: a question has to name what, and of others who.
fn access(call: &Call<'_>, review: &Value) -> Result<Value, ApiError> {
    let spec = &review["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let shown = || format!("{{\"Path\":{},\"Verb\":{}}}", path["path"], path["verb"]);
    let of_path = |detail: &str| FieldError {
        value: shown(),
        ..FieldError::invalid("spec.nonResourceAttributes", path, detail)
    };
    let mut errors = Vec::new();
    match (resource.is_object(), path.is_object()) {
        (true, true) => errors.push(of_path("cannot be specified in combination with resourceAttributes")),
        (false, false) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid("spec.resourceAttributes", &Value::Null, detail));
        }
        (true, false) | (false, true) => {}
    }
    let has_subject =
        ["user", "groups"].into_iter().any(|field| !matches!(&spec[field], Value::Null) && spec[field] != "");
    if call.kind.plural != "selfsubjectaccessreviews" && !has_subject {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid("spec.user", &"".into(), detail));
    }
    if call.kind.plural == "localsubjectaccessreviews" {
        let namespace = resource["namespace"].as_str().unwrap_or_default();
        if path.is_object() {
            errors.push(of_path("disallowed on this kind of request"));
        } else if resource.is_object() && namespace != call.namespace() {
            let detail = "must match metadata.namespace";
            errors.push(FieldError::invalid("spec.resourceAttributes.namespace", &namespace.into(), detail));
        }
    }
    if !errors.is_empty() {
        // Kubernetes names no kind here.
        return Err(ApiError::invalid(Named { kind: "", group: &call.kind.group, name: "" }, &errors));
    }
    Ok(json!({ "allowed": true, "reason": "this server does not evaluate authorisation" }))
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
        ("pods", "binding") if method == Method::POST => Some(bind(call)),
        ("pods", "eviction") if method == Method::POST => Some(evict(call).await),
        ("serviceaccounts", "token") if method == Method::POST => Some(token(call).await),
        ("namespaces", "finalize") if method == Method::PUT => Some(super::update::replace(call).await),
        ("pods", "binding" | "eviction") | ("serviceaccounts", "token") | ("namespaces", "finalize") => {
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
    check_token(&request, &account.key.name, valid_s)?;
    let now = call.plane.lock().environment.now();
    let expires = now + SignedDuration::from_secs(valid_s);
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
    request["metadata"] = json!({ "name": name, "namespace": namespace, "creationTimestamp": seconds(now) });
    request["spec"]["expirationSeconds"] = valid_s.into();
    if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
        request["spec"]["audiences"] = json!([AUDIENCE]);
    }
    request["status"] = json!({ "token": token, "expirationTimestamp": seconds(expires) });
    Ok(Reply::json(201, request.to_string()).warn(warnings))
}

fn check_token(request: &Value, account: &str, valid_s: i64) -> Result<(), ApiError> {
    let given = request["metadata"]["name"].as_str().unwrap_or_default();
    let named = Named { kind: "TokenRequest", group: "authentication.k8s.io", name: "" };
    if !matches!(given, "") && given != account {
        let detail = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", &given.into(), detail);
        return Err(ApiError::invalid(Named { name: account, ..named }, &[error]));
    }
    let detail = match valid_s {
        ..TOKEN_LEAST_S => "may not specify a duration less than 10 minutes",
        TOKEN_LEAST_S..=TOKEN_MOST_S => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let error = FieldError::invalid("spec.expirationSeconds", &valid_s.into(), detail);
    Err(ApiError::invalid(named, &[error]))
}

/// Binds a pod to a node, as a scheduler does.
fn bind(call: &Call<'_>) -> Result<Reply, ApiError> {
    let body = read(call, Expected::BINDING)?;
    let name = call.name();
    let pod = call.find()?;
    if body["metadata"]["name"] != name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (target, node) = (text(&body["target"]["kind"]), text(&body["target"]["name"]));
    if !matches!(&*target, "" | "Node") {
        let error = FieldError::unsupported("target.kind", &target.into(), &["Node", "<empty>"]);
        return Err(ApiError::new(500, "", error.to_string()));
    }
    if node.is_empty() {
        return Err(ApiError::new(500, "", FieldError::required("target.name", "").to_string()));
    }
    let refuse = |why: &str| ApiError::conflict(Named { kind: "pods/binding", group: "", name }, why);
    let mut state = call.plane.lock();
    let now = seconds(state.environment.now());
    let mut value = pod.value();
    let uid = text(&body["metadata"]["uid"]);
    if !uid.is_empty() && uid != pod.uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", pod.uid);
        return Err(ApiError::conflict(call.named(name), &why));
    }
    if pod.is_deleting {
        return Err(refuse(&format!("pod {name} is being deleted, cannot be assigned to a host")));
    }
    let bound = text(&value["spec"]["nodeName"]);
    if !bound.is_empty() {
        return Err(refuse(&format!("pod {name} is already assigned to node \"{bound}\"")));
    }
    value["spec"]["nodeName"] = node.into();
    for (key, text) in body["metadata"]["annotations"].as_object().into_iter().flatten() {
        value["metadata"]["annotations"][key] = text.clone();
    }
    writes::set_scheduled(&mut value, &now);
    let is_still =
        state.storage.get(&call.kind.bucket, &pod.key).is_some_and(|now| now.revision == pod.revision);
    if !is_still {
        return Err(refuse(
            "the object has been modified; please apply your changes to the latest version and try again",
        ));
    }
    if !call.query.is_dry_run {
        state.update(&call.kind, &pod, value);
    }
    let answer =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(Reply::json(201, answer.to_string()))
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
