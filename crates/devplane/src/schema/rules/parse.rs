//! Rules out of a CRD. Never here: running them.

use cel::{IdedExpr, Program};
use serde_json::{Map, Value};

use super::super::{Role, Schema};
use super::functions::env;
use super::types::Ty;
use super::typing::{Typing, scope};
use super::{Rule, escape};
use crate::status::{Fault, FieldError};

/// Reasons that a rule may give.
const REASONS: [(&str, Fault); 4] = [
    ("FieldValueDuplicate", Fault::Duplicate),
    ("FieldValueForbidden", Fault::Forbidden),
    ("FieldValueInvalid", Fault::Invalid),
    ("FieldValueRequired", Fault::Required),
];

/// The rules of a schema, and what is wrong with them. `path` is where the schema is; `apart` is the list whose items cannot
/// be told apart, if the schema is below one.
pub(in super::super) fn parse(
    schema: &Schema,
    json: &Map<String, Value>,
    path: &str,
    apart: Option<&str>,
    errors: &mut Vec<FieldError>,
) -> Vec<Rule> {
    let Some(given) =
        json.get("x-kubernetes-validations").and_then(Value::as_array).filter(|list| !list.is_empty())
    else {
        return Vec::new();
    };
    let path = format!("{path}.x-kubernetes-validations");
    if Ty::of_schema(schema).is_none() {
        let detail = "failed to construct type information for x-kubernetes-validations rules: unable to convert \
                      structural schema to CEL declarations";
        let (fault, value) = (Fault::Invalid, String::new());
        errors.push(FieldError { fault, path, value, detail: detail.to_owned() });
        return Vec::new();
    }
    let rule = |(index, json): (usize, &Value)| {
        let path = format!("{path}[{index}]");
        Parser { schema, json, path, errors }.rule(apart)
    };
    // The closure borrows the errors, so that the list is made in one go.
    given.iter().enumerate().filter_map(rule).collect()
}

struct Parser<'a> {
    schema: &'a Schema,
    json: &'a Value,
    path: String,
    errors: &'a mut Vec<FieldError>,
}

impl<'a> Parser<'a> {
    fn rule(mut self, apart: Option<&str>) -> Option<Rule> {
        let before = self.errors.len();
        let text = self.text("rule");
        if text.trim().is_empty() {
            self.errors.push(FieldError::required(format!("{}.rule", self.path), "rule is not specified"));
        }
        let message = self.message(text);
        let fault = self.reason();
        let field = self.field();
        let optional_old = self.json["optionalOldSelf"] == true;
        let mut expression = None;
        let mut uses_old = false;
        if !text.trim().is_empty() {
            expression = self.compile("rule", text, optional_old, &mut uses_old);
            if let (Some(list), true) = (apart, uses_old) {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.errors.push(FieldError::invalid(format!("{}.rule", self.path), &text.into(), detail));
            }
        }
        if optional_old && !(uses_old && expression.is_some()) {
            let (path, detail) =
                (format!("{}.optionalOldSelf", self.path), "may not be set if oldSelf is not used in rule");
            self.errors.push(FieldError::invalid(path, &true.into(), detail));
        }
        let message_expression = match self.text("messageExpression").trim() {
            "" => None,
            _ => self.compile("messageExpression", self.text("messageExpression"), optional_old, &mut false),
        };
        if self.errors.len() > before {
            return None;
        }
        let text = text.to_owned();
        Some(Rule {
            expression: expression?,
            text,
            message,
            message_expression,
            fault,
            field,
            uses_old,
            optional_old,
        })
    }

    fn text(&self, key: &str) -> &'a str {
        self.json[key].as_str().unwrap_or_default()
    }

    fn message(&mut self, rule: &str) -> Option<String> {
        let message = self.text("message");
        let path = format!("{}.message", self.path);
        if !message.is_empty() && message.trim().is_empty() {
            self.errors.push(FieldError::invalid(path, &message.into(), "must be non-empty if specified"));
        } else if message.trim().contains('\n') {
            self.errors.push(FieldError::invalid(path, &message.into(), "must not contain line breaks"));
        } else if message.is_empty() && rule.trim().contains('\n') {
            let detail = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(path, detail));
        }
        let expression = self.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.errors.push(FieldError::required(format!("{}.messageExpression", self.path), detail));
        }
        if message.is_empty() { None } else { Some(message.to_owned()) }
    }

    fn reason(&mut self) -> Fault {
        let given = &self.json["reason"];
        if given.is_null() {
            return Fault::Invalid;
        }
        if let Some((_, fault)) = REASONS.iter().find(|(name, _)| given == name) {
            return *fault;
        }
        let supported: Vec<String> = REASONS.iter().map(|(name, _)| format!("{name:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.errors.push(FieldError::new(Fault::Unsupported, format!("{}.reason", self.path), given, detail));
        Fault::Invalid
    }

    fn field(&mut self) -> String {
        let given = self.text("fieldPath");
        if given.is_empty() {
            return String::new();
        }
        match field_path(self.schema, given) {
            Some(path) => path,
            None => {
                let path = format!("{}.fieldPath", self.path);
                self.errors.push(FieldError::invalid(path, &given.into(), "must be a valid path"));
                String::new()
            }
        }
    }

    /// An expression, if it makes sense.
    fn compile(
        &mut self,
        key: &str,
        text: &str,
        optional_old: bool,
        uses_old: &mut bool,
    ) -> Option<IdedExpr> {
        let (prefix, wanted, says) = match key {
            "rule" => ("", Ty::Bool, "cel expression must evaluate to a bool"),
            _ => ("messageExpression ", Ty::String, "messageExpression must evaluate to a string"),
        };
        let complaint = match env().compile(text) {
            Ok(program) => match typed(&program, self.schema, optional_old) {
                Ok(typed) if fits(&wanted, &typed.ty) => {
                    *uses_old = typed.uses_old;
                    return Some(typed.expression);
                }
                Ok(_) => says.to_owned(),
                Err(complaint) => format!("{prefix}compilation failed: {complaint}"),
            },
            Err(errors) => format!("{prefix}compilation failed: {}", indented(&errors.to_string())),
        };
        let (fault, path) = (Fault::Invalid, format!("{}.{key}", self.path));
        self.errors.push(FieldError { fault, path, value: self.shown(), detail: complaint });
        None
    }

    /// The rule as messages show it.
    fn shown(&self) -> String {
        let text = |key: &str| go_string(self.text(key));
        let reason = self.json["reason"].as_str().map_or("null".to_owned(), go_string);
        format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\"FieldPath\":{},\
             \"OptionalOldSelf\":{}}}",
            text("rule"),
            text("message"),
            text("messageExpression"),
            text("fieldPath"),
            self.json["optionalOldSelf"],
        )
    }
}

struct Typed<'s> {
    expression: IdedExpr,
    ty: Ty<'s>,
    uses_old: bool,
}

fn typed<'s>(program: &Program, schema: &'s Schema, optional_old: bool) -> Result<Typed<'s>, String> {
    let mut expression = program.expression().clone();
    let scope = scope(schema, optional_old).unwrap_or_default();
    let mut typing = Typing::new(program.source_info(), scope);
    let ty = typing.expression(&mut expression);
    match typing.complaints() {
        Some(complaints) => Err(complaints),
        None => Ok(Typed { expression, ty, uses_old: typing.uses_old }),
    }
}

fn fits(wanted: &Ty<'_>, given: &Ty<'_>) -> bool {
    matches!((wanted, given), (_, Ty::Dyn) | (Ty::Bool, Ty::Bool) | (Ty::String, Ty::String))
}

/// The lines below an error are indented.
pub(super) fn indented(errors: &str) -> String {
    let line = |line: &str| if line.starts_with('|') { format!(" {line}") } else { line.to_owned() };
    errors.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// JSON as Go writes it: safe inside of HTML.
fn go_string(text: &str) -> String {
    let json = Value::from(text).to_string();
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// `.a.b`, `.a['b']`: what a path of a rule ends complaints in. Fields must be there in the schema; lists are not entered.
fn field_path(schema: &Schema, given: &str) -> Option<String> {
    let (mut schema, mut rest, mut path) = (schema, given, String::new());
    while !rest.is_empty() {
        let name;
        if let Some(quoted) = rest.strip_prefix("['") {
            (name, rest) = quoted.split_once("']")?;
        } else {
            let plain = rest.strip_prefix('.')?;
            let end = plain.find(['.', '[']).unwrap_or(plain.len());
            (name, rest) = plain.split_at(end);
        }
        if name.is_empty() || schema.embedded_resource || schema.role != Role::Plain && escape(name).is_none()
        {
            return None;
        }
        if let Some(child) = schema.properties.get(name) {
            path.push_str(&format!(".{name}"));
            schema = child;
        } else {
            path.push_str(&format!("[{name}]"));
            schema = schema.additional.as_ref()?;
        }
    }
    Some(path)
}
