//! The policies there are, compiled once for each change of them or of their bindings. Never here: running them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::GROUP;
use crate::admission::{Conditions, Reach, conditions};
use crate::schema::{Expression, Scope, Wanted, is_identifier};
use crate::state::State;
use crate::status::FieldError;
use crate::storage::Object;

/// A policy that is bound to something.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(super) name: String,
    pub(super) reach: Reach,
    pub(super) conditions: Conditions,
    /// Names and what they are computed by.
    pub(super) variables: Vec<(String, Expression)>,
    pub(super) validations: Vec<Validation>,
    /// What is written to an audit log. There is none, but one that fails is a failure of the policy.
    pub(super) notes: Vec<Expression>,
    pub(super) ignores_failure: bool,
    pub(super) bindings: Vec<Binding>,
}

/// What a policy wants to be true.
#[derive(Debug)]
pub(super) struct Validation {
    pub expression: Expression,
    pub message: String,
    pub message_expression: Option<Expression>,
    pub reason: Reason,
}

/// Why a write is refused, as answers put it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Forbidden,
    Invalid,
    RequestEntityTooLarge,
}

/// Where a policy applies, and what follows.
#[derive(Debug)]
pub(super) struct Binding {
    pub name: String,
    /// `None`: everywhere.
    pub reach: Option<Reach>,
    pub denies: bool,
    pub warns: bool,
}

/// Policies as of some revisions of them and of their bindings.
#[derive(Default)]
pub(crate) struct Cache {
    revisions: Vec<u64>,
    policies: Arc<[Policy]>,
}

impl Cache {
    /// The policies that are bound now, sorted by name.
    pub(crate) fn policies(state: &mut State) -> Arc<[Policy]> {
        let State { storage, kinds, policies, .. } = state;
        let objects = |plural: &str| {
            let kind = kinds.resource(GROUP, "v1", plural);
            kind.into_iter().flat_map(|kind| storage.iter(&kind.bucket, None)).cloned()
        };
        let both = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
        let now = both.map(|plural| objects(plural).map(|object| object.revision).chain([0]));
        if !now.into_iter().flatten().eq(policies.revisions.iter().copied()) {
            let [made, bindings] = both.map(|plural| objects(plural).collect::<Vec<_>>());
            let revisions =
                |list: &[Arc<Object>]| list.iter().map(|object| object.revision).collect::<Vec<_>>();
            // A zero ends either list.
            policies.revisions = [revisions(&made), vec![0], revisions(&bindings), vec![0]].concat();
            policies.policies = bound(&made, &bindings);
        }
        policies.policies.clone()
    }
}

fn bound(policies: &[Arc<Object>], bindings: &[Arc<Object>]) -> Arc<[Policy]> {
    let mut by_policy: BTreeMap<String, Vec<Binding>> = BTreeMap::new();
    for binding in bindings {
        let value = binding.value();
        let policy = value["spec"]["policyName"].as_str().unwrap_or_default();
        by_policy.entry(policy.to_owned()).or_default().push(Binding::parse(&value));
    }
    let policies = policies.iter().filter_map(|policy| {
        let bindings = by_policy.remove(&policy.key.name)?;
        // What is wrong with a policy was told when it was written.
        let (policy, _) = parse(&policy.value());
        Some(Policy { bindings, ..policy })
    });
    policies.collect()
}

impl Binding {
    fn parse(binding: &Value) -> Binding {
        let spec = &binding["spec"];
        let does = |action: &str| {
            spec["validationActions"].as_array().into_iter().flatten().any(|given| given == action)
        };
        Binding {
            name: binding["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            reach: spec["matchResources"].is_object().then(|| Reach::of_resources(&spec["matchResources"])),
            denies: does("Deny"),
            warns: does("Warn"),
        }
    }
}

impl Reason {
    fn of_name(name: &str) -> Reason {
        match name {
            "Forbidden" => Reason::Forbidden,
            "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
            _ => Reason::Invalid,
        }
    }

    /// The status code and the word.
    pub(super) fn words(self) -> (u16, &'static str) {
        match self {
            Reason::Forbidden => (403, "Forbidden"),
            Reason::Invalid => (422, "Invalid"),
            Reason::RequestEntityTooLarge => (413, "RequestEntityTooLarge"),
        }
    }
}

/// Reads a policy, without its bindings, and says which of its expressions make no sense. Those are not in it.
pub(super) fn parse(policy: &Value) -> (Policy, Vec<FieldError>) {
    let spec = &policy["spec"];
    let list = |name: &str| spec[name].as_array().map_or(&[][..], Vec::as_slice);
    let mut parser = Parser { scope: Scope::of_requests(), errors: Vec::new() };
    let mut variables = Vec::new();
    if !list("variables").is_empty() {
        parser.scope.begin_variables();
    }
    for (at, variable) in list("variables").iter().enumerate() {
        variables.extend(parser.variable(variable, &format!("spec.variables[{at}]")));
    }
    let mut validations = Vec::new();
    for (at, validation) in list("validations").iter().enumerate() {
        validations.extend(parser.validation(validation, &format!("spec.validations[{at}]")));
    }
    let mut notes = Vec::new();
    for (at, note) in list("auditAnnotations").iter().enumerate() {
        let path = format!("spec.auditAnnotations[{at}]");
        notes.extend(parser.expression(note, &path, "valueExpression", Wanted::TextOrNull));
    }
    let policy = Policy {
        name: policy["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        reach: Reach::of_resources(&spec["matchConstraints"]),
        conditions: conditions(spec),
        variables,
        validations,
        notes,
        ignores_failure: spec["failurePolicy"] == "Ignore",
        bindings: Vec::new(),
    };
    (policy, parser.errors)
}

struct Parser {
    scope: Scope,
    errors: Vec<FieldError>,
}

impl Parser {
    fn variable(&mut self, variable: &Value, path: &str) -> Option<(String, Expression)> {
        let name = variable["name"].as_str().unwrap_or_default();
        let at = format!("{path}.name");
        if name.trim().is_empty() {
            self.errors.push(FieldError::required(at, "name is not specified"));
        } else if !is_identifier(name) {
            self.errors.push(FieldError::invalid(at, &name.into(), "must be a valid CEL identifier"));
        }
        let expression = self.expression(variable, path, "expression", Wanted::Any)?;
        self.scope.declare(name, &expression);
        Some((name.to_owned(), expression))
    }

    fn validation(&mut self, validation: &Value, path: &str) -> Option<Validation> {
        let text = |field: &str| validation[field].as_str().unwrap_or_default();
        let expression = self.expression(validation, path, "expression", Wanted::Bool);
        let made = text("messageExpression");
        let message_expression = match (made.is_empty(), made.trim().is_empty()) {
            (true, _) => None,
            (false, true) => {
                let at = format!("{path}.messageExpression");
                self.errors.push(FieldError::invalid(at, &made.into(), "must be non-empty if specified"));
                None
            }
            (false, false) => self.expression(validation, path, "messageExpression", Wanted::Text),
        };
        Some(Validation {
            expression: expression?,
            message: text("message").trim().to_owned(),
            message_expression,
            reason: Reason::of_name(text("reason")),
        })
    }

    /// An expression that has to be there.
    fn expression(&mut self, owner: &Value, path: &str, field: &str, wanted: Wanted) -> Option<Expression> {
        let text = owner[field].as_str().unwrap_or_default();
        let path = format!("{path}.{field}");
        if text.trim().is_empty() {
            self.errors.push(FieldError::required(path, format!("{field} is not specified")));
            return None;
        }
        match Expression::parse(text, &self.scope, wanted) {
            Ok(expression) => Some(expression),
            Err(why) => {
                self.errors.push(FieldError::invalid(path, &text.into(), why));
                None
            }
        }
    }
}
