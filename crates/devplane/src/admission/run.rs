//! Asking the webhooks that a write concerns, in their order. Never here: which there are.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use super::hooks::{Hook, Phase};
use super::review::{Failure, Review, body, request, understand};
use super::{Attributes, Caller, WebhookCall};
use crate::environment::{Environment, uid};
use crate::patch;
use crate::schema::{Inputs, Schema};
use crate::status::ApiError;

/// What webhooks are asked with.
pub(crate) struct Site<'a> {
    pub hooks: Arc<[Hook]>,
    pub caller: Option<Arc<dyn Caller>>,
    pub environment: Arc<dyn Environment>,
    /// Of the object that is changed, if it has one.
    pub schema: Option<&'a Schema>,
}

/// An object and its state before.
type Objects<'a> = [Option<&'a Value>; 2];

/// Lets webhooks change an object, one after another. Who wants it is asked once more if others changed it after him.
/// Returns the object and all warnings.
pub(crate) async fn mutate(
    site: &Site<'_>,
    attributes: &Attributes<'_>,
    old: Option<&Value>,
    mut object: Value,
) -> Result<(Value, Vec<String>), ApiError> {
    let mut warnings = Vec::new();
    // Who was asked, and who is to be asked again.
    let (mut asked, mut again) = (BTreeSet::new(), BTreeSet::new());
    for is_first in [true, false] {
        for (at, hook) in site.hooks.iter().enumerate() {
            if !(is_first || again.remove(&at)) || !hook.concerns(attributes, [Some(&object), old]) {
                continue;
            }
            let Some(review) = ask(site, hook, Phase::Mutating, attributes, [Some(&object), old]).await?
            else {
                continue;
            };
            warnings.extend(review.warnings);
            if let Some(patch) = review.patch
                && apply(site, &patch, &mut object)?
            {
                again.append(&mut asked);
            }
            if hook.reinvokes {
                asked.insert(at);
            }
        }
    }
    Ok((object, warnings))
}

/// Lets webhooks refuse a write. All are asked at once. Returns their warnings.
pub(crate) async fn validate(
    site: &Site<'_>,
    attributes: &Attributes<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> Result<Vec<String>, ApiError> {
    let concerned = site.hooks.iter().filter(|hook| hook.concerns(attributes, [new, old]));
    let all =
        join_all(concerned.map(|hook| ask(site, hook, Phase::Validating, attributes, [new, old]))).await;
    let mut warnings = Vec::new();
    for review in all {
        warnings.extend(review?.unwrap_or_default().warnings);
    }
    Ok(warnings)
}

/// Asks a webhook; `None` if it does not want to be asked, or could not be and does not mind.
async fn ask(
    site: &Site<'_>,
    hook: &Hook,
    phase: Phase,
    attributes: &Attributes<'_>,
    objects: Objects<'_>,
) -> Result<Option<Review>, ApiError> {
    match wanted(hook, attributes, objects) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if hook.ignores_failure => return Ok(None),
        Err(why) => return Err(ApiError::forbidden(attributes.named(), &why)),
    }
    if attributes.is_dry_run && !hook.is_dry {
        let message = format!("admission webhook \"{}\" does not support dry run", hook.name);
        return Err(ApiError::bad_request(message));
    }
    match call(site, hook, phase, attributes, objects).await {
        Ok(review) => Ok(Some(review)),
        Err(Failure::Refused(error)) => Err(error),
        Err(Failure::Call(why)) if hook.ignores_failure => {
            tracing::warn!(webhook = hook.name, why, "a webhook failed and is ignored");
            Ok(None)
        }
        Err(Failure::Call(why)) => Err(internal(&format!("failed calling webhook \"{}\": {why}", hook.name))),
    }
}

fn wanted(hook: &Hook, attributes: &Attributes<'_>, objects: Objects<'_>) -> Result<bool, String> {
    if !hook.has_conditions() {
        return Ok(true);
    }
    let home = attributes.home.map(|home| home.value()).unwrap_or_default();
    let request = Value::Object(request(attributes));
    hook.is_wanted(&Inputs::new(objects, &request, &home))
}

async fn call(
    site: &Site<'_>,
    hook: &Hook,
    phase: Phase,
    attributes: &Attributes<'_>,
    objects: Objects<'_>,
) -> Result<Review, Failure> {
    let url = &hook.url;
    let uid = uid(&*site.environment);
    let unreached = |why: &str| Failure::Call(format!("failed to call webhook: Post \"{url}\": {why}"));
    let Some(caller) = &site.caller else { return Err(unreached("nothing is called from here")) };
    let call = WebhookCall {
        url: url.clone(),
        service: hook.service.clone(),
        ca: hook.ca.clone(),
        timeout: hook.timeout,
        body: body(hook, request(attributes), &uid, objects),
    };
    let answer = caller.call(call).await.map_err(|why| unreached(&why))?;
    understand(hook, phase, &uid, &answer)
}

/// Applies a patch. Says whether that changed anything.
fn apply(site: &Site<'_>, patch: &[u8], object: &mut Value) -> Result<bool, ApiError> {
    let before = object.clone();
    patch::json(object, patch).map_err(|error| internal(&error.message))?;
    if let Some(schema) = site.schema {
        // What is decoded from a patch is what a client could have sent.
        schema.prune(object);
        schema.fill(object);
    }
    Ok(*object != before)
}

fn internal(why: &str) -> ApiError {
    let mut error = ApiError::new(500, "InternalError", format!("Internal error occurred: {why}"));
    error.details.insert("causes".into(), json!([{"message": why}]));
    error
}
