//! Rules that a CRD states in the Common Expression Language (`x-kubernetes-validations`), and what webhooks and policies say
//! of requests in it. Never here: what schemas say in words of their own; which requests those are.

mod expression;
mod functions;
mod net;
mod parse;
mod requests;
mod run;
mod scene;
mod signatures;
mod times;
mod types;
mod typing;
mod values;

use std::borrow::Cow;

use cel::IdedExpr;

use crate::status::Fault;

pub(crate) use expression::{Expression, Wanted};
pub(super) use parse::parse;
pub(crate) use requests::Scope;
pub(crate) use run::Complaints;
pub(super) use run::{check, unchecked};
pub(crate) use scene::{Inputs, Scene};

/// A rule on values of one schema, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    expression: IdedExpr,
    /// As it stands in the CRD.
    text: String,
    message: Option<String>,
    message_expression: Option<IdedExpr>,
    fault: Fault,
    /// What the path of a complaint ends in: `.name`, `[key]`.
    field: String,
    /// The rule compares with the value before.
    uses_old: bool,
    /// It runs without one, too.
    optional_old: bool,
}

/// Words that expressions cannot have for names.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Whether expressions can have a variable of this name.
pub(crate) fn is_identifier(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = !name.starts_with(|letter: char| letter.is_ascii_digit());
    !name.is_empty() && starts_well && name.bytes().all(is_plain) && !RESERVED.contains(&name)
}

/// The name that expressions have for a field; none if it cannot be named.
fn escape(name: &str) -> Option<Cow<'_, str>> {
    if RESERVED.contains(&name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if !starts_well || !name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'-' | b'/')) {
        return None;
    }
    if name.bytes().all(is_plain) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let escaped = name.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__");
    Some(Cow::Owned(escaped))
}
