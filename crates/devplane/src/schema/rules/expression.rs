//! Expressions that are no rules of a schema: what webhooks and policies say about requests. Never here: running them.

use cel::IdedExpr;

use super::functions::env;
use super::parse::indented;
use super::requests::Scope;
use super::types::Ty;
use super::typing::Typing;

/// An expression that makes sense.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(super) node: IdedExpr,
    pub(super) ty: Ty<'static>,
    text: String,
}

/// What an expression is to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Any,
    Bool,
    Text,
    TextOrNull,
}

impl Expression {
    /// Reads an expression that may name what is in scope, or says why it makes no sense.
    pub(crate) fn parse(text: &str, scope: &Scope, wanted: Wanted) -> Result<Expression, String> {
        let program = env().compile(text);
        let program =
            program.map_err(|errors| format!("compilation failed: {}", indented(&errors.to_string())))?;
        let mut node = program.expression().clone();
        let mut typing = Typing::new(program.source_info(), scope.variables());
        let ty = typing.expression(&mut node);
        if let Some(complaints) = typing.complaints() {
            return Err(format!("compilation failed: {complaints}"));
        }
        let (fits, what) = match wanted {
            Wanted::Any => (true, ""),
            Wanted::Bool => (matches!(ty, Ty::Bool), "bool"),
            Wanted::Text => (matches!(ty, Ty::String), "string"),
            Wanted::TextOrNull => (matches!(ty, Ty::String | Ty::Null), "one of [string null_type]"),
        };
        if fits {
            Ok(Expression { node, ty, text: text.to_owned() })
        } else {
            Err(format!("must evaluate to {what} but got {ty}"))
        }
    }

    /// As it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}
