//! Types that are something else in JSON than their fields say. Never here: types that are not.

use jiff::Timestamp;
use serde_json::Value;

use super::message::Reader;
use super::table::{Kind, table};
use super::wire::{Fields, Raw};
use crate::environment::{micros, seconds};

const SCHEMA: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";

/// A type of this sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// JSON as text.
    Json,
    /// A schema, or a list of them.
    SchemaOrList,
    SchemaOrBool,
    /// A schema, or names of fields.
    SchemaOrNames,
}

impl Special {
    pub(super) fn of_name(name: &str) -> Option<Special> {
        let found = match name.strip_prefix("io.k8s.")? {
            "apimachinery.pkg.apis.meta.v1.Time" => Special::Time,
            "apimachinery.pkg.apis.meta.v1.MicroTime" => Special::MicroTime,
            "apimachinery.pkg.api.resource.Quantity" => Special::Quantity,
            "apimachinery.pkg.util.intstr.IntOrString" => Special::IntOrString,
            "apimachinery.pkg.apis.meta.v1.FieldsV1"
            | "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON" => Special::Json,
            "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray" => {
                Special::SchemaOrList
            }
            "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool" => {
                Special::SchemaOrBool
            }
            "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray" => {
                Special::SchemaOrNames
            }
            _ => return None,
        };
        Some(found)
    }
}

/// Reads a value; `None` for one that is not set.
pub(super) fn read(reader: Reader, special: Special, bytes: &[u8]) -> Result<Option<Value>, String> {
    match special {
        Special::Time => Ok(time(bytes)?.map(|time| seconds(time).into())),
        Special::MicroTime => Ok(time(bytes)?.map(|time| micros(time).into())),
        Special::Quantity => Ok(Some(last(bytes, 1, text)?.unwrap_or_else(|| "0".into()).into())),
        Special::IntOrString => int_or_string(bytes).map(Some),
        Special::Json => json(bytes),
        Special::SchemaOrList => either(reader, bytes, Kind::Message(schema())),
        Special::SchemaOrNames => either(reader, bytes, Kind::Text),
        Special::SchemaOrBool => match last(bytes, 2, raw_bytes)? {
            Some(bytes) => reader.message(schema(), bytes).map(Some),
            None => Ok(Some((last(bytes, 1, varint)?.unwrap_or_default() != 0).into())),
        },
    }
}

fn schema() -> super::table::Index {
    table().find(SCHEMA).expect("CRDs are served, and what has schemas has them")
}

/// Seconds since 1970 and nanoseconds; nothing for no time.
fn time(bytes: &[u8]) -> Result<Option<Timestamp>, String> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let seconds = last(bytes, 1, varint)?.unwrap_or_default().cast_signed();
    #[expect(clippy::cast_possible_truncation, reason = "it is written as a number of 32 bits")]
    let nanos = last(bytes, 2, varint)?.unwrap_or_default().cast_signed() as i32;
    Timestamp::new(seconds, nanos).map(Some).map_err(|error| error.to_string())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, String> {
    if last(bytes, 1, varint)?.unwrap_or_default() == 0 {
        #[expect(clippy::cast_possible_truncation, reason = "negative numbers are written with 64 bits")]
        let number = last(bytes, 2, varint)?.unwrap_or_default().cast_signed() as i32;
        return Ok(number.into());
    }
    Ok(last(bytes, 3, text)?.unwrap_or_default().into())
}

fn json(bytes: &[u8]) -> Result<Option<Value>, String> {
    let text = last(bytes, 1, raw_bytes)?.unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(text).map(Some).map_err(|error| error.to_string())
}

/// The list in field 2, or if it is empty the schema in field 1.
fn either(reader: Reader, bytes: &[u8], of_items: Kind) -> Result<Option<Value>, String> {
    let mut items = Vec::new();
    for field in Fields(bytes) {
        let (number, raw) = field?;
        if number == 2 {
            items.push(reader.value(of_items, "items", raw)?.unwrap_or_default());
        }
    }
    match last(bytes, 1, raw_bytes)? {
        Some(bytes) if items.is_empty() => reader.message(schema(), bytes).map(Some),
        Some(_) | None => Ok(Some(items.into())),
    }
}

/// The last value of a field.
fn last<'a, T>(
    bytes: &'a [u8],
    number: u32,
    read: impl Fn(Raw<'a>) -> Option<T>,
) -> Result<Option<T>, String> {
    let mut found = None;
    for field in Fields(bytes) {
        let (given, raw) = field?;
        if given == number {
            found = Some(read(raw).ok_or_else(|| raw.refuse(&number.to_string()))?);
        }
    }
    Ok(found)
}

fn varint(raw: Raw<'_>) -> Option<u64> {
    match raw {
        Raw::Varint(number) => Some(number),
        Raw::Bytes(_) | Raw::Fixed32(_) | Raw::Fixed64(_) => None,
    }
}

fn raw_bytes(raw: Raw<'_>) -> Option<&[u8]> {
    match raw {
        Raw::Bytes(bytes) => Some(bytes),
        Raw::Varint(_) | Raw::Fixed32(_) | Raw::Fixed64(_) => None,
    }
}

fn text(raw: Raw<'_>) -> Option<String> {
    raw_bytes(raw).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
