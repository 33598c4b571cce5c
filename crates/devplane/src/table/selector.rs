//! Label selectors as text. Never here: what a selector selects.

use serde_json::Value;

pub(super) const NONE: &str = "<none>";

/// Labels of a map: `a=1,b=2`.
pub(super) fn labels(labels: &Value) -> String {
    or_none(pairs(labels).into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

/// A selector with its expressions, by key.
pub(super) fn selector(selector: &Value) -> String {
    let mut parts = pairs(&selector["matchLabels"]);
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".into(),
        };
        parts.push((key, text));
    }
    parts.sort_by_key(|(key, _)| *key);
    or_none(parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

/// A text, or what is shown where there is none.
pub(super) fn or_none(text: String) -> String {
    if text.is_empty() { NONE.into() } else { text }
}

fn pairs(labels: &Value) -> Vec<(&str, String)> {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect()
}
