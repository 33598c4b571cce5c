//! `anyOf`, `oneOf`, `allOf` and `not`. Never here: what single schemas say.

use serde_json::Value;

use super::Schema;
use super::check::Checker;

/// Checks a value against the schemas that are combined in its schema. Nothing in them is let through for being unchanged.
pub(super) fn check(checker: &mut Checker, schema: &Schema, value: &Value) -> u32 {
    let checks = &schema.checks;
    let mut looked_at = 0;
    if !checks.any_of.is_empty() {
        looked_at += any_of(checker, &checks.any_of, value);
    }
    if !checks.one_of.is_empty() {
        looked_at += one_of(checker, &checks.one_of, value);
    }
    if !checks.all_of.is_empty() {
        looked_at += all_of(checker, &checks.all_of, value);
    }
    if let Some(not) = &checks.not {
        let before = checker.errors.len();
        checker.value(not, value, None);
        if checker.errors.len() > before {
            checker.errors.truncate(before);
        } else {
            checker.push_without_field(format!("{:?} must not validate the schema (not)", checker.name));
        }
    }
    looked_at
}

fn any_of(checker: &mut Checker, schemas: &[Schema], value: &Value) -> u32 {
    let alternatives = try_each(checker, schemas, value, true);
    let Alternatives { right: 0, best: Some(best), .. } = alternatives else { return alternatives.looked_at };
    checker.push_without_field(format!("{:?} must validate at least one schema (anyOf)", checker.name));
    checker.value(best, value, None)
}

fn one_of(checker: &mut Checker, schemas: &[Schema], value: &Value) -> u32 {
    let alternatives = try_each(checker, schemas, value, false);
    let found = match alternatives.right {
        1 => return alternatives.looked_at,
        0 => "none valid".to_owned(),
        right => format!("{right} valid alternatives"),
    };
    let name = &checker.name;
    checker
        .push_without_field(format!("{name:?} must validate one and only one schema (oneOf). Found {found}"));
    match alternatives.best.filter(|_| alternatives.right == 0) {
        Some(best) => checker.value(best, value, None),
        None => 0,
    }
}

fn all_of(checker: &mut Checker, schemas: &[Schema], value: &Value) -> u32 {
    let (mut wrong, mut looked_at) = (0, 0);
    for schema in schemas {
        let before = checker.errors.len();
        looked_at += checker.value(schema, value, None);
        if checker.errors.len() > before {
            wrong += 1;
        }
    }
    if wrong > 0 {
        let none = if wrong == schemas.len() { ". None validated" } else { "" };
        checker.push_without_field(format!("{:?} must validate all the schemas (allOf){none}", checker.name));
    }
    looked_at
}

struct Alternatives<'a> {
    /// How many fit.
    right: usize,
    /// The one of those that do not fit that says most about the value.
    best: Option<&'a Schema>,
    looked_at: u32,
}

fn try_each<'a>(
    checker: &mut Checker,
    schemas: &'a [Schema],
    value: &Value,
    first_is_enough: bool,
) -> Alternatives<'a> {
    let mut alternatives = Alternatives { right: 0, best: None, looked_at: 0 };
    let before = checker.errors.len();
    let mut most = 0;
    for schema in schemas {
        let looked_at = checker.value(schema, value, None);
        if checker.errors.len() == before {
            alternatives.right += 1;
            alternatives.looked_at = looked_at;
            if first_is_enough {
                break;
            }
        } else if looked_at > most {
            most = looked_at;
            alternatives.best = Some(schema);
        }
        checker.errors.truncate(before);
    }
    alternatives
}
