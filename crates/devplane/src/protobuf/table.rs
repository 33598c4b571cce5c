//! Which fields the types of Kubernetes have in the binary form. The file is written by `cargo xtask devplane-wire`.
//! Never here: how values are read.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::special::Special;

/// A message of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index(usize);

/// All messages.
pub(super) struct Table {
    /// Sorted by name.
    messages: Vec<(String, Message)>,
}

/// The fields of a message.
pub(super) struct Message {
    fields: BTreeMap<u32, Field>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Field {
    /// In JSON; `None` where its own fields are those of the object it is in.
    pub name: Option<String>,
    pub shape: Shape,
    pub kind: Kind,
    /// Whether JSON leaves it out when it is empty or zero.
    pub omits_empty: bool,
}

/// How often there is a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    One,
    Many,
    /// By text.
    Map,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Bytes,
    Double,
    Int32,
    Int64,
    Text,
    Message(Index),
    Special(Special),
}

/// The table, which is read once.
pub(super) fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        let lines: BTreeMap<String, Vec<String>> =
            serde_json::from_str(include_str!("messages.json")).expect("the generated file is JSON");
        Table::new(&lines)
    });
    &TABLE
}

impl Table {
    fn new(lines: &BTreeMap<String, Vec<String>>) -> Table {
        let names: BTreeMap<&str, Index> =
            lines.keys().enumerate().map(|(index, name)| (name.as_str(), Index(index))).collect();
        let message = |(name, fields): (&String, &Vec<String>)| {
            let package = name.rsplit_once('.').map_or("", |(package, _)| package);
            let fields = fields.iter().map(|text| {
                let field = Field::parse(text, package, &names);
                field.unwrap_or_else(|| {
                    panic!("the generated file has fields that can be read: {name}: {text}")
                })
            });
            (name.clone(), Message { fields: fields.collect() })
        };
        Table { messages: lines.iter().map(message).collect() }
    }

    /// A message by the name of its schema.
    pub(super) fn find(&self, name: &str) -> Option<Index> {
        let found = self.messages.binary_search_by(|(known, _)| known.as_str().cmp(name));
        found.ok().map(Index)
    }

    /// A message.
    pub(super) fn get(&self, Index(index): Index) -> &Message {
        &self.messages[index].1
    }
}

impl Message {
    /// Whether it is a list rather than an object: its one field has no name.
    pub(super) fn is_list(&self) -> bool {
        let is_it = |field: &Field| field.name.is_none() && field.shape == Shape::Many;
        self.fields.len() == 1 && self.fields.values().all(is_it)
    }

    /// The field of a number.
    pub(super) fn field(&self, number: u32) -> Option<&Field> {
        self.fields.get(&number)
    }
}

impl Field {
    /// Reads `1 name []Type`; see `cargo xtask devplane-wire`.
    fn parse(text: &str, package: &str, names: &BTreeMap<&str, Index>) -> Option<(u32, Field)> {
        let mut words = text.split(' ');
        let (number, name, value) = (words.next()?, words.next()?, words.next()?);
        let (shape, value) = match (value.strip_prefix("[]"), value.strip_prefix("{}")) {
            (Some(value), _) => (Shape::Many, value),
            (None, Some(value)) => (Shape::Map, value),
            (None, None) => (Shape::One, value),
        };
        let omits_empty = value.ends_with('?');
        let kind = match value.trim_end_matches('?') {
            "bool" => Kind::Bool,
            "bytes" => Kind::Bytes,
            "double" => Kind::Double,
            "int32" => Kind::Int32,
            "int64" => Kind::Int64,
            "string" => Kind::Text,
            name => {
                let full = if name.contains('.') { name.to_owned() } else { format!("{package}.{name}") };
                match names.get(full.as_str()) {
                    Some(index) => Kind::Message(*index),
                    None => Kind::Special(Special::of_name(&full)?),
                }
            }
        };
        let name = (name != ".").then(|| name.to_owned());
        Some((number.parse().ok()?, Field { name, shape, kind, omits_empty }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::components;

    /// Names of the fields in JSON.
    fn names(message: &Message) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        for field in message.fields.values() {
            match (&field.name, field.kind) {
                (Some(name), _) => {
                    found.insert(name.as_str());
                }
                (None, Kind::Message(index)) => found.extend(names(table().get(index))),
                (None, _) => {}
            }
        }
        found
    }

    #[test]
    fn a_message_has_the_fields_of_its_schema() {
        let mut compared = 0;
        for (name, message) in &table().messages {
            let Some(properties) = components().get(name).and_then(|schema| schema["properties"].as_object())
            else {
                continue;
            };
            let of_envelope = |field: &&str| !matches!(*field, "apiVersion" | "kind");
            let wanted: BTreeSet<&str> = properties.keys().map(String::as_str).filter(of_envelope).collect();
            let found: BTreeSet<&str> = names(message).into_iter().filter(of_envelope).collect();
            assert_eq!(found, wanted, "{name}");
            compared += 1;
        }
        assert!(compared > 200, "{compared}");
    }

    #[test]
    fn every_kind_of_kubernetes_has_a_message() {
        for served in crate::kinds::served() {
            let name = crate::kinds::component(served.group, served.version, served.kind).unwrap();
            assert!(table().find(name).is_some(), "{name}");
        }
    }
}
