//! Deleting. Never here: what follows from it for others; the loops see to that.

use serde_json::{Value, json};

use super::{Call, Reply, changes, read, shown_value};
use crate::protobuf::Expected;
use crate::state::{DeleteOptions, Deleted};
use crate::status::ApiError;
use crate::storage::Object;
use crate::{admit, negotiate, strategy};

/// DELETE of an object.
pub(super) async fn one(call: &Call<'_>) -> Result<Reply, ApiError> {
    let options = options(call)?;
    let object = call.find()?;
    let was = shown_value(&call.kind, &object);
    let warnings = admit::validate(call, admit::Operation::Delete, Some(&was), None).await?;
    let deleted = delete(call, &object, &options)?;
    changes::settle(call);
    let reply = match deleted {
        Deleted::Gone(last) if !strategy::answers_with_object(&call.kind) => {
            Reply::json(200, success(call, &last))
        }
        Deleted::Gone(value) | Deleted::Waiting(value) => call.reply(200, &call.kind.show(value)),
    };
    Ok(reply.warn(warnings))
}

/// DELETE of a collection.
pub(super) async fn many(call: &Call<'_>) -> Result<Reply, ApiError> {
    let options = options(call)?;
    let objects: Vec<_> = {
        let state = call.plane.lock();
        let all = state.storage.iter(&call.kind.bucket, call.target.namespace.as_deref());
        all.filter(|object| read::is_wanted(call, object)).cloned().collect()
    };
    let mut items = Vec::with_capacity(objects.len());
    for object in objects {
        let was = shown_value(&call.kind, &object);
        admit::validate(call, admit::Operation::Delete, Some(&was), None).await?;
        match delete(call, &object, &options) {
            Ok(Deleted::Gone(_) | Deleted::Waiting(_)) => items.push(was),
            // Somebody else was faster with this one.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    changes::settle(call);
    let revision = call.plane.lock().storage.revision().to_string();
    let list = json!({
        "kind": call.kind.list_kind,
        "apiVersion": call.kind.api_version(),
        "metadata": { "resourceVersion": revision },
        "items": items,
    });
    Ok(Reply::json(200, list.to_string()))
}

fn options(call: &Call<'_>) -> Result<DeleteOptions, ApiError> {
    let body = if call.body.is_empty() {
        Value::Null
    } else {
        negotiate::body(call.content_type, call.body, Expected::DELETE_OPTIONS)?
    };
    if !(body.is_null() || body.is_object()) {
        return Err(ApiError::bad_request("the body of the request is not a JSON object"));
    }
    call.query.delete_options(&body)
}

/// Deletes the object as it is now, if it is still the same one.
fn delete(call: &Call<'_>, object: &Object, options: &DeleteOptions) -> Result<Deleted, ApiError> {
    let mut state = call.plane.lock();
    let now = state.storage.get(&call.kind.bucket, &object.key).cloned();
    let Some(now) = now else { return Err(ApiError::not_found(call.named(&object.key.name))) };
    strategy::check_delete(&call.kind, &now)?;
    state.delete(&call.kind, &now, options)
}

fn success(call: &Call<'_>, last: &Value) -> String {
    let mut details =
        json!({ "name": last["metadata"]["name"], "kind": call.kind.plural, "uid": last["metadata"]["uid"] });
    if !call.kind.group.is_empty() {
        details["group"] = call.kind.group.as_str().into();
    }
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
        .to_string()
}
