//! Merge patches: the least that turns one value into another.

use serde::Serialize;
use serde_json::{Map, Value};

/// The JSON merge patch (RFC 7386) from `old` to `new`; `None` if they are equal. Lists are replaced whole.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => {
                        if let Some(change) = diff(before, value) {
                            patch.insert(key.clone(), change);
                        }
                    }
                    None => {
                        patch.insert(key.clone(), value.clone());
                    }
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (old, new) if old == new => None,
        (_, new) => Some(new.clone()),
    }
}

/// The merge patch between two values of a wire type.
pub fn between<T: Serialize>(old: &T, new: &T) -> Option<Value> {
    diff(&tree(old), &tree(new))
}

fn tree(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("wire types serialise: their maps have text keys")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_holds_only_what_changed() {
        let old = json!({"a": 1, "b": {"c": 1, "d": [1]}, "gone": true});
        let new = json!({"a": 1, "b": {"c": 2, "d": [1]}, "new": 3});
        assert_eq!(diff(&old, &new), Some(json!({"b": {"c": 2}, "gone": null, "new": 3})));
        assert_eq!(diff(&old, &old), None);
    }

    #[test]
    fn lists_are_replaced_whole() {
        assert_eq!(diff(&json!({"l": [1, 2]}), &json!({"l": [1]})), Some(json!({"l": [1]})));
    }
}
