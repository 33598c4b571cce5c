//! The refusal of an apply that would change what others own. Never here: what a conflict is.

use serde_json::{Value, json};

use crate::managed::entries::{Entry, Operation};
use crate::managed::fields::{Fields, paths};
use crate::status::ApiError;

/// Fields, and the entry of who owns them.
pub(super) type Conflicts<'e> = Vec<(&'e Entry, Fields)>;

/// The refusal.
pub(super) fn refusal(mut conflicts: Conflicts<'_>) -> ApiError {
    conflicts.sort_by_cached_key(|(entry, _)| entry.identity());
    let conflicts: Vec<(String, Vec<String>)> =
        conflicts.iter().map(|(entry, fields)| (owner(entry), paths(fields))).collect();
    let count: usize = conflicts.iter().map(|(_, paths)| paths.len()).sum();
    let list = if let ([(owner, paths)], 1) = (&*conflicts, count) {
        format!("conflict with {owner}: {}", paths.concat())
    } else {
        let group = |(owner, paths): &(String, Vec<String>)| {
            let paths: Vec<String> = paths.iter().map(|path| format!("\n- {path}")).collect();
            format!("conflicts with {owner}:{}", paths.concat())
        };
        conflicts.iter().map(group).collect::<Vec<_>>().join("\n")
    };
    let causes: Value = conflicts
        .iter()
        .flat_map(|(owner, paths)| paths.iter().map(move |path| (owner, path)))
        .map(|(owner, path)| {
            json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {owner}"), "field": path })
        })
        .collect();
    let plural = if count == 1 { "" } else { "s" };
    let message = format!("Apply failed with {count} conflict{plural}: {list}");
    let mut error = ApiError::new(409, "Conflict", message);
    error.details.insert("causes".into(), causes);
    error
}

fn owner(entry: &Entry) -> String {
    let mut owner = Value::from(entry.manager()).to_string();
    if !entry.subresource().is_empty() {
        owner = format!("{owner} with subresource {}", Value::from(entry.subresource()));
    }
    if entry.is(Operation::Update) {
        owner = format!("{owner} using {}", entry.api_version());
    }
    owner
}
