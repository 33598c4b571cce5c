//! Whether a value is as its schema wants it. Never here: what takes a look at the whole object (lists, embedded
//! resources, rules).

use serde_json::{Map, Value};

use super::rules::Complaints;
use super::{Role, Schema, Type, bounds, combine, embedded, lists, meta, rules};
use crate::status::{Fault, FieldError};

/// What complaints about no field in particular have for a path.
pub(super) const NO_FIELD: &str = "<nil>";

/// What is wrong with an object. Complaints about values that did not change are dropped.
pub(super) fn check(schema: &Schema, value: &Value, old: Option<&Value>) -> Complaints {
    let mut checker = Checker::new(String::new());
    checker.value(schema, value, old);
    let mut errors = checker.errors;
    if schema.below.embedded {
        embedded::check(schema, value, &mut String::new(), &mut errors);
    }
    if schema.below.lists {
        let doubles = lists::check(schema, value);
        // Whoever had doubles may keep them.
        if !doubles.is_empty() && old.is_none_or(|old| lists::check(schema, old).is_empty()) {
            errors.extend(doubles);
        }
    }
    if schema.below.rules {
        match rules::unchecked(&errors) {
            Some(unchecked) => errors.push(unchecked),
            None => {
                let mut complaints = rules::check(schema, value, old, "");
                errors.append(&mut complaints.errors);
                return Complaints { errors, ..complaints };
            }
        }
    }
    Complaints { errors, warnings: Vec::new() }
}

/// A walk through a value.
pub(super) struct Checker {
    /// Where the value is in what is looked at: empty for an object as a whole.
    prefix: String,
    /// Path below that, which is the name in sentences.
    pub(super) name: String,
    pub(super) errors: Vec<FieldError>,
}

impl Checker {
    pub(super) fn new(prefix: String) -> Self {
        Checker { prefix, name: String::new(), errors: Vec::new() }
    }

    /// Checks a value. What comes back grows with what was looked at: of several alternatives of which none fits, the one
    /// that says most about the value explains best.
    pub(super) fn value(&mut self, schema: &Schema, value: &Value, old: Option<&Value>) -> u32 {
        let before = self.errors.len();
        let mut looked_at = 1 + self.kind(schema, value);
        if !value.is_null() {
            looked_at += combine::check(self, schema, value);
            match value {
                Value::String(text) => {
                    bounds::string(self, schema, text, value);
                    looked_at += bounds::format(self, schema, text, value);
                }
                Value::Number(number) => bounds::number(self, schema, number, value),
                Value::Array(items) => {
                    looked_at += self.items(schema, items, old);
                    bounds::items(self, schema, items);
                }
                Value::Null | Value::Bool(_) | Value::Object(_) => {}
            }
        }
        let may_be_null = value.is_null() && schema.nullable;
        if !schema.checks.r#enum.is_empty() && !may_be_null {
            self.one_of_values(schema, value);
        }
        if let Value::Object(fields) = value {
            looked_at += self.fields(schema, fields, old);
        }
        if self.errors.len() > before && old == Some(value) {
            self.errors.truncate(before);
        }
        looked_at
    }

    fn kind(&mut self, schema: &Schema, value: &Value) -> u32 {
        let fits = match (schema.kind, value) {
            (None, Value::Null) if schema.int_or_string => schema.nullable,
            (None, value) if schema.int_or_string => value.is_string() || is_integer(value),
            (None, _) => return 0,
            (Some(_), Value::Null) => schema.nullable,
            (Some(Type::Object), value) => value.is_object(),
            (Some(Type::Array), value) => value.is_array(),
            (Some(Type::String), Value::Number(_)) => schema.int_or_string && is_integer(value),
            (Some(Type::String), value) => value.is_string(),
            (Some(Type::Integer), value) => is_integer(value),
            (Some(Type::Number), value) => value.is_number(),
            (Some(Type::Boolean), value) => value.is_boolean(),
        };
        if !fits {
            let sized = matches!(schema.checks.format.as_deref(), Some("int32" | "int64"));
            let is_float = value.is_number() && !is_integer(value);
            let (wanted, given) = match (schema.kind, &schema.checks.format) {
                (Some(Type::Integer), Some(format)) if sized && is_float => (format.as_str(), "float64"),
                (Some(kind), _) => (kind.name(), kind_of(value)),
                (None, _) => ("integer,string", kind_of(value)),
            };
            let detail = format!("{} in body must be of type {wanted}: \"{given}\"", self.name);
            self.push(Fault::TypeInvalid, format!("\"{given}\""), detail);
        }
        1
    }

    fn one_of_values(&mut self, schema: &Schema, value: &Value) {
        let values = &schema.checks.r#enum;
        if values.iter().any(|allowed| equal(allowed, value)) {
            return;
        }
        let supported: Vec<String> = values
            .iter()
            .map(|allowed| match allowed {
                Value::String(text) => format!("{text:?}"),
                other => format!("{:?}", other.to_string()),
            })
            .collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.push(Fault::Unsupported, value.to_string(), detail);
    }

    fn items(&mut self, schema: &Schema, items: &[Value], old: Option<&Value>) -> u32 {
        let Some(of_items) = &schema.items else { return 0 };
        let length = self.name.len();
        let mut looked_at = 0;
        for (index, item) in items.iter().enumerate() {
            self.name.push_str(&format!("[{index}]"));
            looked_at += 1 + self.value(of_items, item, lists::same(schema, item, old));
            self.name.truncate(length);
        }
        looked_at
    }

    fn fields(&mut self, schema: &Schema, fields: &Map<String, Value>, old: Option<&Value>) -> u32 {
        bounds::properties(self, schema, fields);
        let mut looked_at = 0;
        for (name, value) in fields {
            let Some(of_field) = schema.field(name) else {
                if schema.forbids_additional {
                    let detail = format!("{} in body is a forbidden property", self.child(name));
                    self.push(Fault::Invalid, format!("{name:?}"), detail);
                }
                continue;
            };
            // The rest of metadata is not for schemas to judge.
            if schema.role == Role::Metadata && !meta::LIMITED.contains(&&**name) {
                continue;
            }
            let length = self.enter(name);
            looked_at += 1 + self.value(of_field, value, old.and_then(|old| old.get(name)));
            self.name.truncate(length);
        }
        for name in &schema.required {
            if !fields.contains_key(name) {
                let length = self.enter(name);
                self.push(Fault::Required, String::new(), String::new());
                self.name.truncate(length);
            }
        }
        looked_at
    }

    /// Adds a complaint about the value at hand. `value` is as the message shows it.
    pub(super) fn push(&mut self, fault: Fault, value: String, detail: String) {
        let path = match (self.prefix.is_empty(), self.name.is_empty()) {
            (_, true) => self.prefix.clone(),
            (true, false) => self.name.clone(),
            (false, false) => format!("{}.{}", self.prefix, self.name),
        };
        self.errors.push(FieldError { fault, path, value, detail });
    }

    /// Adds a complaint that is about no field in particular.
    pub(super) fn push_without_field(&mut self, detail: String) {
        self.errors.push(FieldError {
            fault: Fault::Invalid,
            path: NO_FIELD.to_owned(),
            value: "\"\"".to_owned(),
            detail,
        });
    }

    fn enter(&mut self, name: &str) -> usize {
        let length = self.name.len();
        if length > 0 {
            self.name.push('.');
        }
        self.name.push_str(name);
        length
    }

    fn child(&self, name: &str) -> String {
        if self.name.is_empty() { name.to_owned() } else { format!("{}.{name}", self.name) }
    }
}

/// Numbers are equal by value.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

fn is_integer(value: &Value) -> bool {
    value.is_i64()
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
