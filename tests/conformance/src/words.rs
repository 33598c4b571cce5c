//! The words of a case: what `${…}` stands for. Never here: what is done with the texts.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::{Map, Value};

/// A map with this key is the named one with the rest of the map laid over it.
const LIKE: &str = "<like>";

/// The map under this key is laid over the others.
const OVER: &str = "<over>";

/// Deep enough for a path that names a namespace that names a case; a word that contains itself is not.
const DEPTH: u32 = 8;

/// What is known in a case: definitions, the row, what was saved. Later ones hide earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(BTreeMap<String, Value>);

impl Words {
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    pub(crate) fn extend(&mut self, words: &Map<String, Value>) {
        self.0.extend(words.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// A text with every `${…}` replaced.
    pub(crate) fn text(&self, text: &str) -> anyhow::Result<String> {
        self.text_at(text, 0)
    }

    /// A value with every `${…}` replaced. A string that is nothing else becomes the value itself, of whatever type.
    pub(crate) fn value(&self, value: &Value) -> anyhow::Result<Value> {
        self.value_at(value, 0)
    }

    fn value_at(&self, value: &Value, depth: u32) -> anyhow::Result<Value> {
        match value {
            Value::String(text) => match whole_word(text) {
                Some(word) => self.word(word, depth),
                None => Ok(self.text_at(text, depth)?.into()),
            },
            Value::Array(items) => items.iter().map(|item| self.value_at(item, depth)).collect(),
            Value::Object(fields) => {
                let mut filled = match fields.get(LIKE) {
                    Some(Value::String(name)) => self.word(name, depth)?,
                    Some(other) => bail!("`{LIKE}` names a definition, {other} is none"),
                    None => Value::Object(Map::new()),
                };
                let target = filled.as_object_mut().context("only a map can be the base of a map")?;
                for (key, field) in fields.iter().filter(|(key, _)| *key != LIKE) {
                    match (key == OVER, self.value_at(field, depth)?) {
                        (false, value) => overlay(target, self.text_at(key, depth)?, value),
                        (true, Value::Object(above)) => {
                            above.into_iter().for_each(|(key, value)| overlay(target, key, value));
                        }
                        (true, other) => bail!("only a map can be laid over a map, not {other}"),
                    }
                }
                Ok(filled)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
        }
    }

    fn word(&self, word: &str, depth: u32) -> anyhow::Result<Value> {
        if depth > DEPTH {
            bail!("`{word}` is defined by itself");
        }
        let (name, path) = word.split_once('.').unwrap_or((word, ""));
        let value = self.0.get(name).with_context(|| format!("nothing is called `{name}` here"))?;
        if path.is_empty() {
            return self.value_at(value, depth + 1);
        }
        let part = value.pointer(&format!("/{}", path.replace('.', "/")));
        self.value_at(part.with_context(|| format!("`{name}` has no `{path}`"))?, depth + 1)
    }

    fn text_at(&self, text: &str, depth: u32) -> anyhow::Result<String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (word, after) =
                after.split_once('}').with_context(|| format!("`${{` never ends in `{text}`"))?;
            filled.push_str(before);
            match self.word(word, depth)? {
                Value::String(value) => filled.push_str(&value),
                other => filled.push_str(&other.to_string()),
            }
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

fn whole_word(text: &str) -> Option<&str> {
    let word = text.strip_prefix("${")?.strip_suffix('}')?;
    (!word.contains('}')).then_some(word)
}

/// Maps are merged, everything else is replaced; null takes away.
fn overlay(target: &mut Map<String, Value>, key: String, value: Value) {
    match (target.get_mut(&key), value) {
        (Some(Value::Object(below)), Value::Object(above)) => {
            for (key, value) in above {
                overlay(below, key, value);
            }
        }
        (Some(_), Value::Null) => {
            target.remove(&key);
        }
        (_, value) => {
            target.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words() -> Words {
        let mut words = Words::default();
        words.set("ns", "case-1");
        words.set("maps", "/namespaces/${ns}/configmaps");
        words.set("count", 3);
        words.set("pod", json!({"metadata": {"name": "a", "labels": {"x": "${count}"}}, "spec": {}}));
        words.set("loop", "${loop}");
        words
    }

    #[test]
    fn words_are_replaced_in_texts_keys_and_values() {
        for (given, wanted) in [
            (json!("${maps}/a"), json!("/namespaces/case-1/configmaps/a")),
            (json!("${pod.metadata.name}"), json!("a")),
            (json!({"${ns}": ["${count}", "n=${count}"]}), json!({"case-1": [3, "n=3"]})),
            (
                json!({"<like>": "pod", "metadata": {"name": "b"}, "spec": null}),
                json!({"metadata": {"name": "b", "labels": {"x": 3}}}),
            ),
        ] {
            assert_eq!(words().value(&given).unwrap(), wanted);
        }
    }

    #[test]
    fn a_word_that_nobody_knows_or_that_contains_itself_is_an_error() {
        for text in ["${nobody}", "${loop}", "${open"] {
            assert!(words().text(text).is_err(), "{text}");
        }
    }
}
