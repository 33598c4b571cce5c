//! Whether an answer is as expected: what is wanted is a part of what is got. Never here: where answers come from.

use regex::Regex;
use serde_json::{Map, Value};

use crate::words::Words;

/// Compares, and saves what `<save …>` names.
pub(crate) struct Expect<'a> {
    words: &'a mut Words,
    /// A line for each difference: path, wanted, got.
    pub differences: Vec<String>,
}

impl<'a> Expect<'a> {
    pub(crate) fn new(words: &'a mut Words) -> Self {
        Expect { words, differences: Vec::new() }
    }

    /// Notes every place where `got` lacks what is wanted. The words in `wanted` are replaced already.
    pub(crate) fn part(&mut self, path: &str, wanted: &Value, got: Option<&Value>) {
        match wanted {
            Value::String(text) => self.text(path, text, got),
            Value::Object(fields) => match matcher(fields) {
                Some((name, argument)) => self.collection(path, name, argument, got),
                None => self.object(path, fields, got),
            },
            Value::Array(items) => self.list(path, items, got),
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                if got != Some(wanted) {
                    self.differ(path, &wanted.to_string(), got);
                }
            }
        }
    }

    /// Whether it is so, without noting or saving anything.
    fn holds(&self, wanted: &Value, got: &Value) -> bool {
        let mut words = self.words.clone();
        let mut trial = Expect::new(&mut words);
        trial.part("", wanted, Some(got));
        trial.differences.is_empty()
    }

    fn object(&mut self, path: &str, fields: &Map<String, Value>, got: Option<&Value>) {
        // A map of which everything must be absent may be absent itself.
        let nothing = Map::new();
        let found = match got {
            Some(Value::Object(found)) => found,
            None if fields.values().all(|field| field == "<absent>") && !fields.is_empty() => &nothing,
            Some(_) | None => return self.differ(path, "a map", got),
        };
        for (key, field) in fields {
            self.part(&join(path, key), field, found.get(key));
        }
    }

    fn list(&mut self, path: &str, items: &[Value], got: Option<&Value>) {
        let Some(Value::Array(found)) = got else { return self.differ(path, "a list", got) };
        if found.len() != items.len() {
            self.differ(path, &format!("a list of {}: {}", items.len(), Value::from(items)), got);
            return;
        }
        for (index, (item, found)) in items.iter().zip(found).enumerate() {
            self.part(&format!("{path}[{index}]"), item, Some(found));
        }
    }

    fn text(&mut self, path: &str, wanted: &str, got: Option<&Value>) {
        let plain = match got {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let argument = |name: &str| wanted.strip_prefix(name).and_then(|rest| rest.strip_suffix('>'));
        let is_so = if wanted == "<any>" {
            got.is_some_and(|value| !value.is_null())
        } else if wanted == "<absent>" {
            got.is_none()
        } else if wanted == "<empty>" {
            got.is_none_or(is_zero)
        } else if let Some(name) = argument("<save ") {
            if let Some(value) = got {
                self.words.set(name, value.clone());
            }
            got.is_some()
        } else if let Some(other) = argument("<not ") {
            got.is_some() && plain != other
        } else if let Some(least) = argument("<above ") {
            matches!((least.parse::<u64>(), plain.parse::<u64>()), (Ok(least), Ok(is)) if is > least)
        } else if let Some(piece) = argument("<has ") {
            plain.contains(piece)
        } else if let Some(pattern) = wanted.strip_prefix("~ ") {
            match Regex::new(&format!("(?m){pattern}")) {
                Ok(pattern) => got.is_some() && pattern.is_match(&plain),
                Err(error) => return self.differ(path, &error.to_string(), got),
            }
        } else {
            got.is_some_and(Value::is_string) && plain == wanted
        };
        if !is_so {
            self.differ(path, &Value::from(wanted).to_string(), got);
        }
    }

    fn collection(&mut self, path: &str, name: &str, argument: &Value, got: Option<&Value>) {
        let items = |value: Option<&Value>| match value {
            Some(Value::Array(items)) => items.clone(),
            Some(_) | None => Vec::new(),
        };
        let (found, wanted) = (items(got), items(Some(argument)));
        let is_in = |wanted: &Value| found.iter().any(|item| self.holds(wanted, item));
        let is_so = match name {
            "<has>" => wanted.iter().all(is_in),
            "<lacks>" => !wanted.iter().any(is_in),
            "<every>" => !found.is_empty() && found.iter().all(|item| self.holds(argument, item)),
            "<count>" => argument.as_u64() == u64::try_from(found.len()).ok(),
            "<any order>" => wanted.len() == found.len() && self.pairs_up(&wanted, found.clone()),
            "<only>" => {
                self.part(path, argument, got);
                let keys = |value: Option<&Value>| {
                    value.and_then(Value::as_object).map(|map| map.keys().cloned().collect::<Vec<_>>())
                };
                let mut known = keys(Some(argument)).unwrap_or_default();
                known.retain(|key| argument[key] != "<absent>");
                keys(got).unwrap_or_default() == known
            }
            unknown => return self.differ(path, &format!("a matcher that there is, not `{unknown}`"), got),
        };
        if !is_so {
            self.differ(path, &format!("{name} {argument}"), got);
        }
    }

    fn pairs_up(&self, wanted: &[Value], mut found: Vec<Value>) -> bool {
        wanted.iter().all(|wanted| {
            let place = found.iter().position(|item| self.holds(wanted, item));
            place.map(|place| found.remove(place)).is_some()
        })
    }

    fn differ(&mut self, path: &str, wanted: &str, got: Option<&Value>) {
        let got = got.map_or_else(|| "nothing".to_owned(), |value| shortened(&value.to_string()));
        let path = if path.is_empty() { "all of it" } else { path };
        self.differences.push(format!("{path}: wanted {wanted}, got {got}"));
    }
}

/// Text that is short enough for one line of a report.
pub(crate) fn shortened(text: &str) -> String {
    const LIMIT: usize = 1200;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Values that servers leave out or send as they like: clients read both as the same.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn matcher(fields: &Map<String, Value>) -> Option<(&str, &Value)> {
    let (name, argument) = fields.iter().next()?;
    (fields.len() == 1 && name.starts_with('<')).then_some((name.as_str(), argument))
}

fn join(path: &str, key: &str) -> String {
    let key = if key.contains(['.', '/']) { format!("[{key}]") } else { key.to_owned() };
    match (path.is_empty(), key.starts_with('[')) {
        (true, _) => key,
        (false, true) => format!("{path}{key}"),
        (false, false) => format!("{path}.{key}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differences(wanted: &Value, got: &Value) -> Vec<String> {
        let mut words = Words::default();
        let mut expect = Expect::new(&mut words);
        expect.part("", wanted, Some(got));
        expect.differences
    }

    #[test]
    fn a_part_of_the_answer_is_enough() {
        let got = json!({"a": 1, "b": {"c": "text", "d": [1, 2]}, "e": null, "n": "12"});
        for wanted in [
            json!({"a": 1}),
            json!({"b": {"c": "~ ^te.t$", "d": [1, 2]}, "x": "<absent>", "y": {"z": "<absent>"}}),
            json!({"e": "<empty>", "f": "<empty>"}),
            json!({"b": {"c": "<any>", "d": {"<has>": [2]}}, "e": null}),
            json!({"b": {"c": "<not other>", "d": {"<any order>": [2, 1]}}, "n": "<above 11>"}),
            json!({"b": {"<only>": {"c": "<has ex>", "d": {"<count>": 2}}}}),
            json!({"b": {"d": {"<every>": "~ [12]"}}}),
        ] {
            assert_eq!(differences(&wanted, &got), Vec::<String>::new(), "{wanted}");
        }
    }

    #[test]
    fn a_difference_says_where_it_is_and_what_was_wanted() {
        let got = json!({"a": 1, "b": {"c": "text", "d": [1, 2]}, "e": null});
        for (wanted, line) in [
            (json!({"a": 2}), "a: wanted 2, got 1"),
            (json!({"a": "1"}), r#"a: wanted "1", got 1"#),
            (json!({"b": {"x.y/z": "<any>"}}), r#"b[x.y/z]: wanted "<any>", got nothing"#),
            (json!({"b": {"c": "<absent>"}}), r#"b.c: wanted "<absent>", got "text""#),
            (json!({"b": {"d": [1]}}), "b.d: wanted a list of 1: [1], got [1,2]"),
            (json!({"b": {"d": {"<lacks>": [1]}}}), "b.d: wanted <lacks> [1], got [1,2]"),
            (json!({"b": {"d": [1, 3]}}), "b.d[1]: wanted 3, got 2"),
            (
                json!({"b": {"<only>": {"c": "text"}}}),
                r#"b: wanted <only> {"c":"text"}, got {"c":"text","d":[1,2]}"#,
            ),
            (json!({"e": "<any>"}), r#"e: wanted "<any>", got null"#),
        ] {
            assert_eq!(differences(&wanted, &got), [line], "{wanted}");
        }
    }
}
