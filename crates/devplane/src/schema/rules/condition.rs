//! Conditions on values without schemas: what webhooks say about the requests that concern them. Never here: rules of
//! schemas.

use std::sync::Arc;

use cel::common::types::CelBool;
use cel::{Context, IdedExpr};
use serde_json::Value;

use super::functions::env;
use super::parse::indented;
use super::run::reason;
use super::types::Ty;
use super::typing::Typing;
use super::values::plain;

/// An expression that is true or not.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    expression: IdedExpr,
    text: String,
}

impl Condition {
    /// Reads an expression that may name variables, or says why it makes no sense.
    pub(crate) fn parse(text: &str, variables: &[&str]) -> Result<Condition, String> {
        let program = env().compile(text);
        let program =
            program.map_err(|errors| format!("compilation failed: {}", indented(&errors.to_string())))?;
        let mut expression = program.expression().clone();
        let scope = variables.iter().map(|name| ((*name).to_owned(), Ty::Dyn)).collect();
        let mut typing = Typing::new(program.source_info(), scope);
        let ty = typing.expression(&mut expression);
        if let Some(complaints) = typing.complaints() {
            return Err(format!("compilation failed: {complaints}"));
        }
        match ty {
            Ty::Bool => Ok(Condition { expression, text: text.to_owned() }),
            other => Err(format!("must evaluate to bool but got {other}")),
        }
    }

    /// Whether it holds, or why that cannot be said.
    pub(crate) fn holds(&self, variables: &[(&str, &Value)]) -> Result<bool, String> {
        let mut context = Context::with_env(Arc::clone(env()));
        for (name, value) in variables {
            context.add_variable_as_val(*name, plain(value));
        }
        match cel::Value::resolve_val(&self.expression, &context) {
            Ok(answer) => Ok(answer.downcast_ref::<CelBool>().is_some_and(|answer| *answer.inner())),
            Err(error) => {
                let why = reason(&error).unwrap_or_else(|| "no such overload".to_owned());
                Err(format!("expression '{}' resulted in error: {why}", self.text))
            }
        }
    }
}
