//! Selectors of lists and watches: the text forms, and what they match. Never here: where labels and fields come from.

use std::fmt;

use serde_json::Value;

use crate::kinds::{Kind, Selected};
use crate::status::ApiError;
use crate::storage::Object;

const NAME: &str = "metadata.name";
const NAMESPACE: &str = "metadata.namespace";

/// A label selector. Without requirements it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Label>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Label {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

/// A field selector: paths with the value that they must have, or must not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(String, bool, String)>);

impl Labels {
    /// Reads the text form, such as `a=b,c in (d,e),!f`.
    pub(crate) fn parse(text: &str) -> Result<Labels, ApiError> {
        let requirements = split(text).into_iter().filter(|part| !part.trim().is_empty());
        requirements.map(requirement).collect::<Result<_, _>>().map(Labels)
    }

    /// Reads the object form (`matchLabels`, `matchExpressions`); `None` if there is none, or it is not valid.
    pub(crate) fn of_object(selector: &Value) -> Option<Labels> {
        selector.as_object()?;
        let equal = selector["matchLabels"].as_object().into_iter().flatten();
        let mut all: Vec<Label> = equal
            .map(|(key, value)| {
                Some(Label { key: key.clone(), test: Test::In(vec![value.as_str()?.into()]) })
            })
            .collect::<Option<_>>()?;
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let values = expression["values"].as_array().into_iter().flatten();
            let values: Vec<String> = values.filter_map(|value| value.as_str().map(Into::into)).collect();
            let test = match (expression["operator"].as_str()?, values.is_empty()) {
                ("In", false) => Test::In(values),
                ("NotIn", false) => Test::NotIn(values),
                ("Exists", true) => Test::Exists,
                ("DoesNotExist", true) => Test::Absent,
                _ => return None,
            };
            all.push(Label { key: expression["key"].as_str()?.into(), test });
        }
        Some(Labels(all))
    }

    /// Whether it has no requirement.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether labels meet every requirement.
    pub(crate) fn matches(&self, labels: &[(String, String)]) -> bool {
        self.0.iter().all(|Label { key, test }| {
            let value = labels.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            let number = || value.and_then(|value| value.parse::<i64>().ok());
            match test {
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::Above(limit) => number().is_some_and(|number| number > *limit),
                Test::Below(limit) => number().is_some_and(|number| number < *limit),
            }
        })
    }
}

impl fmt::Display for Labels {
    /// The text form, as the scale of a workload carries it: sorted by key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&Label> = self.0.iter().collect();
        sorted.sort_by(|a, b| a.key.cmp(&b.key));
        for (at, Label { key, test }) in sorted.into_iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match test {
                Test::In(values) if values.len() == 1 => write!(f, "{comma}{key}={}", values[0])?,
                Test::In(values) => write!(f, "{comma}{key} in ({})", values.join(","))?,
                Test::NotIn(values) => write!(f, "{comma}{key} notin ({})", values.join(","))?,
                Test::Exists => write!(f, "{comma}{key}")?,
                Test::Absent => write!(f, "{comma}!{key}")?,
                Test::Above(limit) => write!(f, "{comma}{key}>{limit}")?,
                Test::Below(limit) => write!(f, "{comma}{key}<{limit}")?,
            }
        }
        Ok(())
    }
}

/// Splits at commas that are not in parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn requirement(part: &str) -> Result<Label, ApiError> {
    let part = part.trim();
    let (key, test) = if let Some(key) = part.strip_prefix('!') {
        (key.trim(), Test::Absent)
    } else if let Some((key, operator, values)) = set_based(part) {
        let values = values_of(values).ok_or_else(|| bad(part, "a list of values in parentheses"))?;
        (key, if operator == "in" { Test::In(values) } else { Test::NotIn(values) })
    } else if let Some((key, value)) = part.split_once("!=") {
        (key.trim(), Test::NotIn(vec![value.trim().into()]))
    } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (key.trim(), Test::In(vec![value.trim().into()]))
    } else if let Some((key, value)) = part.split_once('>') {
        (key.trim(), Test::Above(value.trim().parse().map_err(|_| bad(part, "an integer"))?))
    } else if let Some((key, value)) = part.split_once('<') {
        (key.trim(), Test::Below(value.trim().parse().map_err(|_| bad(part, "an integer"))?))
    } else {
        (part, Test::Exists)
    };
    if !is_key(key) {
        return Err(bad(part, "a label key"));
    }
    if let Test::In(values) | Test::NotIn(values) = &test
        && let Some(value) = values.iter().find(|value| !value.is_empty() && !is_name(value))
    {
        return Err(bad(value, "a label value"));
    }
    Ok(Label { key: key.into(), test })
}

/// `key in (a,b)` and `key notin (a,b)`.
fn set_based(part: &str) -> Option<(&str, &str, &str)> {
    let (key, rest) = part.split_once(char::is_whitespace)?;
    let rest = rest.trim_start();
    let (operator, values) =
        rest.split_at_checked(rest.find(|letter: char| !letter.is_ascii_lowercase())?)?;
    matches!(operator, "in" | "notin").then(|| (key, operator, values.trim()))
}

fn values_of(text: &str) -> Option<Vec<String>> {
    let inside = text.strip_prefix('(')?.strip_suffix(')')?;
    Some(inside.split(',').map(|value| value.trim().to_owned()).collect())
}

fn is_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    is_name(name) && prefix.is_none_or(|prefix| !prefix.is_empty() && crate::metadata::is_subdomain(prefix))
}

/// Letters, digits and `-_.`, at most 63, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let is_edge = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    text.len() <= 63
        && is_edge(text.chars().next())
        && is_edge(text.chars().next_back())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
}

fn bad(found: &str, expected: &str) -> ApiError {
    ApiError::bad_request(format!("unable to parse requirement: found '{found}', expected: {expected}"))
}

impl Fields {
    /// Whether it has no requirement.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the text form, such as `status.phase!=Running,spec.nodeName=a`.
    pub(crate) fn parse(text: &str) -> Result<Fields, ApiError> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let one = |part: &str| {
            let (path, is_equal, value) = if let Some((path, value)) = part.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, true, value)
            } else {
                let message = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(ApiError::bad_request(message));
            };
            Ok((path.to_owned(), is_equal, value.to_owned()))
        };
        parts.map(one).collect::<Result<_, _>>().map(Fields)
    }

    /// The same with the paths under which a kind keeps them. Refuses what it cannot be selected by.
    pub(crate) fn bind(self, kind: &Kind) -> Result<Fields, ApiError> {
        let bind = |(label, is_equal, value): (String, bool, String)| {
            let path = match kind.selected(&label).map_err(ApiError::bad_request)? {
                Selected::Name => NAME,
                Selected::Namespace => NAMESPACE,
                Selected::Field(path) => path,
            };
            Ok((path.to_owned(), is_equal, value))
        };
        self.0.into_iter().map(bind).collect::<Result<_, _>>().map(Fields)
    }

    /// Whether an object has what is wanted.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|(path, is_equal, wanted)| {
            let value = match &**path {
                NAME => &object.key.name,
                NAMESPACE => &object.key.namespace,
                _ => object.fields.iter().find(|(name, _)| name == path).map_or(wanted, |(_, value)| value),
            };
            (value == wanted) == *is_equal
        })
    }

    /// Only the object of this name.
    pub(crate) fn and_name(mut self, name: &str) -> Fields {
        self.0.push((NAME.into(), true, name.into()));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_selector_matches_what_it_says() {
        let labels = [("a", "1"), ("b", "x"), ("g.io/c", "")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        for (text, wanted) in [
            ("", true),
            ("a=1", true),
            ("a==1,b=x", true),
            ("a!=1", false),
            ("z!=1", true),
            ("a in (1,2),b notin (y)", true),
            ("a in (2, 3)", false),
            ("z notin (1)", true),
            ("a,!z", true),
            ("!a", false),
            ("g.io/c", true),
            ("g.io/c=", true),
            ("a>0", true),
            ("a<1", false),
            ("b>0", false),
        ] {
            assert_eq!(Labels::parse(text).unwrap().matches(&labels), wanted, "{text}");
        }
        for bad in ["a in 1", "a=b c", "-a=1", "a>x", "a=-", "/a"] {
            assert_eq!(Labels::parse(bad).unwrap_err().code, 400, "{bad}");
        }
    }

    #[test]
    fn a_field_selector_needs_an_operator() {
        assert!(Fields::parse("metadata.name").is_err());
        let wanted = vec![("metadata.name".into(), true, "a".into()), ("x".into(), false, "b".into())];
        assert_eq!(Fields::parse("metadata.name=a,x!=b").unwrap(), Fields(wanted));
    }
}
