//! What cannot be decoded at all: values of another type than the programs of Kubernetes have for them. Never here: what
//! may be said in words of the right type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value};

use super::{Role, Schema, Type, formats};

/// The first thing that cannot be decoded.
pub(super) fn decode(schema: &Schema, value: &Value) -> Result<(), String> {
    if schema.role != Role::Root {
        return Decoder { path: String::new() }.value(schema, value, short(schema).unwrap_or_default());
    }
    metadata(schema, value)?;
    if schema.below.embedded { embedded(schema, value, &mut String::new()) } else { Ok(()) }
}

/// The decoder sees `metadata` alone, so paths begin there.
fn metadata(schema: &Schema, value: &Value) -> Result<(), String> {
    let (Some(of_metadata), Some(metadata)) = (schema.properties.get("metadata"), value.get("metadata"))
    else {
        return Ok(());
    };
    if !metadata.is_object() && !metadata.is_null() {
        return Err(format!(
            "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
            go_kind(metadata)
        ));
    }
    Decoder { path: String::new() }.value(of_metadata, metadata, "ObjectMeta")
}

fn embedded(schema: &Schema, value: &Value, path: &mut String) -> Result<(), String> {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                for name in ["apiVersion", "kind"] {
                    if let Some(value) = fields.get(name).filter(|value| !value.is_string()) {
                        return Err(format!("{path}.{name}: Invalid value: {value}: must be a string"));
                    }
                }
                let shown = fields.get("metadata").unwrap_or(&Value::Null);
                metadata(schema, value)
                    .map_err(|why| format!("{path}.metadata: Invalid value: {shown}: {why}"))?;
            }
            for (name, value) in fields {
                let Some(of_field) = schema.field(name).filter(|field| field.below.embedded) else {
                    continue;
                };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                embedded(of_field, value, path)?;
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(of_items) = schema.items.as_ref().filter(|items| items.below.embedded) else {
                return Ok(());
            };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                embedded(of_items, item, path)?;
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

struct Decoder {
    /// Names of fields, without indexes and keys of maps.
    path: String,
}

impl Decoder {
    /// `owner` is the type that has the field.
    fn value(&mut self, schema: &Schema, value: &Value, owner: &str) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        if schema.role == Role::Quantity {
            return quantity(value);
        }
        if schema.int_or_string {
            return match value {
                Value::String(_) => Ok(()),
                Value::Number(number) if fits(number, "int32") => Ok(()),
                other => Err(self.refuse(other, owner, "int32")),
            };
        }
        let Some(kind) = schema.kind else { return Ok(()) };
        match (kind, value) {
            (Type::Object, Value::Object(fields)) => self.fields(schema, fields, owner),
            (Type::Array, Value::Array(items)) => {
                let Some(of_items) = &schema.items else { return Ok(()) };
                items.iter().try_for_each(|item| self.value(of_items, item, owner))
            }
            (Type::String, Value::String(text)) => string(schema, text),
            (Type::Integer, Value::Number(number)) if fits(number, format(schema)) => Ok(()),
            (Type::Number, Value::Number(_)) | (Type::Boolean, Value::Bool(_)) => Ok(()),
            _ => Err(self.refuse(value, owner, &go_type(schema))),
        }
    }

    fn fields(
        &mut self,
        schema: &Schema,
        fields: &serde_json::Map<String, Value>,
        owner: &str,
    ) -> Result<(), String> {
        let owner = short(schema).unwrap_or(owner);
        for (name, value) in fields {
            if let Some(of_field) = schema.properties.get(name) {
                let length = self.path.len();
                if !self.path.is_empty() {
                    self.path.push('.');
                }
                self.path.push_str(name);
                self.value(of_field, value, owner)?;
                self.path.truncate(length);
            } else if let Some(of_values) = &schema.additional {
                self.value(of_values, value, owner)?;
            }
        }
        Ok(())
    }

    fn refuse(&self, value: &Value, owner: &str, wanted: &str) -> String {
        let given = match value {
            // A number is shown only if it is the number that does not fit.
            Value::Number(number) if matches!(wanted, "int32" | "int64") => format!("number {number}"),
            other => go_kind(other).to_owned(),
        };
        format!("json: cannot unmarshal {given} into Go struct field {owner}.{} of type {wanted}", self.path)
    }
}

/// How times with microseconds are written, as Go puts it.
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// How many characters of a time say year, month, day, hour, minute and second.
const SECONDS: usize = 19;

fn string(schema: &Schema, text: &str) -> Result<(), String> {
    let is_micro = || schema.type_name.as_deref().is_some_and(|name| name.ends_with("MicroTime"));
    match schema.checks.format.as_deref() {
        Some("date-time") if !text.is_empty() && !formats::is_date_time(text) => {
            let layout = if is_micro() { MICROS } else { "2006-01-02T15:04:05Z07:00" };
            Err(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
        }
        Some("date-time") if !text.is_empty() && is_micro() && !has_micros(text) => {
            let rest = text.get(SECONDS..).unwrap_or_default();
            Err(format!("parsing time {text:?} as {MICROS:?}: cannot parse {rest:?} as \".000000\""))
        }
        Some("byte") => match STANDARD.decode(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("illegal base64 data at input byte {}", offset(&error, text))),
        },
        _ => Ok(()),
    }
}

/// Whether a time has exactly six digits below the second.
fn has_micros(text: &str) -> bool {
    let digits = text.get(SECONDS..).and_then(|rest| rest.strip_prefix('.'));
    digits.is_some_and(|digits| digits.bytes().take_while(u8::is_ascii_digit).count() == 6)
}

fn offset(error: &base64::DecodeError, text: &str) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    }
}

fn quantity(value: &Value) -> Result<(), String> {
    const SHAPE: &str =
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    let text = match value {
        Value::String(text) => text.as_str(),
        Value::Number(_) => return Ok(()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return Err(SHAPE.to_owned()),
    };
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = number.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let digits = &number[..number.len() - suffix.len()];
    if !digits.bytes().any(|byte| byte.is_ascii_digit()) || digits.matches('.').count() > 1 {
        return Err(SHAPE.to_owned());
    }
    let letters = suffix.trim_start_matches(|letter: char| "eEinumkKMGTP".contains(letter));
    let exponent = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(SHAPE.to_owned());
    }
    let is_power = suffix.starts_with(['e', 'E']) && !exponent.is_empty();
    let is_unit = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
        .contains(&suffix);
    if is_power || is_unit { Ok(()) } else { Err("unable to parse quantity's suffix".to_owned()) }
}

fn format(schema: &Schema) -> &str {
    schema.checks.format.as_deref().unwrap_or("int64")
}

fn fits(number: &Number, format: &str) -> bool {
    match number.as_i64() {
        Some(whole) => format != "int32" || i32::try_from(whole).is_ok(),
        None => false,
    }
}

fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_type(schema: &Schema) -> String {
    match schema.kind {
        Some(Type::Object) => match (&schema.type_name, &schema.additional) {
            (Some(name), _) => name.to_string(),
            (None, Some(of_values)) => format!("map[string]{}", go_type(of_values)),
            (None, None) => "map[string]interface {}".to_owned(),
        },
        Some(Type::Array) => match &schema.items {
            Some(of_items) => format!("[]{}", go_type(of_items)),
            None => "[]interface {}".to_owned(),
        },
        Some(Type::String) if schema.checks.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Some(Type::String) => "string".to_owned(),
        Some(Type::Integer) => format(schema).to_owned(),
        Some(Type::Number) => "float64".to_owned(),
        Some(Type::Boolean) => "bool".to_owned(),
        None => schema.type_name.as_deref().unwrap_or("interface {}").to_owned(),
    }
}

fn short(schema: &Schema) -> Option<&str> {
    let name = schema.type_name.as_deref()?;
    Some(name.rsplit('.').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{Components, Schema};

    fn pod() -> Value {
        let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "components": { "schemas": {
            "core.v1.Pod": { "type": "object", "properties": { "spec": { "allOf": [to("core.v1.PodSpec")], "default": {} } } },
            "core.v1.PodSpec": { "type": "object", "properties": {
                "containers": { "type": "array", "items": to("core.v1.Container") },
                "nodeSelector": { "type": "object", "additionalProperties": { "type": "string" } },
                "priority": { "type": "integer", "format": "int32" },
                "hostNetwork": { "type": "boolean" },
                "grace": { "type": "integer", "format": "int64" },
                "cpu": to("api.resource.Quantity"),
                "at": to("meta.v1.MicroTime"),
                "data": { "type": "string", "format": "byte" },
            } },
            "core.v1.Container": { "type": "object", "properties": {
                "name": { "type": "string" }, "port": { "type": "string", "format": "int-or-string" },
            } },
            "api.resource.Quantity": { "oneOf": [{ "type": "string" }, { "type": "number" }] },
            "meta.v1.MicroTime": { "type": "string", "format": "date-time" },
        } } })
    }

    /// Each row was asked of a real API server.
    #[test]
    fn kinds_of_kubernetes_are_refused_as_its_decoder_does() {
        let document = pod();
        let pod = Components::new(&document).schema("core.v1.Pod").expect("it is there");
        for (spec, message) in [
            (json!("x"), "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"),
            (
                json!({ "containers": "x" }),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
            ),
            (
                json!({ "containers": [1] }),
                "json: cannot unmarshal number into Go struct field PodSpec.spec.containers of type v1.Container",
            ),
            (
                json!({ "containers": [{ "name": 1 }] }),
                "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
            ),
            (
                json!({ "containers": [{ "port": [] }] }),
                "json: cannot unmarshal array into Go struct field Container.spec.containers.port of type int32",
            ),
            (
                json!({ "containers": [{ "port": 1.5 }] }),
                "json: cannot unmarshal number 1.5 into Go struct field Container.spec.containers.port of type int32",
            ),
            (
                json!({ "nodeSelector": { "a": 1 } }),
                "json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type string",
            ),
            (
                json!({ "nodeSelector": [] }),
                "json: cannot unmarshal array into Go struct field PodSpec.spec.nodeSelector of type map[string]string",
            ),
            (
                json!({ "priority": 3_000_000_000_u64 }),
                "json: cannot unmarshal number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
            ),
            (
                json!({ "grace": "x" }),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.grace of type int64",
            ),
            (
                json!({ "hostNetwork": "x" }),
                "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
            ),
            (
                json!({ "cpu": "x" }),
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                json!({ "at": "x" }),
                "parsing time \"x\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"x\" as \"2006\"",
            ),
            (json!({ "data": "*" }), "illegal base64 data at input byte 0"),
        ] {
            assert_eq!(pod.decode(&json!({ "spec": spec })), Err(message.to_owned()), "{spec}");
        }
        let right = json!({ "spec": {
            "containers": [{ "port": "http", "name": null }, { "port": 80 }], "cpu": "1500m", "at": "2020-01-01T00:00:00.000001Z",
        } });
        assert_eq!(pod.decode(&right), Ok(()));
    }

    #[test]
    fn of_kinds_of_crds_only_metadata_and_embedded_resources_are_decoded() {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
            "n": { "type": "integer" },
            "e": {
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
            },
        } } } });
        let schema = Schema::of_crd(&schema, "schema").expect("the schema is right");
        for (object, message) in [
            (
                json!({ "metadata": { "labels": { "a": 1 } } }),
                "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
            ),
            (json!({ "metadata": "x" }), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
            (
                json!({ "metadata": { "ownerReferences": [{ "controller": "x" }] } }),
                "json: cannot unmarshal string into Go struct field OwnerReference.ownerReferences.controller of type bool",
            ),
            (
                json!({ "metadata": { "ownerReferences": {} } }),
                "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
            ),
            (
                json!({ "metadata": { "creationTimestamp": "x" } }),
                "parsing time \"x\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"x\" as \"2006\"",
            ),
            (json!({ "spec": { "e": { "kind": 2 } } }), "spec.e.kind: Invalid value: 2: must be a string"),
            (
                json!({ "spec": { "e": { "metadata": { "name": 1 } } } }),
                "spec.e.metadata: Invalid value: {\"name\":1}: json: cannot unmarshal number into Go struct field \
                 ObjectMeta.name of type string",
            ),
        ] {
            assert_eq!(schema.decode(&object), Err(message.to_owned()), "{object}");
        }
        assert_eq!(schema.decode(&json!({ "metadata": null, "spec": { "n": "not decoded" } })), Ok(()));
    }
}
