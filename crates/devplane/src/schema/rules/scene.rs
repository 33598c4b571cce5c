//! Running expressions about a request. Never here: what they mean, and what follows.

use std::fmt;
use std::sync::{Arc, OnceLock};

use cel::common::traits::Indexer;
use cel::common::types::{CelBool, CelString, Type};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;
use cel::{Context, ExecutionError};
use serde_json::Value;

use super::expression::Expression;
use super::functions::env;
use super::run::reason;
use super::values::plain;

/// The values that expressions about a request may name. Each is made a value of the language when it is first named.
pub(crate) struct Inputs<'d> {
    inputs: [Input<'d>; 4],
}

struct Input<'d> {
    name: &'static str,
    json: &'d Value,
    made: OnceLock<Box<dyn Val + 'd>>,
}

impl<'d> Inputs<'d> {
    /// An object and its state before, the request, and its namespace. What is not there is null.
    pub(crate) fn new(
        [object, old]: [Option<&'d Value>; 2],
        request: &'d Value,
        namespace: &'d Value,
    ) -> Self {
        let input = |name, json| Input { name, json, made: OnceLock::new() };
        let or_null = |value: Option<&'d Value>| value.unwrap_or(&Value::Null);
        Inputs {
            inputs: [
                input("object", or_null(object)),
                input("oldObject", or_null(old)),
                input("request", request),
                input("namespaceObject", namespace),
            ],
        }
    }
}

impl VariableResolver for Inputs<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        let input = self.inputs.iter().find(|input| input.name == variable)?;
        let value = input.made.get_or_init(|| plain(input.json));
        Some(CowVal::Borrowed(value.as_ref()))
    }
}

/// Inputs and the variables of a policy.
pub(crate) struct Scene<'v>(Arc<Variables<'v>>);

/// Each is computed when it is first named.
struct Variables<'v> {
    inputs: &'v dyn VariableResolver,
    list: Vec<Variable<'v>>,
}

struct Variable<'v> {
    name: &'v str,
    expression: &'v Expression,
    computed: OnceLock<Result<Box<dyn Val + 'v>, ExecutionError>>,
}

impl<'v> Scene<'v> {
    /// `variables` are names and what they are computed by; each may name those before it.
    pub(crate) fn new(
        inputs: &'v Inputs<'_>,
        variables: impl IntoIterator<Item = (&'v str, &'v Expression)>,
    ) -> Self {
        let variable = |(name, expression)| Variable { name, expression, computed: OnceLock::new() };
        Scene(Arc::new(Variables { inputs, list: variables.into_iter().map(variable).collect() }))
    }

    /// Whether an expression is true, or why that cannot be said.
    pub(crate) fn holds(&self, expression: &Expression) -> Result<bool, String> {
        self.run(expression, |value| value.downcast_ref::<CelBool>().is_some_and(|answer| *answer.inner()))
    }

    /// The text that an expression comes to, if it is text, or why it comes to nothing.
    pub(crate) fn text(&self, expression: &Expression) -> Result<Option<String>, String> {
        self.run(expression, |value| Some(value.downcast_ref::<CelString<'v>>()?.inner().to_owned()))
    }

    fn run<T>(&self, expression: &Expression, read: impl FnOnce(&(dyn Val + 'v)) -> T) -> Result<T, String> {
        let context = context(&self.0, self.0.list.len());
        match cel::Value::resolve_val(&expression.node, &context) {
            Ok(value) => Ok(read(&*value)),
            Err(error) => {
                Err(format!("expression '{}' resulted in error: {}", expression.text(), why(&error)))
            }
        }
    }
}

/// What an expression can name that may use the first `seen` variables.
fn context<'v>(variables: &Arc<Variables<'v>>, seen: usize) -> Context<'v, 'v> {
    let mut context = Context::with_env(Arc::clone(env()));
    context.set_variable_resolver(variables.inputs);
    let handle = Handle { variables: Arc::clone(variables), seen };
    context.add_variable_as_val("variables", Box::new(handle));
    context
}

fn why(error: &ExecutionError) -> String {
    reason(error).unwrap_or_else(|| "no such overload".to_owned())
}

static VARIABLES: Type = Type::new_unspecified_type("kubernetes.variables");

/// `variables` as a value.
#[derive(Clone)]
struct Handle<'v> {
    variables: Arc<Variables<'v>>,
    /// How many of them can be named; of two with the same name the last.
    seen: usize,
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.variables.list[..self.seen].iter().map(|variable| variable.name);
        f.debug_list().entries(names).finish()
    }
}

impl<'x> Handle<'x> {
    fn value(&self, name: &str) -> Result<&(dyn Val + 'x), ExecutionError> {
        let at = self.variables.list[..self.seen].iter().rposition(|variable| variable.name == name);
        let at = at.ok_or_else(|| ExecutionError::NoSuchKey(Arc::new(name.to_owned())))?;
        let Variable { name, expression, computed } = &self.variables.list[at];
        let computed = computed.get_or_init(|| {
            let context = context(&self.variables, at);
            cel::Value::resolve_val(&expression.node, &context).map(CowVal::into_owned)
        });
        computed.as_deref().map_err(|error| {
            let why = format!("composited variable \"{name}\" fails to evaluate: {}", why(error));
            ExecutionError::function_error("variables", why)
        })
    }
}

impl Val for Handle<'_> {
    fn get_type(&self) -> &Type {
        &VARIABLES
    }
    fn cel_type() -> &'static Type {
        &VARIABLES
    }
    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Indexer for Handle<'_> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let name = key.downcast_ref::<CelString<'_>>().map(CelString::inner);
        self.value(name.unwrap_or_default()).map(CowVal::Borrowed)
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}
