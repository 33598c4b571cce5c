//! Schemas of kinds: what fields there are, what is filled in, what is allowed. One type for the kinds of Kubernetes and
//! for those of CRDs. Never here: storage, requests.

mod bounds;
mod check;
mod combine;
mod components;
mod decode;
mod embedded;
mod fill;
pub(crate) mod formats;
mod lists;
mod meta;
pub(crate) mod names;
mod parse;
mod patterns;
mod prune;
pub(crate) mod quantity;
mod rules;
mod settle;
mod structural;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::status::FieldError;

pub(crate) use components::Components;
pub(crate) use rules::{Complaints, Expression, Inputs, Scene, Scope, Wanted, is_identifier};

/// The schema of a value. Children are shared: a type that is used in many places is there once.
///
/// A type that contains itself (only the schema inside a CRD does) is opaque at its second level: it has
/// `preserve_unknown` and no properties.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`; `None` allows any.
    pub kind: Option<Type>,
    /// Fields of an object, by name.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Values of an object that is a map.
    pub additional: Option<Arc<Schema>>,
    /// `additionalProperties: false`.
    pub forbids_additional: bool,
    /// Items of an array.
    pub items: Option<Arc<Schema>>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// What is filled in where the field is missing.
    pub default: Option<Value>,
    /// An explicit null may stay.
    pub nullable: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-list-type`, and for built-in kinds what follows from the merge strategy.
    pub list_type: ListType,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type: atomic`.
    pub is_atomic_map: bool,
    /// `x-kubernetes-patch-strategy` has `merge`: a strategic merge patch merges the list.
    pub patch_merge: bool,
    /// `x-kubernetes-patch-strategy` has `retainKeys`.
    pub patch_retain_keys: bool,
    /// `x-kubernetes-patch-merge-key`: by what items of the list are told apart.
    pub patch_merge_key: Option<String>,
    /// For `kubectl explain`.
    pub description: Option<String>,
    /// What the type is called where Kubernetes has a name for it: `v1.PodSpec`.
    pub type_name: Option<Arc<str>>,
    /// What values are allowed.
    pub checks: Checks,
    /// Rules in the Common Expression Language.
    pub rules: Vec<rules::Rule>,
    /// What must be told apart while a schema is walked.
    pub role: Role,
    /// What is true of everything below, so that walks can pass by.
    pub below: Below,
}

/// JSON type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// What a list is to whoever applies it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// One value with one owner.
    #[default]
    Atomic,
    /// Scalars, each there once.
    Set,
    /// Objects told apart by keys.
    Map,
}

/// Types that are more than their JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Plain,
    /// The whole object of a CRD's kind.
    Root,
    /// `metadata` of an object: decoded, not validated, but for the name.
    Metadata,
    /// A quantity: numbers become strings.
    Quantity,
}

/// What a schema or anything below it has. Of CRDs only: elsewhere all are false.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Below {
    /// Lists whose items must differ.
    pub lists: bool,
    /// Embedded resources.
    pub embedded: bool,
    /// Rules.
    pub rules: bool,
}

/// Limits of values. What is `None` or empty does not limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Checks {
    pub r#enum: Vec<Value>,
    pub format: Option<String>,
    pub pattern: Option<Pattern>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub exclusive_minimum: bool,
    pub exclusive_maximum: bool,
    pub multiple_of: Option<f64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub all_of: Vec<Schema>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub not: Option<Box<Schema>>,
}

/// A regular expression with its text as the CRD has it, which messages show.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub text: String,
    pub regex: regex::Regex,
}

impl Schema {
    /// The schema of a version of a CRD (`openAPIV3Schema`), or what is wrong with it. `path` is where the schema is in
    /// the CRD. `apiVersion`, `kind` and `metadata` are completed.
    pub(crate) fn of_crd(schema: &Value, path: &str) -> Result<Schema, Vec<FieldError>> {
        let mut errors = structural::check(schema, path);
        if !errors.is_empty() {
            return Err(errors);
        }
        let root = parse::crd(schema, path, &mut errors);
        if errors.is_empty() { Ok(root) } else { Err(errors) }
    }

    /// What cannot be decoded, in the words of Kubernetes' decoder: for kinds of Kubernetes every type, for those of CRDs
    /// `metadata` and embedded resources only, the rest being left to [`Schema::check`].
    pub(crate) fn decode(&self, value: &Value) -> Result<(), String> {
        decode::decode(self, value)
    }

    /// Takes out what the schema does not know, and returns the paths of it, as Kubernetes names them in
    /// `unknown field "spec.foo"`.
    pub(crate) fn prune(&self, value: &mut Value) -> Vec<String> {
        prune::prune(self, value)
    }

    /// Fills in defaults, and drops nulls that may not stay.
    pub(crate) fn fill(&self, value: &mut Value) {
        fill::fill(self, value);
    }

    /// Brings an object of a kind of Kubernetes into the form in which Kubernetes keeps it.
    pub(crate) fn settle(&self, value: &mut Value) {
        settle::settle(self, value);
    }

    /// What is wrong with an object. `old` is its state before, for rules that compare, and so that what was wrong
    /// already and did not change is let through (ratcheting), as Kubernetes does.
    #[cfg(test)]
    pub(crate) fn check(&self, value: &Value, old: Option<&Value>) -> Vec<FieldError> {
        check::check(self, value, old).errors
    }

    /// The same, with what is let through although it is wrong. Kubernetes sends it as warnings.
    pub(crate) fn check_and_warn(&self, value: &Value, old: Option<&Value>) -> Complaints {
        check::check(self, value, old)
    }

    /// The schema of a field, or of any key of a map.
    pub(crate) fn field(&self, name: &str) -> Option<&Arc<Schema>> {
        self.properties.get(name).or(self.additional.as_ref())
    }
}

impl Type {
    /// As schemas spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
        }
    }

    fn of_name(name: &str) -> Option<Type> {
        let all = [Type::Object, Type::Array, Type::String, Type::Integer, Type::Number, Type::Boolean];
        all.into_iter().find(|kind| kind.name() == name)
    }
}
