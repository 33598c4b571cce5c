//! Label selectors: the wire form, the parsed form, matching, and the text that a server would print.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::machine::null_is_default;

/// Labels that an object must have. All requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(extend("x-kubernetes-map-type" = "atomic"))
)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be there with these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-type" = "atomic")))]
    pub match_expressions: Vec<Expression>,
}

/// One requirement on one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Expression {
    /// Label key.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(!default))]
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(!default))]
    pub operator: String,
    /// Values for In and NotIn; none for the other two.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[cfg_attr(feature = "schema", schemars(extend("x-kubernetes-list-type" = "atomic")))]
    pub values: Vec<String>,
}

/// Why a selector is not valid: a path inside it, the value there, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: invalid value {value:?}: {allowed}")]
pub struct SelectorError {
    /// Path below the selector, for example `matchExpressions[0].operator`.
    pub path: String,
    /// The value that is not allowed.
    pub value: String,
    /// What is allowed there.
    pub allowed: String,
}

/// A valid selector, its requirements sorted by key as the API server prints them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Equals(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Selector {
    /// Whether it has no requirement. What that means is up to the caller: nothing for a MachineSet, everything for a
    /// MachineHealthCheck.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels meet every requirement; an empty selector is met by everything.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|Requirement { key, test }| {
            let value = labels.get(key);
            match test {
                Test::Equals(wanted) => value == Some(wanted),
                Test::In(values) => value.is_some_and(|v| values.contains(v)),
                Test::NotIn(values) => value.is_none_or(|v| !values.contains(v)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
            }
        })
    }
}

impl fmt::Display for Selector {
    /// The form of the scale subresource's `labelSelector`: equal to what the server would print, `<none>` when empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("<none>");
        }
        for (i, Requirement { key, test }) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            match test {
                Test::Equals(value) => write!(f, "{key}={value}")?,
                Test::In(values) => write!(f, "{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", values.join(","))?,
                Test::Exists => f.write_str(key)?,
                Test::Absent => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

impl LabelSelector {
    /// Checks and sorts the requirements.
    pub fn parse(&self) -> Result<Selector, SelectorError> {
        let mut all = Vec::with_capacity(self.match_labels.len() + self.match_expressions.len());
        for (key, value) in &self.match_labels {
            check_key(key, || format!("matchLabels[{key}]"))?;
            check_value(value, || format!("matchLabels[{key}]"))?;
            all.push(Requirement { key: key.clone(), test: Test::Equals(value.clone()) });
        }
        for (i, expression) in self.match_expressions.iter().enumerate() {
            all.push(requirement(expression, i)?);
        }
        all.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Selector(all))
    }
}

fn requirement(expression: &Expression, i: usize) -> Result<Requirement, SelectorError> {
    let Expression { key, operator, values } = expression;
    let path = |field: &str| format!("matchExpressions[{i}].{field}");
    check_key(key, || path("key"))?;
    let mut sorted = values.clone();
    sorted.sort();
    let values_error = |allowed: &str| {
        Err(SelectorError { path: path("values"), value: values.join(","), allowed: allowed.into() })
    };
    let test = match operator.as_str() {
        "In" | "NotIn" => {
            if values.is_empty() {
                return values_error("at least one value for operator In or NotIn");
            }
            for value in values {
                check_value(value, || path("values"))?;
            }
            if operator == "In" { Test::In(sorted) } else { Test::NotIn(sorted) }
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            return values_error("no values for operator Exists or DoesNotExist");
        }
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        _ => {
            return Err(SelectorError {
                path: path("operator"),
                value: operator.clone(),
                allowed: "In, NotIn, Exists or DoesNotExist".into(),
            });
        }
    };
    Ok(Requirement { key: key.clone(), test })
}

fn check_key(key: &str, path: impl FnOnce() -> String) -> Result<(), SelectorError> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_is_valid = prefix.is_none_or(|p| {
        !p.is_empty()
            && p.len() <= 253
            && p.split('.').all(|part| {
                is_bounded(part, |c| c.is_ascii_lowercase() || c.is_ascii_digit())
                    && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            })
    });
    if prefix_is_valid && is_name(name) {
        return Ok(());
    }
    let allowed = "an optional DNS subdomain and a slash, then 1 to 63 letters, digits, '-', '_' or '.', \
                   beginning and ending with a letter or digit";
    Err(SelectorError { path: path(), value: key.into(), allowed: allowed.into() })
}

fn check_value(value: &str, path: impl FnOnce() -> String) -> Result<(), SelectorError> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    let allowed = "at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit";
    Err(SelectorError { path: path(), value: value.into(), allowed: allowed.into() })
}

fn is_name(text: &str) -> bool {
    text.len() <= 63
        && is_bounded(text, |c| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

fn is_bounded(text: &str, edge: impl Fn(char) -> bool) -> bool {
    text.chars().next().is_some_and(&edge) && text.chars().last().is_some_and(&edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(json: serde_json::Value) -> LabelSelector {
        serde_json::from_value(json).expect("selector")
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
    }

    // S33
    #[test]
    fn the_text_has_sorted_keys_and_sorted_values() {
        let parsed = selector(serde_json::json!({
            "matchLabels": {"b": "1"},
            "matchExpressions": [
                {"key": "role", "operator": "In", "values": ["worker", "infra"]},
                {"key": "a", "operator": "DoesNotExist"},
                {"key": "c", "operator": "Exists"},
                {"key": "d", "operator": "NotIn", "values": ["y", "x"]},
            ]
        }))
        .parse()
        .expect("valid");
        assert_eq!(parsed.to_string(), "!a,b=1,c,d notin (x,y),role in (infra,worker)");
        assert_eq!(Selector::default().to_string(), "<none>");
    }

    #[test]
    fn not_in_is_met_by_a_missing_label_and_in_is_not() {
        let not_in = selector(
            serde_json::json!({"matchExpressions": [{"key":"a","operator":"NotIn","values":["x"]}]}),
        );
        let is_in =
            selector(serde_json::json!({"matchExpressions": [{"key":"a","operator":"In","values":["x"]}]}));
        assert!(not_in.parse().expect("valid").matches(&labels(&[])));
        assert!(!is_in.parse().expect("valid").matches(&labels(&[])));
        assert!(is_in.parse().expect("valid").matches(&labels(&[("a", "x")])));
    }

    #[test]
    fn a_bad_selector_names_path_value_and_what_is_allowed() {
        let error =
            selector(serde_json::json!({"matchExpressions": [{"key":"a","operator":"Near"}]})).parse();
        assert_eq!(
            error.expect_err("bad operator").to_string(),
            r#"matchExpressions[0].operator: invalid value "Near": In, NotIn, Exists or DoesNotExist"#
        );
        assert!(selector(serde_json::json!({"matchLabels": {"-a": "x"}})).parse().is_err());
        assert!(selector(serde_json::json!({"matchLabels": {"a": "x y"}})).parse().is_err());
        assert!(
            selector(serde_json::json!({"matchExpressions": [{"key":"a","operator":"In"}]})).parse().is_err()
        );
    }
}
