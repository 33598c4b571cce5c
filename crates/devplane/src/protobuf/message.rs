//! Reads messages by the table. Never here: types that are not in JSON what their fields say.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value};

use super::special;
use super::table::{Field, Index, Kind, Shape, table};
use super::wire::{Fields, Raw};

/// How deep messages may be in each other. The schema in a CRD is the deepest; JSON may be 128 deep here.
const DEPTH: usize = 100;

type Object = Map<String, Value>;

/// Reads an object.
pub(super) fn object(message: Index, bytes: &[u8]) -> Result<Object, String> {
    Reader { depth: 0 }.object(message, bytes)
}

/// Reads values.
#[derive(Clone, Copy)]
pub(super) struct Reader {
    depth: usize,
}

impl Reader {
    /// The object that a message is.
    fn object(self, message: Index, bytes: &[u8]) -> Result<Object, String> {
        match self.message(message, bytes)? {
            Value::Object(fields) => Ok(fields),
            _ => Err("the message is no object".into()),
        }
    }

    /// The value that a message is: an object, or the list that is its only field.
    pub(super) fn message(self, message: Index, bytes: &[u8]) -> Result<Value, String> {
        if self.depth == DEPTH {
            return Err("exceeded max depth".into());
        }
        let inner = Reader { depth: self.depth + 1 };
        let message = table().get(message);
        let mut list = message.is_list().then(Vec::new);
        let mut fields = Object::new();
        for field in Fields(bytes) {
            let (number, raw) = field?;
            // A client may know more fields than we do.
            let Some(field) = message.field(number) else { continue };
            match &mut list {
                Some(list) => inner.items(field, "items", raw, list)?,
                None => inner.field(field, raw, &mut fields)?,
            }
        }
        Ok(list.map_or(Value::Object(fields), Value::Array))
    }

    fn field(self, field: &Field, raw: Raw<'_>, into: &mut Object) -> Result<(), String> {
        let Some(name) = &field.name else {
            let Kind::Message(message) = field.kind else { return Ok(()) };
            into.extend(self.object(message, bytes(raw, "inline")?)?);
            return Ok(());
        };
        match field.shape {
            Shape::One => {
                let value = self.value(field.kind, name, raw)?;
                let is_left_out =
                    value.is_none() || (field.omits_empty && value.as_ref().is_some_and(is_empty));
                if let Some(value) = value.filter(|_| !is_left_out) {
                    into.insert(name.clone(), value);
                }
            }
            Shape::Many => {
                let list = into.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
                self.items(field, name, raw, list.as_array_mut().expect("it was begun as a list"))?;
            }
            Shape::Map => {
                let (key, value) = self.entry(field.kind, name, bytes(raw, name)?)?;
                let map = into.entry(name.as_str()).or_insert_with(|| Value::Object(Object::new()));
                map.as_object_mut().expect("it was begun as a map").insert(key, value);
            }
        }
        Ok(())
    }

    /// Adds to a list; numbers may come many in one.
    fn items(self, field: &Field, name: &str, raw: Raw<'_>, list: &mut Vec<Value>) -> Result<(), String> {
        let is_number = matches!(field.kind, Kind::Bool | Kind::Int32 | Kind::Int64);
        match raw {
            Raw::Bytes(bytes) if is_number => {
                let mut rest = Fields(bytes);
                while !rest.0.is_empty() {
                    let number = Raw::Varint(rest.varint()?);
                    list.extend(self.value(field.kind, name, number)?);
                }
            }
            _ => list.push(self.value(field.kind, name, raw)?.unwrap_or_default()),
        }
        Ok(())
    }

    /// A key of a map and its value; either may be left out when it is empty.
    fn entry(self, kind: Kind, name: &str, bytes: &[u8]) -> Result<(String, Value), String> {
        let mut key = String::new();
        let mut value = Raw::Bytes(&[]);
        for field in Fields(bytes) {
            match field? {
                (1, Raw::Bytes(text)) => key = String::from_utf8_lossy(text).into_owned(),
                (1, other) => return Err(other.refuse(name)),
                (2, raw) => value = raw,
                _ => {}
            }
        }
        Ok((key, self.value(kind, name, value)?.unwrap_or_default()))
    }

    /// A value; `None` for one that is not set, as a time may be.
    pub(super) fn value(self, kind: Kind, name: &str, raw: Raw<'_>) -> Result<Option<Value>, String> {
        let value = match (kind, raw) {
            (Kind::Bool, Raw::Varint(number)) => Value::Bool(number != 0),
            // Numbers are cut to their size, as clients' own readers do.
            #[expect(clippy::cast_possible_truncation, reason = "negative numbers are written with 64 bits")]
            (Kind::Int32, Raw::Varint(number)) => (number.cast_signed() as i32).into(),
            (Kind::Int64, Raw::Varint(number)) => number.cast_signed().into(),
            (Kind::Double, Raw::Fixed64(bits)) => double(f64::from_bits(bits)),
            (Kind::Text, Raw::Bytes(bytes)) => String::from_utf8_lossy(bytes).into(),
            (Kind::Bytes, Raw::Bytes(bytes)) => STANDARD.encode(bytes).into(),
            (Kind::Message(message), Raw::Bytes(bytes)) => self.message(message, bytes)?,
            (Kind::Special(special), Raw::Bytes(bytes)) => return special::read(self, special, bytes),
            (
                Kind::Bool
                | Kind::Int32
                | Kind::Int64
                | Kind::Double
                | Kind::Text
                | Kind::Bytes
                | Kind::Message(_)
                | Kind::Special(_),
                other,
            ) => return Err(other.refuse(name)),
        };
        Ok(Some(value))
    }
}

fn bytes<'a>(raw: Raw<'a>, name: &str) -> Result<&'a [u8], String> {
    match raw {
        Raw::Bytes(bytes) => Ok(bytes),
        Raw::Varint(_) | Raw::Fixed64(_) | Raw::Fixed32(_) => Err(raw.refuse(name)),
    }
}

/// A number as JSON has it: without a fraction where it has none.
fn double(number: f64) -> Value {
    // Up to 2^53 every whole number is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the range")]
    let whole = (number.fract() == 0.0 && number.abs() <= EXACT).then(|| Number::from(number as i64));
    whole.or_else(|| Number::from_f64(number)).map_or(Value::Null, Value::Number)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is) => !is,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}
