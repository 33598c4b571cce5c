//! Label selectors as objects hold them: `matchLabels` and `matchExpressions`. Never here: selectors of requests.

use serde_json::Value;

/// Labels that are asked for. One without requirements is met by everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    label: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Selector {
    /// Reads a selector. `None`: there is none, or one that means nothing; it is met by nothing.
    pub(crate) fn parse(value: &Value) -> Option<Selector> {
        let selector = value.as_object()?;
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let mut all = Vec::new();
        for (label, value) in labels {
            all.push(Requirement { label: label.clone(), test: Test::In(vec![value.as_str()?.to_owned()]) });
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        for expression in expressions {
            all.push(requirement(expression)?);
        }
        Some(Selector(all))
    }

    /// Whether labels meet all requirements.
    pub(crate) fn matches(&self, labels: &[(String, String)]) -> bool {
        self.0.iter().all(|Requirement { label, test }| {
            let value = labels.iter().find(|(name, _)| name == label).map(|(_, value)| value);
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
            }
        })
    }
}

fn requirement(expression: &Value) -> Option<Requirement> {
    let values = || -> Option<Vec<String>> {
        let values = expression["values"].as_array()?;
        values.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let test = match expression["operator"].as_str()? {
        "In" => Test::In(values()?),
        "NotIn" => Test::NotIn(values()?),
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        _ => return None,
    };
    Some(Requirement { label: expression["key"].as_str()?.to_owned(), test })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_met_by_labels_that_meet_all_its_requirements() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        let rows = [
            (json!({}), "", true),
            (json!({"matchLabels": {"a": "1"}}), "a=1", true),
            (json!({"matchLabels": {"a": "1"}}), "a=2", false),
            (json!({"matchLabels": {"a": "1", "b": "2"}}), "a=1", false),
            (expression("In", &["1", "2"]), "a=2", true),
            (expression("In", &["1", "2"]), "b=2", false),
            (expression("NotIn", &["1"]), "a=1", false),
            (expression("NotIn", &["1"]), "b=1", true),
            (expression("Exists", &[]), "a=1", true),
            (expression("Exists", &[]), "b=1", false),
            (expression("DoesNotExist", &[]), "b=1", true),
            (expression("DoesNotExist", &[]), "a=1", false),
        ];
        for (selector, labels, expected) in rows {
            let labels: Vec<(String, String)> =
                labels.split_once('=').map(|(name, value)| (name.into(), value.into())).into_iter().collect();
            assert_eq!(
                Selector::parse(&selector).unwrap().matches(&labels),
                expected,
                "{selector} {labels:?}"
            );
        }
    }

    #[test]
    fn what_is_no_selector_is_none() {
        for value in [json!(null), json!({"matchExpressions": [{"key": "a", "operator": "Like"}]})] {
            assert_eq!(Selector::parse(&value), None, "{value}");
        }
    }
}
