//! What a webhook is asked, and what its answer means. Never here: which webhook, and what follows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::hooks::{Hook, Phase};
use super::{Attributes, WebhookAnswer};
use crate::status::ApiError;

const GROUP: &str = "admission.k8s.io";

/// What a webhook that lets a write through has to say.
#[derive(Debug, Default)]
pub(super) struct Review {
    /// A JSON patch.
    pub patch: Option<Vec<u8>>,
    pub warnings: Vec<String>,
}

/// Why a write does not go on.
#[derive(Debug)]
pub(super) enum Failure {
    /// The webhook could not be asked, or not be understood: its policy decides what that means.
    Call(String),
    /// It is refused.
    Refused(ApiError),
}

/// The request as conditions and webhooks see it, without what is in the objects.
pub(crate) fn request(attributes: &Attributes<'_>) -> Map<String, Value> {
    let Attributes {
        operation,
        kind,
        resource,
        subresource,
        name,
        namespace,
        home: _,
        user,
        is_dry_run,
        options,
    } = attributes;
    let kind = json!({"group": kind[0], "version": kind[1], "kind": kind[2]});
    let resource = json!({"group": resource[0], "version": resource[1], "resource": resource[2]});
    let mut request = Map::new();
    request.insert("kind".into(), kind.clone());
    request.insert("resource".into(), resource.clone());
    request.insert("requestKind".into(), kind);
    request.insert("requestResource".into(), resource);
    let texts = [
        ("subResource", subresource),
        ("requestSubResource", subresource),
        ("name", name),
        ("namespace", namespace),
    ];
    for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        request.insert(field.into(), (*text).into());
    }
    request.insert("operation".into(), operation.word().into());
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    request.insert("userInfo".into(), info);
    request.insert("dryRun".into(), (*is_dry_run).into());
    request.insert("options".into(), options.clone());
    request
}

/// The body that is sent.
pub(super) fn body(
    hook: &Hook,
    mut request: Map<String, Value>,
    uid: &str,
    objects: [Option<&Value>; 2],
) -> Bytes {
    let [object, old] = objects.map(|object| object.cloned().unwrap_or_default());
    request.insert("uid".into(), uid.into());
    request.insert("object".into(), object);
    request.insert("oldObject".into(), old);
    let version = format!("{GROUP}/{}", hook.version);
    json!({"kind": "AdmissionReview", "apiVersion": version, "request": request}).to_string().into()
}

/// Reads an answer.
pub(super) fn understand(
    hook: &Hook,
    phase: Phase,
    uid: &str,
    answer: &WebhookAnswer,
) -> Result<Review, Failure> {
    let review =
        decode(hook, answer).map_err(|why| Failure::Call(format!("failed to call webhook: {why}")))?;
    let invalid = |why: &str| Failure::Call(format!("received invalid webhook response: {why}"));
    let response = &review["response"];
    if !response.is_object() {
        return Err(invalid("webhook response was absent"));
    }
    if response["uid"] != uid {
        let given = response["uid"].as_str().unwrap_or_default();
        return Err(invalid(&format!("expected response.uid=\"{uid}\", got \"{given}\"")));
    }
    let text = |name: &str| response[name].as_str().filter(|text| !text.is_empty());
    let patch = match (phase, text("patch"), text("patchType")) {
        (Phase::Validating, Some(_), _) => {
            return Err(invalid("validating webhook may not return response.patch"));
        }
        (Phase::Validating, None, Some(_)) => {
            return Err(invalid("validating webhook may not return response.patchType"));
        }
        (Phase::Mutating, Some(_), None) => {
            return Err(invalid("webhook returned response.patch but not response.patchType"));
        }
        (Phase::Mutating, None, Some(_)) => {
            return Err(invalid("webhook returned response.patchType but not response.patch"));
        }
        (Phase::Mutating, Some(patch), Some(_)) => Some(patch),
        (Phase::Mutating | Phase::Validating, None, None) => None,
    };
    if response["allowed"] != true {
        return Err(Failure::Refused(refusal(&hook.name, &response["status"])));
    }
    let patch = patch
        .map(read_patch)
        .transpose()
        .map_err(|why| Failure::Call(format!("received undecodable patch in webhook response: {why}")))?;
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings.filter_map(|warning| warning.as_str().map(str::to_owned)).collect();
    Ok(Review { patch, warnings })
}

fn read_patch(text: &str) -> Result<Vec<u8>, String> {
    let bytes = STANDARD.decode(text).map_err(|error| error.to_string())?;
    match serde_json::from_slice(&bytes) {
        Ok(Value::Array(_)) => Ok(bytes),
        Ok(_) => Err("it is not a list".to_owned()),
        Err(error) if error.is_eof() => Err("unexpected end of JSON input".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn decode(hook: &Hook, answer: &WebhookAnswer) -> Result<Value, String> {
    match answer.code {
        200..300 => {}
        404 => return Err("the server could not find the requested resource".into()),
        500..600 => {
            return Err(
                "an error on the server (\"unknown\") has prevented the request from succeeding".into()
            );
        }
        code => {
            return Err(format!(
                "the server responded with the status code {code} but did not return more information"
            ));
        }
    }
    let review: Value = serde_json::from_slice(&answer.body)
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    let text = |name: &str| review[name].as_str().unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let wanted = hook.version;
    let is_known = version.strip_prefix(GROUP).is_some_and(|version| matches!(version, "/v1" | "/v1beta1"));
    if kind != "AdmissionReview" || !is_known {
        return Err(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
        ));
    }
    match version.split_once('/') {
        Some((_, given)) if given != wanted => Err(format!(
            "converting ({given}.AdmissionReview) to ({wanted}.AdmissionReview): unknown conversion"
        )),
        Some(_) | None => Ok(review),
    }
}

/// What a webhook says about a write that it does not let through.
fn refusal(name: &str, status: &Value) -> ApiError {
    let text = |name: &str| status[name].as_str().filter(|text| !text.is_empty());
    let denied = format!("admission webhook \"{name}\" denied the request");
    let message = match text("message").or(text("reason")) {
        Some(why) => format!("{denied}: {why}"),
        None => format!("{denied} without explanation"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(400);
    ApiError {
        reason: text("reason").unwrap_or_default().to_owned().into(),
        details: status["details"].as_object().cloned().unwrap_or_default(),
        ..ApiError::new(code, "", message)
    }
}
