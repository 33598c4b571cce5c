//! Strategic merge patch: the merge patch of built-in kinds, which knows which lists are merged and by what. Never here:
//! the order of lists.

use serde_json::{Map, Value};

use crate::patch::order::{Same, arrange, check_order};
use crate::patch::{decode, drop_nulls, plain, type_name};
use crate::schema::Schema;
use crate::status::ApiError;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

type Fields = Map<String, Value>;

/// Applies a strategic merge patch, with its directives. After an error the object is of no use.
pub(crate) fn strategic(schema: &Schema, object: &mut Value, patch: &Value) -> Result<(), ApiError> {
    match (object, patch) {
        (_, Value::Null) => Ok(()),
        (Value::Object(object), Value::Object(patch)) => merge_fields(Some(schema), object, patch.clone()),
        (_, other) => Err(ApiError::bad_request(decode::not_an_object(other))),
    }
}

fn merge_fields(schema: Option<&Schema>, fields: &mut Fields, mut patch: Fields) -> Result<(), ApiError> {
    match patch.get(DIRECTIVE).map(plain).as_deref() {
        None => {}
        Some("replace") => {
            patch.remove(DIRECTIVE);
            *fields = patch;
            return Ok(());
        }
        Some("delete") => {
            fields.clear();
            return Ok(());
        }
        Some(_) => return Err(unknown_directive(&Value::Object(patch))),
    }
    retain_keys(fields, &mut patch)?;
    merge_ordered_lists(schema, fields, &mut patch)?;
    let (gone, patch): (Fields, Fields) =
        patch.into_iter().partition(|(name, _)| name.starts_with(DELETE_FROM));
    for (name, value) in patch {
        merge_field(schema, fields, name, value)?;
    }
    gone.iter().try_for_each(|(name, items)| delete_from_list(fields, &name[DELETE_FROM.len()..], items))
}

fn merge_field(
    schema: Option<&Schema>,
    fields: &mut Fields,
    name: String,
    value: Value,
) -> Result<(), ApiError> {
    let child = child(schema, &name);
    match (fields.get_mut(&name), value) {
        (_, Value::Null) => {
            fields.remove(&name);
        }
        (Some(Value::Object(present)), Value::Object(patch)) => merge_fields(child, present, patch)?,
        (Some(Value::Array(present)), Value::Array(patch)) => {
            let before = std::mem::take(present);
            *present = merge_list(child, before, patch)?;
        }
        (Some(present), mut value) => {
            drop_directives(&mut value);
            *present = value;
        }
        (None, mut value) => {
            if has_directive(&value) {
                return Ok(());
            }
            drop_nulls(&mut value);
            drop_directives(&mut value);
            drop_directive_names(&mut value);
            fields.insert(name, value);
        }
    }
    Ok(())
}

fn child<'s>(schema: Option<&'s Schema>, name: &str) -> Option<&'s Schema> {
    let schema = schema?;
    schema.properties.get(name).or(schema.additional.as_ref()).map(|child| &**child)
}

/// `$retainKeys`: what it does not name goes.
fn retain_keys(fields: &mut Fields, patch: &mut Fields) -> Result<(), ApiError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let refused = || ApiError::bad_request("invalid patch format of retainKeys");
    let keys: Vec<&str> = keys.as_array().ok_or_else(refused)?.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &str| keys.contains(&name);
    let is_order = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(ELEMENT_ORDER);
    if !patch.iter().all(|(name, value)| value.is_null() || is_order(name) || is_kept(name)) {
        return Err(refused());
    }
    fields.retain(|name, _| is_kept(name));
    Ok(())
}

/// `$setElementOrder/x`: merges the list `x` and puts it in that order.
fn merge_ordered_lists(
    schema: Option<&Schema>,
    fields: &mut Fields,
    patch: &mut Fields,
) -> Result<(), ApiError> {
    let orders: Vec<String> = patch.keys().filter(|name| name.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in orders {
        let wanted = list(patch.remove(&directive).unwrap_or_default())?;
        let name = &directive[ELEMENT_ORDER.len()..];
        let child = child(schema, name);
        let same = Same { key: child.and_then(|child| child.patch_merge_key.as_deref()) };
        let before = fields.get(name).cloned().map(list).transpose()?;
        let sent = patch.remove(name).map(list).transpose()?;
        check_order(same, sent.as_deref().unwrap_or_default(), &wanted)?;
        let merged = match (&before, sent) {
            (None, None) => continue,
            (None, Some(sent)) if sent.is_empty() => {
                return Err(failed("no elements in any of the given slices"));
            }
            (Some(before), None) => before.clone(),
            (None, Some(sent)) => {
                let mut sent = Value::Array(sent);
                drop_directives(&mut sent);
                drop_directive_names(&mut sent);
                list(sent)?
            }
            (Some(before), Some(sent)) => merge_list(child, before.clone(), sent)?,
        };
        if let Some(key) = same.key {
            check_keys(&wanted, key)?;
        }
        let before = before.unwrap_or_default();
        fields.insert(name.to_owned(), Value::Array(arrange(same, merged, &wanted, &before)));
    }
    Ok(())
}

fn list(value: Value) -> Result<Vec<Value>, ApiError> {
    let found = type_name(&value);
    match value {
        Value::Array(items) => Ok(items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(failed(format!("expected a []interface {{}}, but received a {found}")))
        }
    }
}

/// `$deleteFromPrimitiveList/x`.
fn delete_from_list(fields: &mut Fields, name: &str, gone: &Value) -> Result<(), ApiError> {
    if let (Some(Value::Array(items)), Value::Array(gone)) = (fields.get_mut(name), gone) {
        check_types(items, gone)?;
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

fn merge_list(
    schema: Option<&Schema>,
    before: Vec<Value>,
    patch: Vec<Value>,
) -> Result<Vec<Value>, ApiError> {
    let Some(schema) = schema.filter(|schema| schema.patch_merge) else { return Ok(patch) };
    if before.is_empty() && patch.is_empty() {
        return Ok(before);
    }
    check_types(&before, &patch)?;
    let same = Same { key: schema.patch_merge_key.as_deref() };
    let of_objects = before.iter().chain(&patch).any(Value::is_object);
    let Some(key) = same.key.filter(|_| of_objects) else {
        let mut merged: Vec<Value> = Vec::with_capacity(before.len() + patch.len());
        for item in before.iter().chain(&patch) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(arrange(same, merged, &patch, &before));
    };
    let Directed { mut merged, patch, before } = follow_directives(key, before, patch)?;
    for item in &patch {
        check_keys(std::slice::from_ref(item), key)?;
        match same.position(&merged, item) {
            Some(place) => {
                if let (Value::Object(present), Value::Object(item)) = (&mut merged[place], item) {
                    merge_fields(schema.items.as_deref(), present, item.clone())?;
                }
            }
            None => {
                let mut item = item.clone();
                drop_nulls(&mut item);
                drop_directive_names(&mut item);
                merged.push(item);
            }
        }
    }
    Ok(arrange(same, merged, &patch, &before))
}

/// A list of objects once the directives among the items of its patch were followed.
struct Directed {
    merged: Vec<Value>,
    /// What of the patch is no directive.
    patch: Vec<Value>,
    /// The list whose order counts.
    before: Vec<Value>,
}

fn follow_directives(key: &str, mut list: Vec<Value>, patch: Vec<Value>) -> Result<Directed, ApiError> {
    let mut plain_items = Vec::with_capacity(patch.len());
    let mut replaces = false;
    for item in patch {
        match item.get(DIRECTIVE).map(plain).as_deref() {
            None => plain_items.push(item),
            Some("replace") => replaces = true,
            Some("delete") => {
                let gone = item.get(key).ok_or_else(|| no_merge_key(&item, key))?;
                list.retain(|present| present.get(key) != Some(gone));
            }
            Some("merge") => return Err(failed("merging lists cannot yet be specified in the patch")),
            Some(_) => return Err(unknown_directive(&item)),
        }
    }
    Ok(if replaces {
        plain_items.iter_mut().for_each(drop_directive_names);
        Directed { merged: plain_items, patch: Vec::new(), before: Vec::new() }
    } else {
        Directed { merged: list.clone(), patch: plain_items, before: list }
    })
}

/// Items of both lists must be of one type.
fn check_types(before: &[Value], patch: &[Value]) -> Result<(), ApiError> {
    let mut types = before.iter().chain(patch).map(type_name);
    let first = types.next();
    if types.all(|other| Some(other) == first) && first != Some("<nil>") {
        return Ok(());
    }
    let (before, patch) = (Value::Array(before.to_vec()), Value::Array(patch.to_vec()));
    Err(failed(format!("list element types are not identical: [{} {}]", plain(&before), plain(&patch))))
}

fn check_keys(items: &[Value], key: &str) -> Result<(), ApiError> {
    for (place, item) in items.iter().enumerate() {
        let fields = item.as_object().ok_or_else(|| failed(format!("value for key {place} is not a map")))?;
        if !fields.contains_key(key) {
            return Err(no_merge_key(item, key));
        }
    }
    Ok(())
}

fn has_directive(value: &Value) -> bool {
    value.get(DIRECTIVE).is_some()
}

/// Takes out what only means something where there is a value before.
fn drop_directives(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !has_directive(value));
            fields.values_mut().for_each(drop_directives);
        }
        Value::Array(items) => {
            items.retain(|item| !has_directive(item));
            items.iter_mut().for_each(drop_directives);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Takes out the directives of a new item, and nothing else: Kubernetes does not look at what they say there.
fn drop_directive_names(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.starts_with('$'));
            fields.values_mut().for_each(drop_directive_names);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_directive_names),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn unknown_directive(patch: &Value) -> ApiError {
    let directive = patch.get(DIRECTIVE).map(plain).unwrap_or_default();
    failed(format!("unknown patch type: {directive} in map: {}", plain(patch)))
}

fn no_merge_key(item: &Value, key: &str) -> ApiError {
    failed(format!("map: {} does not contain declared merge key: {key}", plain(item)))
}

/// The original has no reason and no better code for these.
fn failed(message: impl Into<String>) -> ApiError {
    ApiError::new(500, "", message)
}
