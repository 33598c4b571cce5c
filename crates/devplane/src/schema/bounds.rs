//! Lengths, ranges, patterns and formats of values. Never here: types, fields.

use serde_json::{Map, Number, Value};

use super::check::Checker;
use super::{Schema, Type, formats};
use crate::status::Fault;

/// Length and pattern; the first that is wrong is named.
pub(super) fn string(checker: &mut Checker, schema: &Schema, text: &str, value: &Value) {
    let checks = &schema.checks;
    if checks.max_length.is_none() && checks.min_length.is_none() && checks.pattern.is_none() {
        return;
    }
    let length = text.chars().count() as u64;
    let name = &checker.name;
    if let Some(most) = checks.max_length.filter(|most| length > *most) {
        let byte = if most == 1 { "byte" } else { "bytes" };
        checker.push(Fault::TooLong, String::new(), format!("may not be more than {most} {byte}"));
    } else if let Some(least) = checks.min_length.filter(|least| length < *least) {
        let detail = format!("{name} in body should be at least {least} chars long");
        checker.push(Fault::Invalid, value.to_string(), detail);
    } else if let Some(pattern) = checks.pattern.as_ref().filter(|pattern| !pattern.regex.is_match(text)) {
        let detail = format!("{name} in body should match '{}'", pattern.text);
        checker.push(Fault::Invalid, value.to_string(), detail);
    }
}

/// Format of a string.
pub(super) fn format(checker: &mut Checker, schema: &Schema, text: &str, value: &Value) -> u32 {
    let Some(format) = &schema.checks.format else { return 0 };
    if !formats::matches(format, text) {
        let detail = format!("{} in body must be of type {format}: {value}", checker.name);
        checker.push(Fault::TypeInvalid, value.to_string(), detail);
    }
    1
}

/// What fits into the type, steps, and the range; all that is wrong is named.
pub(super) fn number(checker: &mut Checker, schema: &Schema, number: &Number, value: &Value) {
    let checks = &schema.checks;
    let float = number.as_f64().unwrap_or(f64::NAN);
    if let Some(wanted) = beyond(schema, number, float) {
        checker.push_without_field(format!("Checked value must be of type {wanted} in {}", checker.name));
    }
    if let Some(step) = checks.multiple_of.filter(|step| *step > 0.0 && !is_multiple(float, *step)) {
        let detail = format!("{} in body should be a multiple of {}", checker.name, shown(step));
        checker.push(Fault::Invalid, value.to_string(), detail);
    }
    if let Some(most) = checks.maximum {
        let (wrong, or_equal) =
            if checks.exclusive_maximum { (float >= most, "") } else { (float > most, " or equal to") };
        if wrong {
            let detail = format!("{} in body should be less than{or_equal} {}", checker.name, shown(most));
            checker.push(Fault::Invalid, value.to_string(), detail);
        }
    }
    if let Some(least) = checks.minimum {
        let (wrong, or_equal) =
            if checks.exclusive_minimum { (float <= least, "") } else { (float < least, " or equal to") };
        if wrong {
            let detail =
                format!("{} in body should be greater than{or_equal} {}", checker.name, shown(least));
            checker.push(Fault::Invalid, value.to_string(), detail);
        }
    }
}

/// The type that a number does not fit into.
fn beyond(schema: &Schema, number: &Number, float: f64) -> Option<String> {
    let format = schema.checks.format.as_deref();
    match schema.kind {
        Some(Type::Integer) => {
            let whole = number.as_i64().or_else(|| {
                // Exact: whole, and in range, as the limits of the cast are checked.
                let fits = float.fract() == 0.0 && (-(2_f64.powi(63))..2_f64.powi(63)).contains(&float);
                fits.then_some(float as i64)
            });
            let fits = whole.is_some_and(|whole| format != Some("int32") || i32::try_from(whole).is_ok());
            let wanted = match format {
                Some(format @ ("int32" | "int64")) => format!("integer with format {format}"),
                _ => "integer (default format)".to_owned(),
            };
            if fits { None } else { Some(wanted) }
        }
        Some(Type::Number) if format == Some("float") && float.abs() > f64::from(f32::MAX) => {
            Some("number with format float".to_owned())
        }
        Some(Type::Number | Type::Object | Type::Array | Type::String | Type::Boolean) | None => None,
    }
}

fn is_multiple(float: f64, step: f64) -> bool {
    let quotient = float / step;
    (quotient - quotient.round()).abs() < 1e-9
}

/// A limit as Go prints it.
fn shown(limit: f64) -> String {
    let exponent = limit.abs().log10();
    if limit != 0.0 && !(-5.0..21.0).contains(&exponent) {
        let text = format!("{limit:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, power) = power.strip_prefix('-').map_or(("+", power), |power| ("-", power));
        return format!("{digits}e{sign}{power:0>2}");
    }
    limit.to_string()
}

/// Number of items, and whether they differ.
pub(super) fn items(checker: &mut Checker, schema: &Schema, items: &[Value]) {
    let (checks, count) = (&schema.checks, items.len() as u64);
    if let Some(least) = checks.min_items.filter(|least| count < *least) {
        let detail = format!("{} in body should have at least {least} items", checker.name);
        checker.push(Fault::Invalid, count.to_string(), detail);
    }
    if let Some(most) = checks.max_items.filter(|most| count > *most) {
        checker.push(Fault::TooMany, count.to_string(), at_most(most));
    }
    let has_doubles = || items.iter().enumerate().any(|(index, item)| items[..index].contains(item));
    if checks.unique_items && has_doubles() {
        let detail = format!("{} in body shouldn't contain duplicates", checker.name);
        checker.push(Fault::Invalid, "\"\"".to_owned(), detail);
    }
}

/// Number of fields.
pub(super) fn properties(checker: &mut Checker, schema: &Schema, fields: &Map<String, Value>) {
    let (checks, count) = (&schema.checks, fields.len() as u64);
    if let Some(least) = checks.min_properties.filter(|least| count < *least) {
        let detail = format!("{} in body should have at least {least} properties", checker.name);
        checker.push(Fault::Invalid, count.to_string(), detail);
    }
    if let Some(most) = checks.max_properties.filter(|most| count > *most) {
        checker.push(Fault::TooMany, count.to_string(), at_most(most));
    }
}

fn at_most(most: u64) -> String {
    format!("must have at most {most} {}", if most == 1 { "item" } else { "items" })
}
