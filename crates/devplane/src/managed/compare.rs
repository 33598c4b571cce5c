//! What differs between two states of an object. Never here: who did it.

use serde_json::{Map, Value};

use crate::managed::fields::{Fields, add_here, add_step, field_step};
use crate::managed::form::Form;

/// What differs between two states.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Fields that are new or have another value.
    pub set: Fields,
    /// Fields that are not there any more.
    pub gone: Fields,
}

/// What differs below a path.
#[derive(Default)]
struct Delta {
    set: Option<Fields>,
    gone: Option<Fields>,
}

/// What differs between two states of an object.
pub(super) fn compare(form: Form<'_>, old: &Map<String, Value>, new: &Map<String, Value>) -> Changes {
    let delta = compare_fields(form, old, new);
    Changes { set: delta.set.unwrap_or_default(), gone: delta.gone.unwrap_or_default() }
}

/// The value itself and everything in it.
fn everything(form: Form<'_>, value: &Value) -> Fields {
    let mut all = Fields::new();
    match value {
        Value::Object(fields) if form.has_fields() => {
            for (name, value) in fields {
                add_step(&mut all, field_step(name), everything(form.field(name).form, value));
            }
        }
        Value::Array(items) if form.has_items() => {
            for (step, item) in form.item_steps(items).unwrap_or_default().into_iter().zip(items) {
                // Of items that cannot be told apart nobody owns a part.
                let is_double = all.contains_key(&step);
                let below = if is_double { Fields::new() } else { everything(form.item(), item) };
                add_step(&mut all, step, below);
            }
        }
        Value::Array(_)
        | Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => {}
    }
    add_here(&mut all);
    all
}

/// Everything in a value, the value itself left out.
fn inside(form: Form<'_>, value: &Value) -> Option<Fields> {
    let mut all = everything(form, value);
    all.remove(".");
    Some(all).filter(|all| !all.is_empty())
}

fn compare_values(form: Form<'_>, old: &Value, new: &Value) -> Delta {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) if form.has_fields() => compare_fields(form, old, new),
        _ if old == new => Delta::default(),
        // Between null and something with parts only the parts differ.
        (old, Value::Null) if has_parts(form, old) => Delta { set: None, gone: inside(form, old) },
        (Value::Null, new) if has_parts(form, new) => Delta { set: inside(form, new), gone: None },
        (Value::Array(old_items), Value::Array(new_items)) if form.has_items() => {
            compare_items(form, old_items, new_items).unwrap_or_else(|| replaced(form, old, new))
        }
        _ => replaced(form, old, new),
    }
}

fn has_parts(form: Form<'_>, value: &Value) -> bool {
    match value {
        Value::Object(fields) => form.has_fields() && !fields.is_empty(),
        Value::Array(items) => form.has_items() && !items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn replaced(form: Form<'_>, old: &Value, new: &Value) -> Delta {
    Delta { set: Some(everything(form, new)), gone: inside(form, old) }
}

fn compare_fields(form: Form<'_>, old: &Map<String, Value>, new: &Map<String, Value>) -> Delta {
    let mut delta = Delta::default();
    let nothing = Map::new();
    for (name, value) in new {
        let field = form.field(name);
        let below = match (old.get(name), value) {
            (Some(before), _) => compare_values(field.form, before, value),
            (None, Value::Object(fields)) if field.is_implied && field.form.has_fields() => {
                compare_fields(field.form, &nothing, fields)
            }
            (None, Value::Object(fields)) if field.is_implied && fields.is_empty() => Delta::default(),
            (None, _) => match &field.unsaid {
                Some(before) => compare_values(field.form, before, value),
                None => Delta { set: Some(everything(field.form, value)), gone: None },
            },
        };
        delta.put(below, || field_step(name));
    }
    for (name, value) in old.iter().filter(|(name, _)| !new.contains_key(*name)) {
        let field = form.field(name);
        let below = match value {
            Value::Object(fields) if field.is_implied => compare_fields(field.form, fields, &nothing),
            _ => Delta { set: None, gone: Some(everything(field.form, value)) },
        };
        delta.put(below, || field_step(name));
    }
    delta
}

fn compare_items(form: Form<'_>, old: &[Value], new: &[Value]) -> Option<Delta> {
    let (old_steps, new_steps) = (form.item_steps(old)?, form.item_steps(new)?);
    let find = |steps: &[String], items: &'_ [Value], step: &str| -> Vec<usize> {
        (0..items.len()).filter(|place| steps[*place] == step).collect()
    };
    let mut steps: Vec<&String> = old_steps.iter().chain(&new_steps).collect();
    steps.sort_unstable();
    steps.dedup();
    let mut delta = Delta::default();
    for step in steps {
        let before = find(&old_steps, old, step);
        let after = find(&new_steps, new, step);
        let below = match (&*before, &*after) {
            ([before], [after]) => compare_values(form.item(), &old[*before], &new[*after]),
            ([], [after]) => Delta { set: Some(everything(form.item(), &new[*after])), gone: None },
            ([before], []) => Delta { set: None, gone: Some(everything(form.item(), &old[*before])) },
            ([], _) => Delta { set: Some(Fields::new()), gone: None },
            (_, []) => Delta { set: None, gone: Some(Fields::new()) },
            (_, [after]) => Delta { set: Some(everything(form.item(), &new[*after])), gone: None },
            ([before], _) => Delta { set: Some(Fields::new()), gone: inside(form.item(), &old[*before]) },
            (before, after) => {
                let same = before.iter().map(|place| &old[*place]).eq(after.iter().map(|place| &new[*place]));
                Delta { set: (!same).then(Fields::new), gone: None }
            }
        };
        delta.put(below, || step.clone());
    }
    Some(delta)
}

impl Delta {
    fn put(&mut self, below: Delta, step: impl Fn() -> String) {
        if let Some(set) = below.set {
            add_step(self.set.get_or_insert_default(), step(), set);
        }
        if let Some(gone) = below.gone {
            add_step(self.gone.get_or_insert_default(), step(), gone);
        }
    }
}
