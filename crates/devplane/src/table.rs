//! Objects as rows: what `kubectl get` shows. Also objects without all but their metadata. Never here: what is in a list.

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

/// How a table is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub include: Include,
    /// Off for all but the first event of a watch.
    pub with_columns: bool,
    /// What ages are counted to.
    pub now: Timestamp,
}

/// The `Table` (meta.k8s.io/v1) of some objects in the form of their kind. `metadata` is that of the list, or of the one
/// object without all but its revision.
pub(crate) fn table(kind: &Kind, metadata: Value, objects: &[Value], options: Options) -> Value {
    let columns = Columns::of(kind);
    let rows: Vec<Value> = objects.iter().map(|object| row(&columns, object, options)).collect();
    let headings = if options.with_columns { columns.headings() } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "columnDefinitions": headings,
        "rows": rows,
    })
}

/// An object without all but its metadata.
pub(crate) fn partial(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": API_VERSION, "metadata": object["metadata"]})
}

/// A list of objects without all but their metadata.
pub(crate) fn partial_list(metadata: Value, objects: &[Value]) -> Value {
    let items: Vec<Value> = objects.iter().map(partial).collect();
    json!({"kind": "PartialObjectMetadataList", "apiVersion": API_VERSION, "metadata": metadata, "items": items})
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

fn row(columns: &Columns, object: &Value, options: Options) -> Value {
    let shown = match options.include {
        Include::None => Value::Null,
        Include::Metadata => partial(object),
        Include::Object => object.clone(),
    };
    let mut row = json!({"cells": columns.cells(object, options.now), "object": shown});
    if let Some(conditions) = columns.conditions(object) {
        row["conditions"] = conditions;
    }
    row
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
