//! In what form a client wants an answer, and in what form it sends a body. Never here: what is answered.

use serde_json::Value;

use crate::protobuf::{self, Expected};
use crate::status::ApiError;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Objects as they are.
    Object,
    /// `Table` of meta.k8s.io/v1.
    Table,
    /// `PartialObjectMetadata` of meta.k8s.io/v1.
    Metadata,
}

impl Form {
    /// The first form in an `Accept` header that we can make.
    pub(crate) fn of(accept: &str, is_list: bool) -> Result<Form, ApiError> {
        let accept = accept.trim();
        if accept.is_empty() {
            return Ok(Form::Object);
        }
        accept.split(',').find_map(|part| one(part, is_list)).ok_or_else(|| {
            ApiError::new(
                406,
                "NotAcceptable",
                "only the following media types are accepted: application/json",
            )
        })
    }
}

fn one(part: &str, is_list: bool) -> Option<Form> {
    let mut words = part.split(';').map(str::trim);
    let media = words.next()?;
    if !matches!(media, "application/json" | "*/*" | "application/*" | "") {
        return None;
    }
    let (mut wanted, mut version, mut group) = ("", "", "");
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        match name {
            "as" => wanted = value,
            "v" => version = value,
            "g" => group = value,
            _ => {}
        }
    }
    match wanted {
        "" => Some(Form::Object),
        _ if group != "meta.k8s.io" || version != "v1" => None,
        "Table" => Some(Form::Table),
        "PartialObjectMetadata" if !is_list => Some(Form::Metadata),
        "PartialObjectMetadataList" if is_list => Some(Form::Metadata),
        _ => None,
    }
}

/// A kind of patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// The kind of patch that a `Content-Type` header names.
pub(crate) fn patch_type(content_type: &str, is_custom: bool) -> Result<PatchType, ApiError> {
    match media(content_type) {
        "application/json-patch+json" => Ok(PatchType::Json),
        "application/merge-patch+json" => Ok(PatchType::Merge),
        "application/strategic-merge-patch+json" if !is_custom => Ok(PatchType::Strategic),
        "application/apply-patch+yaml" => Ok(PatchType::Apply),
        _ => {
            let strategic = if is_custom { "" } else { "application/strategic-merge-patch+json, " };
            Err(ApiError::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml"
                ),
            ))
        }
    }
}

fn media(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Reads a body that holds an object.
pub(crate) fn body(content_type: &str, bytes: &[u8], expected: Expected<'_>) -> Result<Value, ApiError> {
    let has_binary = protobuf::has_form(expected);
    match media(content_type) {
        "application/json" | "" | "*/*" => json(bytes),
        "application/yaml" => yaml(bytes),
        protobuf::MEDIA if has_binary => protobuf::decode(bytes, expected).map_err(ApiError::bad_request),
        _ => {
            let binary = if has_binary { ", application/vnd.kubernetes.protobuf" } else { "" };
            Err(ApiError::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                     application/json, application/yaml{binary}"
                ),
            ))
        }
    }
}

/// Reads JSON.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::bad_request(format!("cannot read the body as JSON: {error}")))
}

/// Reads YAML; JSON is YAML too, and faster to read.
pub(crate) fn yaml(bytes: &[u8]) -> Result<Value, ApiError> {
    if let Ok(value) = serde_json::from_slice(bytes) {
        return Ok(value);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ApiError::bad_request(error.to_string()))?;
    serde_saphyr::from_str(text)
        .map_err(|error| ApiError::bad_request(format!("error decoding YAML: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_can_be_made_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, wanted) in [
            ("", Some(Form::Object)),
            ("*/*", Some(Form::Object)),
            (kubectl, Some(Form::Table)),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Some(Form::Metadata)),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", None),
            ("application/vnd.kubernetes.protobuf,application/json", Some(Form::Object)),
            ("application/vnd.kubernetes.protobuf", None),
            ("application/json;as=Table;v=v9;g=meta.k8s.io", None),
        ] {
            assert_eq!(Form::of(accept, false).ok(), wanted, "{accept}");
        }
    }
}
