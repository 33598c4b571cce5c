//! The order of a list after a strategic merge patch. Never here: what is in the list.

use serde_json::Value;

use crate::patch::plain;
use crate::patch::strategic::DIRECTIVE;
use crate::status::ApiError;

/// How items of a list are told apart: by a key, or as they are.
#[derive(Clone, Copy)]
pub(super) struct Same<'a> {
    pub key: Option<&'a str>,
}

impl Same<'_> {
    /// What tells an item from others.
    pub(super) fn mark(self, item: &Value) -> Option<&Value> {
        self.key.map_or(Some(item), |key| item.get(key))
    }

    /// Where an item like this one is in a list.
    pub(super) fn position(self, items: &[Value], item: &Value) -> Option<usize> {
        let mark = self.mark(item)?;
        items.iter().position(|other| self.mark(other) == Some(mark))
    }
}

/// Puts a merged list in order. Items that `wanted` names are in its order, the rest as it was in `before`. A rest item
/// comes before a wanted one if it was so before.
pub(super) fn arrange(same: Same<'_>, merged: Vec<Value>, wanted: &[Value], before: &[Value]) -> Vec<Value> {
    let (mut named, mut rest): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| same.position(wanted, item).is_some());
    named.sort_by_key(|item| same.position(wanted, item));
    rest.sort_by_key(|item| same.position(before, item));
    let mut named = named.into_iter().peekable();
    let mut arranged = Vec::with_capacity(named.len() + rest.len());
    for item in rest {
        let place = same.position(before, &item);
        let precedes = |next: &Value| match (place, same.position(before, next)) {
            (Some(place), Some(next)) => place < next,
            (None, _) | (_, None) => false,
        };
        while let Some(next) = named.next_if(|next| !precedes(next)) {
            arranged.push(next);
        }
        arranged.push(item);
    }
    arranged.extend(named);
    arranged
}

/// A patch that says in which order a list shall be must itself be in that order.
pub(super) fn check_order(same: Same<'_>, patch: &[Value], wanted: &[Value]) -> Result<(), ApiError> {
    let deletes = |item: &Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    let mut items = patch.iter().filter(|item| !deletes(item)).peekable();
    // A directive after the last wanted item is one too many. Kept for compatibility.
    for place in wanted {
        while items.next_if(|item| item.get(DIRECTIVE).is_some()).is_some() {}
        items.next_if(|item| same.mark(item) == same.mark(place));
    }
    if wanted.is_empty() || items.peek().is_none() {
        return Ok(());
    }
    let (patch, wanted) = (plain(&Value::Array(patch.to_vec())), plain(&Value::Array(wanted.to_vec())));
    let message =
        format!("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{wanted}\n");
    Err(ApiError::new(500, "", message))
}
