//! Objects as rows: what `kubectl get` shows. Never here: what is in a list.

mod age;
mod built_in;
mod cells;
mod custom;
mod path;
mod pods;
mod selector;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Kind, event};

const API_VERSION: &str = "meta.k8s.io/v1";

/// What a row carries of its object: `includeObject` of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

/// The `Table` (meta.k8s.io/v1) of some objects in the form of their kind. `metadata` is that of the list, or of the one
/// object without all but its revision. Ages are counted to `now`.
pub(crate) fn table(
    kind: &Kind,
    metadata: Value,
    objects: &[Value],
    include: Include,
    now: Timestamp,
) -> Value {
    let columns = Columns::of(kind);
    let rows: Vec<Value> = objects.iter().map(|object| columns.row(object, include, now)).collect();
    json!({
        "kind": "Table",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "columnDefinitions": columns.headings(),
        "rows": rows,
    })
}

/// The columns of a kind.
enum Columns {
    BuiltIn(&'static built_in::Layout),
    /// Of an event in the form of `events.k8s.io`.
    Event(&'static built_in::Layout),
    Custom(Vec<custom::Cell>),
}

impl Columns {
    fn of(kind: &Kind) -> Self {
        if kind.is_custom() {
            return Columns::Custom(custom::cells(&kind.columns));
        }
        let layout = built_in::layout(&kind.bucket);
        if kind.group == event::GROUP { Columns::Event(layout) } else { Columns::BuiltIn(layout) }
    }

    fn headings(&self) -> Value {
        match self {
            Columns::BuiltIn(layout) | Columns::Event(layout) => layout.headings(),
            Columns::Custom(cells) => custom::headings(cells),
        }
    }

    fn row(&self, object: &Value, include: Include, now: Timestamp) -> Value {
        let shown = match include {
            Include::None => Value::Null,
            Include::Metadata => partial(object),
            Include::Object => object.clone(),
        };
        let mut row = json!({"cells": self.cells(object, now), "object": shown});
        if let Some(conditions) = self.conditions(object) {
            row["conditions"] = conditions;
        }
        row
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match self {
            Columns::BuiltIn(layout) => (layout.cells)(object, now),
            Columns::Event(layout) => {
                let mut stored = object.clone();
                event::to_stored(&mut stored);
                (layout.cells)(&stored, now)
            }
            Columns::Custom(cells) => custom::values(cells, object, now),
        }
    }

    /// What clients may want to know of a row without reading its cells.
    fn conditions(&self, object: &Value) -> Option<Value> {
        match self {
            Columns::BuiltIn(layout) | Columns::Event(layout) => (layout.conditions)(object),
            Columns::Custom(_) => None,
        }
    }
}

/// An object without all but its metadata.
fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": API_VERSION, "metadata": object["metadata"]})
}

/// A column as a table names it.
fn heading(name: &str, kind: &str, format: &str, priority: i64, description: &str) -> Value {
    json!({"name": name, "type": kind, "format": format, "priority": priority, "description": description})
}

/// What the name of an object is called, in every table.
fn name_heading(priority: i64) -> Value {
    heading("Name", "string", "name", priority, "Name of the object.")
}

/// The text at a field, empty where there is none.
fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).as_str().unwrap_or_default()
}

/// The number at a field, 0 where there is none.
fn number(value: &Value, path: &[&str]) -> i64 {
    at(value, path).as_i64().unwrap_or_default()
}

/// The items at a field.
fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).as_array().map_or(&[], Vec::as_slice)
}

fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(value, |value, name| &value[*name])
}

/// A condition of an object's status.
fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, &["status", "conditions"]).iter().find(|condition| condition["type"] == kind)
}

#[cfg(test)]
mod tests;
