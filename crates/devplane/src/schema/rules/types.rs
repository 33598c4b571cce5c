//! Types of expressions, and which types of values functions take. Never here: values.

use std::fmt;
use std::sync::Arc;

use super::super::{ListType, Role, Schema, Type, meta};
use super::escape;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Ty<'s> {
    /// Something was wrong; no more complaints follow from it.
    Error,
    /// Known only when the rule is run.
    Dyn,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    /// Types that are known by name: `timestamp`, `net.IP`.
    Named(&'static str),
    /// In signatures: any type, the same one for the same letter.
    Param(char),
    List(Box<Ty<'s>>, ListType),
    Map(Box<Ty<'s>>, Box<Ty<'s>>),
    Object(&'s Schema),
    /// An object whose fields no schema says.
    Record(Arc<Record>),
    Optional(Box<Ty<'s>>),
    /// A type as a value.
    Type,
}

/// Fields of an object, by the names that expressions have for them.
#[derive(Debug)]
pub(super) struct Record {
    pub name: &'static str,
    /// Of two with the same name the last counts.
    pub fields: Vec<(String, Ty<'static>)>,
}

/// What the letters of a signature stand for in one call.
#[derive(Default)]
pub(super) struct Bindings<'s>(Vec<(char, Ty<'s>)>);

/// Names that signatures use for types.
const NAMED: [&str; 7] =
    ["timestamp", "duration", "net.IP", "net.CIDR", "kubernetes.URL", "kubernetes.NamedFormat", "type"];

impl<'s> Ty<'s> {
    /// The type of values of a schema. What a schema leaves open has none: rules cannot name it.
    pub(super) fn of_schema(schema: &'s Schema) -> Option<Ty<'s>> {
        if schema.int_or_string {
            return Some(Ty::Dyn);
        }
        Some(match schema.kind? {
            Type::Object => match &schema.additional {
                Some(of_values) => Ty::Map(Box::new(Ty::String), Box::new(Ty::of_schema(of_values)?)),
                None => Ty::Object(schema),
            },
            Type::Array => Ty::List(Box::new(Ty::of_schema(schema.items.as_ref()?)?), schema.list_type),
            Type::String => match schema.checks.format.as_deref() {
                Some("date" | "date-time" | "datetime") => Ty::Named("timestamp"),
                Some("duration") => Ty::Named("duration"),
                Some("byte") => Ty::Bytes,
                _ => Ty::String,
            },
            Type::Integer => Ty::Int,
            Type::Number => Ty::Double,
            Type::Boolean => Ty::Bool,
        })
    }

    /// The type of a field of an object, by the name that expressions have for it.
    pub(super) fn of_field(schema: &'s Schema, field: &str) -> Option<Ty<'s>> {
        let (_, of_field) = schema.properties.iter().find(|(name, _)| {
            let is_open = schema.role != Role::Metadata || meta::LIMITED.contains(&&***name);
            is_open && escape(name).is_some_and(|escaped| escaped == field)
        })?;
        Ty::of_schema(of_field)
    }

    /// A type as signatures spell it.
    pub(super) fn of_text(text: &str) -> Ty<'static> {
        let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(items) = inner("list") {
            return Ty::List(Box::new(Ty::of_text(items)), ListType::Atomic);
        }
        if let Some(value) = inner("optional") {
            return Ty::Optional(Box::new(Ty::of_text(value)));
        }
        if let Some((key, value)) = inner("map").and_then(|pair| pair.split_once(',')) {
            return Ty::Map(Box::new(Ty::of_text(key)), Box::new(Ty::of_text(value)));
        }
        match text {
            "dyn" => Ty::Dyn,
            "bool" => Ty::Bool,
            "int" => Ty::Int,
            "uint" => Ty::Uint,
            "double" => Ty::Double,
            "string" => Ty::String,
            "bytes" => Ty::Bytes,
            "type" => Ty::Type,
            _ => match NAMED.iter().find(|name| **name == text) {
                Some(name) => Ty::Named(name),
                None => Ty::Param(text.chars().next().unwrap_or('A')),
            },
        }
    }

    /// Elements that a comprehension goes through.
    pub(super) fn elements(&self) -> Option<Ty<'s>> {
        match self {
            Ty::List(items, _) => Some((**items).clone()),
            Ty::Map(keys, _) => Some((**keys).clone()),
            Ty::Dyn | Ty::Error => Some(Ty::Dyn),
            Ty::Bool | Ty::Int | Ty::Uint | Ty::Double | Ty::String | Ty::Bytes | Ty::Null => None,
            Ty::Named(_) | Ty::Param(_) | Ty::Object(_) | Ty::Record(_) | Ty::Optional(_) | Ty::Type => None,
        }
    }
}

impl<'s> Bindings<'s> {
    /// Whether a value of a type may stand where a signature wants another, noting what letters stand for.
    pub(super) fn fits(&mut self, wanted: &Ty<'s>, given: &Ty<'s>) -> bool {
        match (wanted, given) {
            (Ty::Param(letter), given) => self.binds(*letter, given),
            (wanted, Ty::Param(letter)) => self.binds(*letter, wanted),
            (Ty::Dyn | Ty::Error, _) | (_, Ty::Dyn | Ty::Error) => true,
            (Ty::List(wanted, _), Ty::List(given, _)) | (Ty::Optional(wanted), Ty::Optional(given)) => {
                self.fits(wanted, given)
            }
            (Ty::Map(key, value), Ty::Map(given_key, given_value)) => {
                self.fits(key, given_key) && self.fits(value, given_value)
            }
            (Ty::Object(wanted), Ty::Object(given)) => std::ptr::eq(*wanted, *given),
            (Ty::Record(wanted), Ty::Record(given)) => wanted.name == given.name,
            (Ty::Null, Ty::Object(_) | Ty::Record(_) | Ty::Named(_)) => true,
            (Ty::Object(_) | Ty::Record(_) | Ty::Named(_), Ty::Null) => true,
            (Ty::Named(wanted), Ty::Named(given)) => wanted == given,
            (wanted, given) => std::mem::discriminant(wanted) == std::mem::discriminant(given),
        }
    }

    fn binds(&mut self, letter: char, given: &Ty<'s>) -> bool {
        let Some(at) = self.0.iter().position(|(known, _)| *known == letter) else {
            self.0.push((letter, given.clone()));
            return true;
        };
        let known = self.0[at].1.clone();
        if !self.fits(&known, given) {
            return false;
        }
        // What says more wins: an empty list is a list of anything.
        if says_less(&known) || matches!(known, Ty::Null) {
            self.0[at].1 = given.clone();
        }
        true
    }

    /// A type of a signature with letters replaced.
    pub(super) fn resolve(&self, ty: &Ty<'s>) -> Ty<'s> {
        match ty {
            Ty::Param(letter) => {
                let known = self.0.iter().find(|(known, _)| known == letter);
                known.map_or(Ty::Dyn, |(_, ty)| ty.clone())
            }
            Ty::List(items, list_type) => Ty::List(Box::new(self.resolve(items)), *list_type),
            Ty::Map(key, value) => Ty::Map(Box::new(self.resolve(key)), Box::new(self.resolve(value))),
            Ty::Optional(value) => Ty::Optional(Box::new(self.resolve(value))),
            Ty::Error | Ty::Dyn | Ty::Bool | Ty::Int | Ty::Uint | Ty::Double | Ty::String | Ty::Bytes => {
                ty.clone()
            }
            Ty::Null | Ty::Named(_) | Ty::Object(_) | Ty::Record(_) | Ty::Type => ty.clone(),
        }
    }
}

fn says_less(ty: &Ty<'_>) -> bool {
    match ty {
        Ty::Dyn | Ty::Error => true,
        Ty::List(items, _) => says_less(items),
        Ty::Optional(value) => says_less(value),
        Ty::Map(key, value) => says_less(key) || says_less(value),
        Ty::Bool | Ty::Int | Ty::Uint | Ty::Double | Ty::String | Ty::Bytes | Ty::Null => false,
        Ty::Named(_) | Ty::Param(_) | Ty::Object(_) | Ty::Record(_) | Ty::Type => false,
    }
}

impl fmt::Display for Ty<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Error => f.write_str("!error!"),
            Ty::Dyn => f.write_str("dyn"),
            Ty::Bool => f.write_str("bool"),
            Ty::Int => f.write_str("int"),
            Ty::Uint => f.write_str("uint"),
            Ty::Double => f.write_str("double"),
            Ty::String => f.write_str("string"),
            Ty::Bytes => f.write_str("bytes"),
            Ty::Null => f.write_str("null"),
            Ty::Named(name) => f.write_str(name),
            Ty::Param(letter) => write!(f, "{letter}"),
            Ty::List(items, _) => write!(f, "list({items})"),
            Ty::Map(key, value) => write!(f, "map({key}, {value})"),
            Ty::Object(_) => f.write_str("selfType"),
            Ty::Record(record) => f.write_str(record.name),
            Ty::Optional(value) => write!(f, "optional_type({value})"),
            Ty::Type => f.write_str("type"),
        }
    }
}
