//! The entries of `metadata.managedFields`. Never here: what changed.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use crate::managed::Manager;
use crate::managed::fields::{self, Fields};

/// The original keeps no more entries of operation `Update`.
const MOST_UPDATERS: usize = 10;

/// Whose entry the oldest updates are merged into.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// An entry, as it is in the object.
#[derive(Debug)]
pub(super) struct Entry(Map<String, Value>);

impl Operation {
    fn text(self) -> &'static str {
        match self {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        }
    }
}

impl Entry {
    /// An entry without a time.
    pub(super) fn new(operation: Operation, manager: &Manager<'_>, fields: Fields) -> Self {
        let entry = json!({
            "manager": manager.name, "operation": operation.text(), "apiVersion": manager.api_version,
            "fieldsType": "FieldsV1",
        });
        let Value::Object(mut entry) = entry else { unreachable!("an object was written") };
        entry.insert("fieldsV1".into(), Value::Object(fields));
        if !manager.subresource.is_empty() {
            entry.insert("subresource".into(), manager.subresource.into());
        }
        Entry(entry)
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn manager(&self) -> &str {
        self.text("manager")
    }

    pub(super) fn api_version(&self) -> &str {
        self.text("apiVersion")
    }

    pub(super) fn subresource(&self) -> &str {
        self.text("subresource")
    }

    /// When; empty where none is noted.
    pub(super) fn time(&self) -> &str {
        self.text("time")
    }

    pub(super) fn set_time(&mut self, time: &str) {
        if time.is_empty() {
            self.0.remove("time");
        } else {
            self.0.insert("time".into(), time.into());
        }
    }

    pub(super) fn is(&self, operation: Operation) -> bool {
        self.text("operation") == operation.text()
    }

    /// Whether it is the entry of this manager. Who applies has one for all versions.
    pub(super) fn is_of(&self, operation: Operation, manager: &Manager<'_>) -> bool {
        self.is(operation)
            && self.manager() == manager.name
            && self.subresource() == manager.subresource
            && (operation == Operation::Apply || self.api_version() == manager.api_version)
    }

    /// The fields; `None`: there are none.
    pub(super) fn fields(&self) -> Option<&Fields> {
        self.0.get("fieldsV1").and_then(Value::as_object)
    }

    pub(super) fn fields_mut(&mut self) -> Option<&mut Fields> {
        self.0.get_mut("fieldsV1").and_then(Value::as_object_mut)
    }

    /// The fields, without the entry.
    pub(super) fn into_fields(mut self) -> Fields {
        self.fields_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What tells managers apart. The order of these texts is one that shows: in messages, and where times are equal.
    pub(super) fn identity(&self) -> String {
        let part = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(",\"{name}\":{}", Value::from(value)),
        };
        let api_version = if self.is(Operation::Apply) { "" } else { self.api_version() };
        let manager = Value::from(self.manager());
        let operation = part("operation", self.text("operation"));
        let rest = part("apiVersion", api_version) + &part("subresource", self.subresource());
        format!("{{\"manager\":{manager}{operation}{rest}}}")
    }

    fn is_valid(&self) -> bool {
        let is_known = self.is(Operation::Apply) || self.is(Operation::Update);
        let has_fields = match self.0.get("fieldsV1") {
            None => true,
            Some(Value::Object(fields)) => fields::is_valid(fields),
            Some(_) => false,
        };
        is_known && has_fields && self.text("fieldsType") == "FieldsV1" && !self.api_version().is_empty()
    }

    /// The order in the object.
    fn order(&self, other: &Entry) -> Ordering {
        fn key(entry: &Entry) -> (bool, [&str; 4]) {
            let texts = [entry.time(), entry.manager(), entry.api_version(), entry.subresource()];
            (entry.is(Operation::Update), texts)
        }
        key(self).cmp(&key(other))
    }

    /// Makes it the entry that old updates are merged into, and merges one.
    fn become_ancient(&mut self, newer: Entry) {
        self.set_time(newer.time());
        self.0.insert("manager".into(), ANCIENT.into());
        self.0.remove("subresource");
        if let Some(fields) = self.fields_mut() {
            fields::unite(fields, newer.into_fields());
        }
    }
}

/// The entries of an object, all or none: if one of them makes no sense, none counts.
pub(super) fn read(managed: Value) -> Option<Vec<Entry>> {
    let entries = unchecked(managed);
    entries.iter().all(Entry::is_valid).then_some(entries)
}

/// Entries that were written by [`write`].
pub(super) fn unchecked(managed: Value) -> Vec<Entry> {
    let Value::Array(items) = managed else { return Vec::new() };
    let entry = |item| if let Value::Object(entry) = item { Entry(entry) } else { Entry(Map::new()) };
    items.into_iter().map(entry).collect()
}

/// Whether it is the one empty entry with which clients ask for all entries to be forgotten.
pub(super) fn is_reset(managed: &Value) -> bool {
    let is_empty = |entry: &Value| entry.as_object().is_some_and(Map::is_empty);
    managed.as_array().is_some_and(|items| matches!(&**items, [only] if is_empty(only)))
}

/// The entries as they are in an object: without those that own nothing, in order. `None`: there are none.
pub(super) fn write(mut entries: Vec<Entry>) -> Option<Value> {
    drop_empty(&mut entries);
    entries.sort_by(Entry::order);
    let entries: Vec<Value> = entries.into_iter().map(|entry| Value::Object(entry.0)).collect();
    (!entries.is_empty()).then_some(Value::Array(entries))
}

fn drop_empty(entries: &mut Vec<Entry>) {
    entries.retain(|entry| entry.fields().is_some_and(|fields| !fields.is_empty()));
}

/// Merges the oldest updates of each version until not too many are left.
pub(super) fn cap(entries: &mut Vec<Entry>) {
    drop_empty(entries);
    let updaters = entries.iter().filter(|entry| entry.is(Operation::Update)).count();
    let mut surplus = updaters.saturating_sub(MOST_UPDATERS);
    if surplus == 0 {
        return;
    }
    let (mut updates, mut kept): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(entries).into_iter().partition(|entry| entry.is(Operation::Update));
    updates.sort_by_cached_key(|entry| (entry.time().to_owned(), entry.identity()));
    // One of each version: the bucket, or what becomes it once there is a second one to merge into it.
    let mut buckets: Vec<Entry> = Vec::new();
    for entry in updates {
        if surplus == 0 {
            kept.push(entry);
            continue;
        }
        match buckets.iter_mut().find(|bucket| bucket.api_version() == entry.api_version()) {
            None => buckets.push(entry),
            Some(bucket) => {
                bucket.become_ancient(entry);
                surplus -= 1;
            }
        }
    }
    kept.extend(buckets);
    *entries = kept;
}
