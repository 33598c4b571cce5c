//! What goes from an object because who applied it does not name it any more. Never here: conflicts.

use serde_json::{Map, Value};

use crate::managed::fields::{Fields, below, field_step, is_member, steps};
use crate::managed::form::Form;

/// Who owned and who owns what is below a path.
struct Owners<'f> {
    /// What the manager applied last time.
    last: &'f Fields,
    /// What is owned now, by the manager and all others.
    now: Vec<&'f Fields>,
    /// The manager named this last time, or something that this is a part of.
    was_named: bool,
    /// So it did, and nobody owns this now, or something that this is a part of.
    is_orphaned: bool,
}

/// What becomes of a part of an object.
enum Fate<'f> {
    Goes,
    Stays,
    /// There is more to decide in it.
    Open(Owners<'f>),
}

/// Takes out of `object` what the manager applied last time and nobody owns now. What is emptied so becomes null, as it
/// does in Kubernetes: kinds that know all their fields drop it, others have to allow it.
pub(super) fn drop_given_up(
    form: Form<'_>,
    object: &mut Map<String, Value>,
    last: &Fields,
    now: Vec<&Fields>,
) {
    drop_fields(form, object, &Owners { last, now, was_named: false, is_orphaned: false });
}

impl<'f> Owners<'f> {
    fn fate(&self, step: &str, is_field: bool) -> Fate<'f> {
        // Who owns something in a field has that field too; items and entries of maps are owned on their own.
        let has = |fields: &&Fields| is_field || is_member(fields);
        let last = below(self.last, step);
        let now: Vec<&Fields> = self.now.iter().filter_map(|fields| below(fields, step)).collect();
        let is_named = last.as_ref().is_some_and(has);
        let was_named = self.was_named || is_named;
        let is_orphaned = self.is_orphaned || (was_named && !now.iter().any(has));
        match last {
            Some(_) if is_named && is_orphaned => Fate::Goes,
            Some(last) if steps(last).next().is_some() => {
                Fate::Open(Owners { last, now, was_named, is_orphaned })
            }
            Some(_) | None => Fate::Stays,
        }
    }
}

fn drop_fields(form: Form<'_>, object: &mut Map<String, Value>, owners: &Owners<'_>) {
    object.retain(|name, value| {
        let field = form.field(name);
        match owners.fate(&field_step(name), field.is_named) {
            Fate::Goes => false,
            Fate::Stays => true,
            Fate::Open(owners) => {
                drop_inside(field.form, value, &owners);
                true
            }
        }
    });
}

fn drop_inside(form: Form<'_>, value: &mut Value, owners: &Owners<'_>) {
    let is_emptied = match value {
        Value::Object(fields) if form.has_fields() => {
            drop_fields(form, fields, owners);
            fields.is_empty()
        }
        Value::Array(items) if form.has_items() => {
            items.retain_mut(|item| {
                let Some(step) = form.item_step(item) else { return true };
                match owners.fate(&step, false) {
                    Fate::Goes => false,
                    Fate::Stays => true,
                    Fate::Open(owners) => {
                        drop_inside(form.item(), item, &owners);
                        true
                    }
                }
            });
            items.is_empty()
        }
        Value::Array(_)
        | Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_) => false,
    };
    if is_emptied {
        *value = Value::Null;
    }
}
