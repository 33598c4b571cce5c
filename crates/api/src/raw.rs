//! JSON kept as text: provider specs, provider statuses and machine templates.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as the server sent it. Cheap to clone, about a twentieth of the memory of a parsed tree, and loses no
/// unknown field. Equality is equality of the text.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// The text of a value.
    pub fn new(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self(serde_json::to_string(value)?.into()))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses the text into a type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Parses the text into a tree. Infallible for a value that came from the wire.
    pub fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Whether the text is exactly `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }
}

impl From<serde_json::Value> for RawJson {
    fn from(value: serde_json::Value) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Debug for RawJson {
    /// Provider specs may name secrets and user data: only the size is printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.0.len())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw =
            RawValue::from_string(self.0.to_string()).map_err(<S::Error as serde::ser::Error>::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_unknown_fields_and_order() {
        let text = r#"{"z":1,"a":{"x":[1,2]}}"#;
        let raw: RawJson = serde_json::from_str(text).expect("json");
        assert_eq!(serde_json::to_string(&raw).expect("json"), text);
        assert_eq!(format!("{raw:?}"), "RawJson(23 bytes)");
    }
}
