//! Sets of fields, in the form of `fieldsV1`, and their algebra. Never here: schemas, objects.
//!
//! A set is a tree of steps. A step is `f:name` (a field), `k:{…}` (an item told apart by keys) or `v:…` (an item that is
//! a scalar). Where a step leads to `{}` or to something with `.` in it, the path to there is in the set. The set itself
//! may be empty, but no step leads to nothing.

use serde_json::{Map, Value};

/// A set, or what of it is below a path.
pub(super) type Fields = Map<String, Value>;

/// Marks that the path to here is in the set, where there are steps too.
const HERE: &str = ".";

/// The step to a field.
pub(super) fn field_step(name: &str) -> String {
    format!("f:{name}")
}

/// Whether the path to here is in the set. Not for the root.
pub(super) fn is_member(fields: &Fields) -> bool {
    fields.is_empty() || fields.contains_key(HERE)
}

/// Puts the path to here into the set.
pub(super) fn add_here(fields: &mut Fields) {
    if !fields.is_empty() {
        fields.insert(HERE.into(), Value::Object(Fields::new()));
    }
}

/// Adds what is below a step; replaces what was there.
pub(super) fn add_step(fields: &mut Fields, step: String, below: Fields) {
    fields.insert(step, Value::Object(below));
}

/// What is below a step.
pub(super) fn below<'f>(fields: &'f Fields, step: &str) -> Option<&'f Fields> {
    fields.get(step).and_then(Value::as_object)
}

/// The steps from here.
pub(super) fn steps(fields: &Fields) -> impl Iterator<Item = (&String, &Fields)> {
    fields
        .iter()
        .filter_map(|(step, below)| Some((step, below.as_object()?)))
        .filter(|(step, _)| *step != HERE)
}

/// Adds the fields of another set.
pub(super) fn unite(fields: &mut Fields, others: Fields) {
    for (step, other) in others {
        let Value::Object(other) = other else { continue };
        match fields.get_mut(&step) {
            Some(Value::Object(_)) if step == HERE => {}
            Some(Value::Object(ours)) => {
                let member = is_member(ours) || is_member(&other);
                unite(ours, other);
                if member {
                    add_here(ours);
                }
            }
            Some(_) | None => add_step(fields, step, other),
        }
    }
}

/// Takes out the fields of another set.
pub(super) fn subtract(fields: &mut Fields, others: &Fields) {
    for (step, other) in steps(others) {
        if let Some(Value::Object(ours)) = fields.get_mut(step)
            && !subtract_below(ours, other)
        {
            fields.remove(step);
        }
    }
}

/// Whether something is left.
fn subtract_below(fields: &mut Fields, others: &Fields) -> bool {
    let stays = is_member(fields) && !is_member(others);
    subtract(fields, others);
    fields.remove(HERE);
    if fields.is_empty() {
        return stays;
    }
    if stays {
        add_here(fields);
    }
    true
}

/// The fields that are in both sets.
pub(super) fn intersection(fields: &Fields, others: &Fields) -> Fields {
    let mut both = Fields::new();
    for (step, other) in steps(others) {
        let Some(ours) = below(fields, step) else { continue };
        let mut common = intersection(ours, other);
        let member = is_member(ours) && is_member(other);
        if member {
            add_here(&mut common);
        }
        if member || !common.is_empty() {
            add_step(&mut both, step.clone(), common);
        }
    }
    both
}

/// The paths of a set as messages show them: at each level what is in the set comes before what is further below.
pub(super) fn paths(fields: &Fields) -> Vec<String> {
    let mut found = Vec::new();
    collect_paths(fields, "", &mut found);
    found
}

fn collect_paths(fields: &Fields, prefix: &str, found: &mut Vec<String>) {
    let all: Vec<(String, &Fields)> =
        steps(fields).map(|(step, below)| (format!("{prefix}{}", shown(step)), below)).collect();
    found.extend(all.iter().filter(|(_, below)| is_member(below)).map(|(path, _)| path.clone()));
    for (path, below) in all {
        collect_paths(below, &path, found);
    }
}

/// A step as messages show it: `.name`, `[key="value"]`, `[="value"]`.
pub(super) fn shown(step: &str) -> String {
    let (kind, rest) = step.split_once(':').unwrap_or((step, ""));
    match (kind, serde_json::from_str(rest)) {
        ("k", Ok(Value::Object(keys))) => {
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect();
            format!("[{}]", keys.join(","))
        }
        ("v", Ok(value)) => format!("[={}]", scalar(&value)),
        _ => format!(".{rest}"),
    }
}

fn scalar(value: &Value) -> String {
    if value.is_object() || value.is_array() { String::new() } else { value.to_string() }
}

/// Whether this is a set at all: clients may write what they like into `managedFields`.
pub(super) fn is_valid(fields: &Fields) -> bool {
    fields.iter().all(|(step, below)| {
        let is_step = match step.split_once(':') {
            None => step == HERE,
            Some(("k", keys)) => matches!(serde_json::from_str(keys), Ok(Value::Object(_))),
            Some(("v", value)) => serde_json::from_str::<Value>(value).is_ok(),
            Some((kind, _)) => kind.len() == 1,
        };
        is_step && below.as_object().is_some_and(is_valid)
    })
}
