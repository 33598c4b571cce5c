//! What somebody who applies an object owns by it, and how it is merged into what is there. Never here: who owned what
//! before, conflicts.

use serde_json::{Map, Value};

use crate::managed::fields::{Fields, add_here, add_step, field_step};
use crate::managed::form::Form;

/// The fields of an applied object.
pub(super) fn fields_of(form: Form<'_>, applied: &Map<String, Value>) -> Fields {
    let mut owned = Fields::new();
    for (name, value) in applied {
        let field = form.field(name);
        let below = match fields_in(field.form, value) {
            below if field.is_named => below,
            // The entry of a map is owned itself, a field only by what is in it.
            below => {
                let mut below = below.unwrap_or_default();
                add_here(&mut below);
                Some(below)
            }
        };
        if let Some(below) = below {
            add_step(&mut owned, field_step(name), below);
        }
    }
    owned
}

/// `None`: nothing in there is owned.
fn fields_in(form: Form<'_>, value: &Value) -> Option<Fields> {
    match value {
        Value::Object(fields) if !fields.is_empty() && form.has_fields() => {
            Some(fields_of(form, fields)).filter(|owned| !owned.is_empty())
        }
        Value::Array(items) if form.has_items() => {
            let mut owned = Fields::new();
            for item in items {
                let Some(step) = form.item_step(item) else { continue };
                let mut below = fields_in(form.item(), item).unwrap_or_default();
                add_here(&mut below);
                // Of items that cannot be told apart nobody owns a part.
                let is_double = owned.contains_key(&step);
                add_step(&mut owned, step, if is_double { Fields::new() } else { below });
            }
            Some(owned).filter(|owned| !owned.is_empty())
        }
        Value::Array(_)
        | Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => Some(Fields::new()),
    }
}

/// Merges an applied object into the live one.
pub(super) fn merge(form: Form<'_>, live: &mut Map<String, Value>, applied: &Map<String, Value>) {
    for (name, value) in applied {
        match live.get_mut(name) {
            Some(present) => merge_values(form.field(name).form, present, value),
            None => {
                live.insert(name.clone(), value.clone());
            }
        }
    }
}

fn merge_values(form: Form<'_>, live: &mut Value, applied: &Value) {
    match (&mut *live, applied) {
        (Value::Object(live), Value::Object(applied)) if form.has_fields() => merge(form, live, applied),
        // A null says nothing about what is in there.
        (Value::Object(fields), Value::Null) if form.has_fields() && !fields.is_empty() => {}
        (Value::Array(items), Value::Null) if form.has_items() && !items.is_empty() => {}
        (Value::Array(items), Value::Array(applied_items)) if form.has_items() => {
            match merge_items(form, std::mem::take(items), applied_items) {
                Some(merged) => *items = merged,
                None => *live = applied.clone(),
            }
        }
        _ => *live = applied.clone(),
    }
}

/// Items that both have are in the order of `applied`. Items that only `live` has stay behind what they came after, as
/// far as that order allows.
fn merge_items(form: Form<'_>, live: Vec<Value>, applied: &[Value]) -> Option<Vec<Value>> {
    let live_steps = form.item_steps(&live)?;
    let applied_steps = form.item_steps(applied)?;
    let mut live: Vec<Option<Value>> = live.into_iter().map(Some).collect();
    let mut merged = Vec::with_capacity(live.len() + applied.len());
    let mut taken = 0;
    for place in 0..live.len() {
        let step = &live_steps[place];
        if !applied_steps.contains(step) {
            merged.extend(live[place].take());
            continue;
        }
        let is_live = |applied: &String| live_steps.contains(applied);
        let next_shared = (taken..applied.len()).find(|next| is_live(&applied_steps[*next]));
        if let Some(next) = next_shared.filter(|next| applied_steps[*next] == *step) {
            for at in taken..=next {
                merged.push(merge_item(form, &mut live, &live_steps, (&applied[at], &applied_steps[at])));
            }
            taken = next + 1;
        }
    }
    for at in taken..applied.len() {
        merged.push(merge_item(form, &mut live, &live_steps, (&applied[at], &applied_steps[at])));
    }
    Some(merged)
}

/// An applied item and the step to it, merged with the live one. Where that is there twice, neither counts.
fn merge_item(
    form: Form<'_>,
    live: &mut [Option<Value>],
    live_steps: &[String],
    (applied, step): (&Value, &String),
) -> Value {
    let mut places = (0..live_steps.len()).filter(|place| live_steps[*place] == *step);
    match (places.next(), places.next()) {
        (Some(place), None) => {
            let mut item = live[place].take().unwrap_or_default();
            merge_values(form.item(), &mut item, applied);
            item
        }
        (_, _) => applied.clone(),
    }
}
