//! Values as rules see them. They borrow from the object. Never here: what functions do with them.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString,
};
use cel::common::value::Val;
use serde_json::{Number, Value};

use super::super::{Role, Schema, Type, meta};
use super::escape;
use super::times::{Span, Time};

/// A value of a schema. Fields that rules cannot name are there too, under names that cannot be written, so that objects
/// that differ in them are not equal.
pub(super) fn view<'v>(schema: &'v Schema, value: &'v Value) -> Box<dyn Val + 'v> {
    match value {
        Value::String(text) => string(schema, text),
        Value::Number(number) if schema.kind == Some(Type::Number) => {
            Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN)))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| match &schema.items {
                Some(of_items) => view(of_items, item),
                None => plain(item),
            });
            Box::new(CelList::from(items.collect::<Vec<_>>()))
        }
        Value::Object(fields) => {
            let mut map = HashMap::with_capacity(fields.len());
            // A field that is null is not there.
            for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
                let (key, value) = field(schema, name, value);
                map.insert(key, value);
            }
            Box::new(CelMap::from(map))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => plain(value),
    }
}

fn field<'v>(schema: &'v Schema, name: &'v str, value: &'v Value) -> (CelMapKey<'v>, Box<dyn Val + 'v>) {
    let is_open = schema.role != Role::Metadata || meta::LIMITED.contains(&name);
    if let Some(of_field) = schema.properties.get(name).filter(|_| is_open)
        && let Some(escaped) = escape(name)
    {
        let key = match escaped {
            std::borrow::Cow::Borrowed(name) => CelMapKey::from(name),
            std::borrow::Cow::Owned(name) => CelMapKey::from(name),
        };
        return (key, view(of_field, value));
    }
    match &schema.additional {
        Some(of_values) => (CelMapKey::from(name), view(of_values, value)),
        None => (CelMapKey::from(format!("@{name}")), plain(value)),
    }
}

fn string<'v>(schema: &Schema, text: &'v str) -> Box<dyn Val + 'v> {
    let special: Option<Box<dyn Val + 'v>> = match schema.checks.format.as_deref() {
        _ if schema.int_or_string => None,
        Some("date" | "date-time" | "datetime") => Time::parse(text).map(|time| Box::new(time) as _),
        Some("duration") => Span::parse(text).map(|span| Box::new(span) as _),
        Some("byte") => STANDARD.decode(text).ok().map(|bytes| Box::new(CelBytes::from(bytes)) as _),
        _ => None,
    };
    special.unwrap_or_else(|| Box::new(CelString::from(text)))
}

/// A value as it is.
pub(super) fn plain<'v>(value: &'v Value) -> Box<dyn Val + 'v> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(*flag)),
        Value::Number(number) => plain_number(number),
        Value::String(text) => Box::new(CelString::from(text.as_str())),
        Value::Array(items) => Box::new(CelList::from(items.iter().map(plain).collect::<Vec<_>>())),
        Value::Object(fields) => {
            let entries = fields.iter().map(|(name, value)| (CelMapKey::from(name.as_str()), plain(value)));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
    }
}

fn plain_number<'v>(number: &Number) -> Box<dyn Val + 'v> {
    match number.as_i64() {
        Some(whole) => Box::new(CelInt::from(whole)),
        None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
    }
}
