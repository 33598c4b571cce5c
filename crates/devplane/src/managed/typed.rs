//! What is wrong with the shape of an applied object: without it nobody can say who owns what. Never here: limits of
//! values.

use serde_json::{Map, Value};

use crate::managed::fields::shown;
use crate::managed::form::Form;
use crate::patch::{literal, plain, type_name};
use crate::schema::{ListType, Schema, Type};
use crate::status::ApiError;

/// Refuses an object that does not have the shape of its schema.
pub(super) fn check_shape(form: Form<'_>, applied: &Value) -> Result<(), ApiError> {
    let mut found = Vec::new();
    check(form, applied, "", &mut found);
    let found = match &*found {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let text = |path: &str| applied.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let api_version = text("/apiVersion");
    let slash = if api_version.contains('/') { "" } else { "/" };
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {slash}{api_version}, Kind={}): {found}",
        text("/kind"),
    );
    // The original has no reason and no better code for this.
    Err(ApiError::new(500, "", message))
}

fn check(form: Form<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    let Some(schema) = form.schema().filter(|schema| !schema.int_or_string) else { return };
    let mut complain =
        |wanted: &str, shown: String| found.push(format!("{path}: expected {wanted}, got {shown}"));
    match (schema.kind, value) {
        (_, Value::Null) => {}
        (Some(Type::Object), Value::Object(fields)) => check_fields(form, fields, path, found),
        (Some(Type::Array), Value::Array(items)) => check_items(schema, items, path, found),
        (Some(Type::Object), other) => complain("map", format!("&{{{}}}", plain(other))),
        (Some(Type::Array), other) => complain("list", format!("&{{{}}}", plain(other))),
        (Some(Type::String), other) if !other.is_string() => {
            complain("string", format!("&value.valueUnstructured{{Value:{}}}", literal(other)));
        }
        (Some(Type::Integer | Type::Number), other) if !other.is_number() => {
            complain("numeric (int or float)", type_name(other).into());
        }
        (Some(Type::Boolean), other) if !other.is_boolean() => {
            complain("boolean", format!("&{{{}}}", plain(other)));
        }
        (None | Some(Type::String | Type::Integer | Type::Number | Type::Boolean), _) => {}
    }
}

fn check_fields(form: Form<'_>, fields: &Map<String, Value>, path: &str, found: &mut Vec<String>) {
    let knows_all = form.schema().is_some_and(|schema| {
        !schema.properties.is_empty() && schema.additional.is_none() && !schema.preserve_unknown
    });
    for (name, value) in fields {
        let path = format!("{path}.{name}");
        let field = form.field(name);
        if knows_all && !field.is_named {
            found.push(format!("{path}: field not declared in schema"));
            // The original stops here, too.
            return;
        }
        check(field.form, value, &path, found);
    }
}

fn check_items(schema: &Schema, items: &[Value], path: &str, found: &mut Vec<String>) {
    let form = Form::of(schema);
    let mut steps = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        let step = match (schema.list_type, nameless(schema, item)) {
            (ListType::Atomic, _) => format!("[{place}]"),
            (ListType::Set | ListType::Map, Some(why)) => {
                found.push(format!("{path}: element {place}: {why}"));
                continue;
            }
            (ListType::Set | ListType::Map, None) => shown(&form.item_step(item).unwrap_or_default()),
        };
        if steps.contains(&step) {
            found.push(format!("{path}: duplicate entries for key {step}"));
            continue;
        }
        check(form.item(), item, &format!("{path}{step}"), found);
        steps.push(step);
    }
}

/// Why an item of a set or map cannot be told from others.
fn nameless(schema: &Schema, item: &Value) -> Option<String> {
    let why = match (schema.list_type, item) {
        (ListType::Atomic, _) => return None,
        (ListType::Set, Value::Null) => {
            "associative list without keys has an element that's an explicit null"
        }
        (ListType::Set, Value::Object(_)) => "associative list without keys has an element that's a map type",
        (ListType::Set, Value::Array(_)) => "not supported: associative list with lists as elements",
        (ListType::Set, Value::Bool(_) | Value::Number(_) | Value::String(_)) => return None,
        (ListType::Map, Value::Null) => "associative list with keys may not have a null element",
        (ListType::Map, Value::Object(_)) => {
            let has_key = Form::of(schema).item_step(item).is_some();
            let keys = Value::from(schema.list_map_keys.clone());
            return (!has_key).then(|| {
                format!(
                    "associative list with keys has an element that omits all key fields {keys} \
                     (and doesn't have default values for any key fields)"
                )
            });
        }
        (ListType::Map, _) => "associative list with keys may not have non-map elements",
    };
    Some(why.into())
}
