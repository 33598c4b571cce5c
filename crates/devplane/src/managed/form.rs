//! What a schema says about ownership: what has fields and items of its own, and what has one owner as a whole. Never
//! here: sets of fields, managers.

use serde_json::{Map, Value};

use crate::schema::{ListType, Schema};

/// What is known of a value. `None`: nothing, so that objects have fields, and lists are of one piece.
#[derive(Clone, Copy)]
pub(super) struct Form<'s>(Option<&'s Schema>);

/// A field of an object.
pub(super) struct Field<'s> {
    pub form: Form<'s>,
    /// The schema names it; else it is the entry of a map.
    pub is_named: bool,
    /// An object that is always there, empty or not.
    pub is_implied: bool,
    /// What the field is in an object of Kubernetes of which nobody has said anything; `None`: it is not there.
    pub unsaid: Option<Value>,
}

impl<'s> Form<'s> {
    /// What a schema says.
    pub(super) fn of(schema: &'s Schema) -> Self {
        Form(Some(schema))
    }

    /// The schema, if there is one.
    pub(super) fn schema(self) -> Option<&'s Schema> {
        self.0
    }

    /// Whether fields of an object have owners of their own.
    pub(super) fn has_fields(self) -> bool {
        self.0.is_none_or(|schema| !schema.is_atomic_map)
    }

    /// Whether items of a list have owners of their own.
    pub(super) fn has_items(self) -> bool {
        self.0.is_some_and(|schema| schema.items.is_some() && schema.list_type != ListType::Atomic)
    }

    /// The field of this name.
    pub(super) fn field(self, name: &str) -> Field<'s> {
        let named = self.0.and_then(|schema| schema.properties.get(name));
        let schema = named.or(self.0.and_then(|schema| schema.additional.as_ref()));
        let is_empty = |default: &Value| default.as_object().is_some_and(Map::is_empty);
        Field {
            form: Form(schema.map(|schema| &**schema)),
            is_named: named.is_some(),
            is_implied: named.and_then(|schema| schema.default.as_ref()).is_some_and(is_empty),
            unsaid: self.0.and_then(|parent| unsaid(parent, name)),
        }
    }

    /// The items of a list.
    pub(super) fn item(self) -> Form<'s> {
        Form(self.0.and_then(|schema| schema.items.as_deref()))
    }

    /// The step to an item. `None`: nothing tells it from others.
    pub(super) fn item_step(self, item: &Value) -> Option<String> {
        let schema = self.0?;
        match schema.list_type {
            ListType::Atomic => None,
            ListType::Set => {
                (!item.is_object() && !item.is_array()).then(|| format!("v:{}", canonical(item)))
            }
            ListType::Map => {
                let items = schema.items.as_deref()?;
                let fields = item.as_object()?;
                let key = |name: &'s String| {
                    let default = || items.properties.get(name)?.default.as_ref();
                    fields.get(name).or_else(default).map(|value| (&**name, canonical(value)))
                };
                let mut keys: Vec<(&str, String)> = schema.list_map_keys.iter().filter_map(key).collect();
                keys.sort_unstable();
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{}:{value}", Value::from(*name))).collect();
                Some(format!("k:{{{}}}", keys.join(","))).filter(|_| !keys.is_empty())
            }
        }
    }

    /// The steps to all items. `None`: one of them cannot be told from others.
    pub(super) fn item_steps(self, items: &[Value]) -> Option<Vec<String>> {
        items.iter().map(|item| self.item_step(item)).collect()
    }
}

/// What Kubernetes writes for a field of one of its own types that nobody has set: text and numbers that are always
/// there, and null for lists and maps that have to be.
fn unsaid(parent: &Schema, name: &str) -> Option<Value> {
    parent.type_name.as_ref()?;
    let field = parent.properties.get(name)?;
    match &field.default {
        Some(Value::Object(_)) => None,
        Some(default) => Some(default.clone()),
        None => (parent.required.iter().any(|required| required == name)
            && (field.items.is_some() || field.additional.is_some()))
        .then_some(Value::Null),
    }
}

/// JSON text; whole numbers have no fraction.
fn canonical(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 => number.to_string(),
        _ => value.to_string(),
    }
}
