//! Running rules on an object. Never here: what they mean.

use std::sync::Arc;

use cel::common::types::{CelBool, CelOptional, CelString};
use cel::{Context, ExecutionError};
use serde_json::Value;

use super::super::check::NO_FIELD;
use super::super::{Schema, lists};
use super::Rule;
use super::functions::env;
use super::values::view;
use crate::status::{Fault, FieldError};

/// Complaints that keep rules from being run: they could not make sense of the object.
const BLOCKING: [Fault; 5] =
    [Fault::Required, Fault::Unsupported, Fault::TooLong, Fault::TooMany, Fault::TypeInvalid];

/// Functions that make numbers and truth of text.
const CONVERSIONS: [&str; 4] = ["bool", "double", "int", "uint"];

/// Longest message that an expression may make.
const MESSAGE: usize = 5 << 10;

/// The complaint that rules were not run, if others are such that they cannot.
pub(in super::super) fn unchecked(errors: &[FieldError]) -> Option<FieldError> {
    let is_blocked = errors.iter().any(|error| BLOCKING.contains(&error.fault));
    let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                  complete validation";
    is_blocked.then(|| FieldError::invalid(NO_FIELD, &Value::Null, detail))
}

/// What rules have to say about an object.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    pub errors: Vec<FieldError>,
    /// What was wrong already and did not change: it is let through, and said.
    pub warnings: Vec<FieldError>,
}

/// Runs the rules of a schema, and of all below, on a value.
pub(in super::super) fn check(schema: &Schema, value: &Value, old: Option<&Value>, path: &str) -> Complaints {
    let mut runner = Runner { path: path.to_owned(), complaints: Complaints::default() };
    runner.value(schema, value, old, false);
    runner.complaints
}

struct Runner {
    path: String,
    complaints: Complaints,
}

impl Runner {
    /// `same`: the value is part of something that did not change.
    fn value(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, same: bool) {
        if value.is_null() {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        let same = same || old == Some(value);
        self.own(schema, value, old, same);
        let length = self.path.len();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let Some(of_field) = schema.field(name).filter(|field| field.below.rules) else {
                        continue;
                    };
                    if schema.properties.contains_key(name) {
                        if length > 0 {
                            self.path.push('.');
                        }
                        self.path.push_str(name);
                    } else {
                        self.path.push_str(&format!("[{name}]"));
                    }
                    self.value(of_field, value, old.and_then(|old| old.get(name)), same);
                    self.path.truncate(length);
                }
            }
            Value::Array(items) => {
                let Some(of_items) = schema.items.as_ref().filter(|items| items.below.rules) else { return };
                for (index, item) in items.iter().enumerate() {
                    self.path.push_str(&format!("[{index}]"));
                    self.value(of_items, item, lists::same(schema, item, old), same);
                    self.path.truncate(length);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The rules of the schema itself.
    fn own(&mut self, schema: &Schema, value: &Value, old: Option<&Value>, same: bool) {
        let is_due = |rule: &&Rule| !rule.uses_old || rule.optional_old || old.is_some();
        let mut due = schema.rules.iter().filter(is_due).peekable();
        if due.peek().is_none() {
            return;
        }
        let mut context = Context::with_env(Arc::clone(env()));
        context.add_variable_as_val("self", view(schema, value));
        let mut bound = None;
        for rule in due {
            if rule.uses_old && bound != Some(rule.optional_old) {
                match old.map(|old| view(schema, old)) {
                    old if rule.optional_old => {
                        context.add_variable_as_val("oldSelf", Box::new(CelOptional::from(old)));
                    }
                    Some(old) => context.add_variable_as_val("oldSelf", old),
                    None => continue,
                }
                bound = Some(rule.optional_old);
            }
            self.run(rule, &context, value, same);
        }
    }

    fn run(&mut self, rule: &Rule, context: &Context<'_, '_>, value: &Value, same: bool) {
        let error = match cel::Value::resolve_val(&rule.expression, context) {
            Ok(answer) if answer.downcast_ref::<CelBool>().is_some_and(|answer| *answer.inner()) => return,
            Ok(_) => {
                let detail = match rule.fault {
                    Fault::Duplicate => String::new(),
                    _ => made(rule, context).unwrap_or_else(|| said(rule)),
                };
                FieldError {
                    fault: rule.fault,
                    path: self.at(&rule.field),
                    value: shown(rule, value),
                    detail,
                }
            }
            Err(error) => {
                self.complaints.errors.push(self.failed(rule, &error, value));
                return;
            }
        };
        // A rule about the change itself lets nothing through.
        if same && !rule.uses_old {
            self.complaints.warnings.push(error);
        } else {
            self.complaints.errors.push(error);
        }
    }

    /// What is said of a rule that could not be run to its end.
    fn failed(&self, rule: &Rule, error: &ExecutionError, value: &Value) -> FieldError {
        let rule_or_message = rule.message.as_ref().unwrap_or(&rule.text);
        let (value, detail) = match reason(error) {
            Some(reason) => {
                (format!("{:?}", kind_of(value)), format!("{reason} evaluating rule: {rule_or_message}"))
            }
            None => {
                let detail = "'no such overload': call arguments did not match a supported operator, function or macro \
                              signature for rule";
                ("\"\"".to_owned(), format!("{detail}: {rule_or_message}"))
            }
        };
        FieldError { fault: Fault::Invalid, path: self.at(""), value, detail }
    }

    fn at(&self, field: &str) -> String {
        match (&*self.path, field) {
            ("", "") => NO_FIELD.to_owned(),
            ("", field) => field.trim_start_matches('.').to_owned(),
            (path, field) => format!("{path}{field}"),
        }
    }
}

fn said(rule: &Rule) -> String {
    rule.message.clone().unwrap_or_else(|| format!("failed rule: {}", rule.text))
}

/// What the rule's own expression says; nothing where it fails or says nothing that fits in a line.
fn made(rule: &Rule, context: &Context<'_, '_>) -> Option<String> {
    let made = cel::Value::resolve_val(rule.message_expression.as_ref()?, context).ok()?;
    let text = made.downcast_ref::<CelString>()?.inner();
    let is_right = !text.trim().is_empty() && !text.trim().contains('\n') && text.len() <= MESSAGE;
    is_right.then(|| text.to_owned())
}

fn shown(rule: &Rule, value: &Value) -> String {
    match value {
        Value::Object(_) | Value::Array(_) => String::new(),
        _ if !rule.field.is_empty() => String::new(),
        value => value.to_string(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// What went wrong, in the words of Kubernetes; nothing where values had types that nothing is made for.
pub(super) fn reason(error: &ExecutionError) -> Option<String> {
    Some(match error {
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedBinaryOperator(..) => return None,
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::FunctionError { function, .. } if CONVERSIONS.contains(&&**function) => {
            format!("type conversion error from 'string' to '{function}'")
        }
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    })
}
