//! The subresource `scale`. Never here: what the number means.

use http::Method;
use serde_json::{Value, json};

use super::create::Owners;
use super::update::{self, Next};
use super::{Call, Reply, shown_value};
use crate::kinds::{Scale, at};
use crate::negotiate::{self, Form, PatchType};
use crate::patch;
use crate::protobuf::Expected;
use crate::selector::Labels;
use crate::status::ApiError;

/// A request for the scale of an object.
pub(super) async fn answer(call: &Call<'_>, method: &Method) -> Result<Reply, ApiError> {
    let paths = call.kind.scale.as_ref().expect("it was asked for because there is one");
    let old = call.find()?;
    let value = shown_value(&call.kind, &old);
    let scale = scale(paths, &value);
    let next = match *method {
        Method::GET if call.form == Form::Table => return Ok(Reply::json(200, scale.to_string())),
        Method::GET => return Ok(Reply::json(200, scale.to_string())),
        Method::PUT => negotiate::body(call.content_type, call.body, Expected::SCALE)?,
        Method::PATCH => patched(call, scale.clone())?,
        _ => return Err(super::not_allowed()),
    };
    let revision = &next["metadata"]["resourceVersion"];
    if revision.as_str().is_some_and(|revision| !revision.is_empty() && revision != old.revision.to_string())
    {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(ApiError::conflict(call.named(call.name()), why));
    }
    let replicas = &next["spec"]["replicas"];
    let replicas = match replicas {
        Value::Null => json!(0),
        _ => replicas.clone(),
    };
    if replicas.as_i64().is_none_or(|number| number < 0) {
        let error = crate::status::FieldError::invalid(
            "spec.replicas",
            &replicas,
            "should be a non-negative integer",
        );
        let named = crate::status::Named { kind: "Scale", group: "autoscaling", name: call.name() };
        return Err(ApiError::invalid(named, &[error]));
    }
    let mut value = value;
    set(&mut value, &paths.spec_replicas, replicas);
    let next = Next { value, warnings: Vec::new(), owners: Owners::Update };
    update::write(call, &old, next).await?;
    let now = if call.query.is_dry_run { old } else { call.find()? };
    Ok(Reply::json(200, self::scale(paths, &shown_value(&call.kind, &now)).to_string()))
}

fn patched(call: &Call<'_>, mut scale: Value) -> Result<Value, ApiError> {
    match negotiate::patch_type(call.content_type, call.kind.is_custom())? {
        PatchType::Json => patch::json(&mut scale, call.body)?,
        PatchType::Merge | PatchType::Strategic | PatchType::Apply => {
            patch::merge(&mut scale, &negotiate::yaml(call.body)?)
        }
    }
    Ok(scale)
}

/// The `Scale` of an object.
pub(crate) fn scale(paths: &Scale, value: &Value) -> Value {
    let metadata = &value["metadata"];
    let mut status = json!({ "replicas": at(value, &paths.status_replicas).as_i64().unwrap_or(0) });
    let selector = paths.selector.as_deref().map_or(&Value::Null, |path| at(value, path));
    let selector = match selector {
        Value::String(text) => text.clone(),
        // A workload of Kubernetes has its selector as an object.
        other => Labels::of_object(other).unwrap_or_default().to_string(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut kept = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !metadata[field].is_null() {
            kept[field] = metadata[field].clone();
        }
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": kept,
        "spec": { "replicas": at(value, &paths.spec_replicas).as_i64().unwrap_or(0) },
        "status": status,
    })
}

/// Sets the value at a path such as `.spec.replicas`.
pub(crate) fn set(value: &mut Value, path: &str, new: Value) {
    *path.split('.').filter(|name| !name.is_empty()).fold(value, |value, name| &mut value[name]) = new;
}
