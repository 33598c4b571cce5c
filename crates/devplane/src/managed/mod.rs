//! Who owns which field: `metadata.managedFields`, and server-side apply. Never here: requests.

mod applied;
mod compare;
mod conflict;
mod dropped;
mod entries;
mod fields;
mod form;
mod last_applied;
mod reach;
mod typed;

#[cfg(test)]
pub(crate) mod tests;

use serde_json::{Map, Value};

use crate::managed::compare::{Changes, compare};
use crate::managed::entries::{Entry, Operation, cap, is_reset, unchecked};
use crate::managed::fields::{intersection, subtract, unite};
use crate::managed::form::Form;
use crate::schema::Schema;
use crate::status::ApiError;

pub(crate) use reach::Reach;

/// Who writes, and how.
#[derive(Clone, Debug)]
pub(crate) struct Manager<'a> {
    /// `fieldManager`, or what Kubernetes makes of the user agent.
    pub name: &'a str,
    /// `metadata.managedFields[].apiVersion`.
    pub api_version: &'a str,
    /// `status` or `scale`; empty for the main resource.
    pub subresource: &'a str,
    /// As in `metadata.managedFields[].time`.
    pub time: &'a str,
    /// What the request may own.
    pub reach: Reach,
}

/// Who owns the fields of an object whose owners were forgotten, once somebody applies something to it.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

type Object = Map<String, Value>;

/// Notes an update: fields that differ between `old` and `new` are the manager's now, and nobody else's.
/// `old` is `None` for a new object. Writes `metadata.managedFields` of `new`.
///
/// What `new` brings as `managedFields` counts instead of those of `old`, if it makes sense and comes by the main
/// resource. One empty entry makes all be forgotten; nobody owns fields of such an object until somebody applies something.
pub(crate) fn note_update(schema: &Schema, old: Option<&Value>, new: &mut Value, manager: &Manager<'_>) {
    let Value::Object(new) = new else { return };
    let old = old.and_then(Value::as_object);
    let known = old.and_then(managed_of);
    let brought = take_managed(new).unwrap_or_default();
    let mut entries = match brought {
        brought if known == Some(&brought) => unchecked(brought),
        _ if old.is_some() && !manager.subresource.is_empty() => {
            known.cloned().map(unchecked).unwrap_or_default()
        }
        brought if old.is_some() && is_reset(&brought) => return,
        brought => match entries::read(brought) {
            Some(entries) if !entries.is_empty() => entries,
            Some(_) | None => known.cloned().map(unchecked).unwrap_or_default(),
        },
    };
    if old.is_some() && entries.is_empty() {
        return;
    }
    let nothing = Object::new();
    let changes = changes(Form::of(schema), old.unwrap_or(&nothing), new, manager);
    own_changes(&mut entries, changes, manager);
    cap(&mut entries);
    put_managed(new, entries);
}

/// Server-side apply: the object that comes of applying `applied` to `live` (`None`: a new one), managed fields included.
///
/// Fields of others that would change are a conflict (409, `details.causes` of reason `FieldManagerConflict`) unless
/// `force`. Fields that the manager applied before and does not name any more go, unless others own them too. What goes
/// may leave null where there was an object or a list.
pub(crate) fn apply(
    schema: &Schema,
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    force: bool,
) -> Result<Value, ApiError> {
    let form = Form::of(schema);
    let refused = || ApiError::bad_request("metadata.managedFields must be nil");
    let applied_fields = applied.as_object().ok_or_else(refused)?;
    if managed_of(applied_fields).is_some_and(|managed| !managed.is_null()) {
        return Err(refused());
    }
    typed::check_shape(form, applied)?;

    let mut object = live.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut entries = take_managed(&mut object).map(unchecked).unwrap_or_default();
    let before = object.clone();
    if live.is_some() && entries.is_empty() {
        entries.extend(before_first_apply(form, &before, manager));
    }
    let place = entries.iter().position(|entry| entry.is_of(Operation::Apply, manager));
    let last = place.map(|place| entries.swap_remove(place));

    let mut owned = applied::fields_of(form, applied_fields);
    applied::merge(form, &mut object, applied_fields);
    keep_creation(&mut object, &before);
    if let Some(last) = last.as_ref().and_then(Entry::fields) {
        let now = entries.iter().filter_map(Entry::fields).chain([&owned]).collect();
        dropped::drop_given_up(form, &mut object, last, now);
    }
    manager.reach.limit(&mut owned);

    let changes = changes(form, &before, &object, manager);
    if !force {
        refuse_conflicts(form, &before, &entries, &changes, manager)?;
    }
    entries.iter_mut().for_each(|entry| lose(entry, &changes));
    let mut entry = Entry::new(Operation::Apply, manager, owned);
    // Who changes nothing leaves no time.
    entry.set_time(if before == object { last.as_ref().map_or("", Entry::time) } else { manager.time });
    entries.push(entry);
    last_applied::renew(&mut object, applied, manager.name);
    put_managed(&mut object, entries);
    Ok(Value::Object(object))
}

/// Managed fields for comparing: times alone do not count.
pub(crate) fn without_times(managed: Option<&Value>) -> Vec<Value> {
    let entries = managed.and_then(Value::as_array).into_iter().flatten().cloned();
    let strip = |mut entry: Value| {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    entries.map(strip).collect()
}

fn managed_of(object: &Object) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

fn take_managed(object: &mut Object) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn put_managed(object: &mut Object, entries: Vec<Entry>) {
    if let Some(entries) = entries::write(entries) {
        let metadata = object.entry("metadata").or_insert_with(|| Object::new().into());
        if let Value::Object(metadata) = metadata {
            metadata.insert("managedFields".into(), entries);
        }
    }
}

/// Tools that write objects out leave `creationTimestamp: null` in them.
fn keep_creation(object: &mut Object, before: &Object) {
    const CREATION: &str = "creationTimestamp";
    let kept = before.get("metadata").and_then(|metadata| metadata.get(CREATION));
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && metadata.get(CREATION).is_some_and(Value::is_null)
    {
        match kept {
            Some(kept) => metadata.insert(CREATION.into(), kept.clone()),
            None => metadata.remove(CREATION),
        };
    }
}

/// What differs between two states, as far as the request may own it.
fn changes(form: Form<'_>, old: &Object, new: &Object, manager: &Manager<'_>) -> Changes {
    let mut changes = compare(form, old, new);
    manager.reach.limit(&mut changes.set);
    manager.reach.limit(&mut changes.gone);
    changes
}

/// Gives the manager of an update what it changed, and takes it from all others.
fn own_changes(entries: &mut Vec<Entry>, changes: Changes, manager: &Manager<'_>) {
    entries.iter_mut().for_each(|entry| lose(entry, &changes));
    if changes.set.is_empty() {
        return;
    }
    let place = entries.iter().position(|entry| entry.is_of(Operation::Update, manager));
    let mut entry = match place.map(|place| entries.swap_remove(place)) {
        None => Entry::new(Operation::Update, manager, changes.set),
        Some(mut entry) => {
            if let Some(fields) = entry.fields_mut() {
                unite(fields, changes.set);
            }
            entry
        }
    };
    entry.set_time(manager.time);
    entries.push(entry);
}

fn lose(entry: &mut Entry, changes: &Changes) {
    if let Some(fields) = entry.fields_mut() {
        subtract(fields, &changes.set);
        subtract(fields, &changes.gone);
    }
}

fn before_first_apply(form: Form<'_>, live: &Object, manager: &Manager<'_>) -> Option<Entry> {
    let fields = changes(form, &Object::new(), live, manager).set;
    let manager = Manager { name: BEFORE_FIRST_APPLY, ..manager.clone() };
    let mut entry = Entry::new(Operation::Update, &manager, fields);
    entry.set_time(manager.time);
    Some(entry).filter(|entry| entry.fields().is_some_and(|fields| !fields.is_empty()))
}

fn refuse_conflicts(
    form: Form<'_>,
    live: &Object,
    entries: &[Entry],
    changes: &Changes,
    manager: &Manager<'_>,
) -> Result<(), ApiError> {
    let mut conflicts: conflict::Conflicts<'_> = entries
        .iter()
        .filter_map(|entry| Some((entry, intersection(entry.fields()?, &changes.set))))
        .filter(|(_, fields)| !fields.is_empty())
        .collect();
    if conflicts.is_empty() {
        return Ok(());
    }
    let forgiven = last_applied::forgiven(form, live, manager.name);
    conflicts.iter_mut().for_each(|(_, fields)| subtract(fields, &forgiven));
    conflicts.retain(|(_, fields)| !fields.is_empty());
    if conflicts.is_empty() { Ok(()) } else { Err(conflict::refusal(conflicts)) }
}
