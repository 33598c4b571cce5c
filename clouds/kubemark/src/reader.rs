//! Reads JSON objects field by field and complains by path. Never here: what a field means.

use std::collections::BTreeMap;

use mapi_api::duration::{self, Span};
use mapi_cloud::{Finding, Findings};
use serde_json::{Map, Value};

/// One JSON object being read. What was not asked for is an unknown field.
pub struct Fields<'a> {
    path: String,
    map: Map<String, Value>,
    findings: &'a mut Findings,
}

impl<'a> Fields<'a> {
    /// Reads the object at a path, which is empty for the root. Anything else than an object is complained about and read
    /// as an empty one.
    pub fn of(path: &str, value: Value, findings: &'a mut Findings) -> Self {
        let map = match value {
            Value::Object(map) => map,
            other => {
                findings.0.push(Finding::error(path, show(&other), "must be an object"));
                Map::new()
            }
        };
        Self { path: path.into(), map, findings }
    }

    /// Path of a field.
    pub fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    /// Complains about a field.
    pub fn complain(&mut self, key: &str, value: impl Into<String>, message: impl Into<String>) {
        let finding = Finding::error(self.at(key), value, message);
        self.findings.0.push(finding);
    }

    /// Mentions something about a field that does not stand in the way.
    pub fn mention(&mut self, key: &str, value: impl Into<String>, message: impl Into<String>) {
        let finding = Finding::warning(self.at(key), value, message);
        self.findings.0.push(finding);
    }

    /// The value of a field; null counts as missing.
    pub fn value(&mut self, key: &str) -> Option<Value> {
        self.map.remove(key).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&mut self, key: &str) -> Option<String> {
        match self.value(key)? {
            Value::String(text) => Some(text),
            other => self.refuse(key, &other, "must be a text"),
        }
    }

    /// A text out of a list, as the entry that it names.
    pub fn word<T: Copy>(&mut self, key: &str, allowed: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = allowed.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = allowed.iter().map(|(word, _)| *word).collect();
            self.complain(key, text, format!("must be one of {}", words.join(", ")));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// True or false.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        match self.value(key)? {
            Value::Bool(flag) => Some(flag),
            other => self.refuse(key, &other, "must be true or false"),
        }
    }

    /// A whole number that is not negative.
    pub fn count(&mut self, key: &str) -> Option<u64> {
        let value = self.value(key)?;
        match value.as_u64() {
            Some(count) => Some(count),
            None => self.refuse(key, &value, "must be a whole number from 0"),
        }
    }

    /// A whole number that is not negative and not huge.
    pub fn small_count(&mut self, key: &str) -> Option<u32> {
        let count = self.count(key)?;
        let small = u32::try_from(count).ok();
        if small.is_none() {
            self.complain(key, count.to_string(), format!("must be at most {}", u32::MAX));
        }
        small
    }

    /// A fraction from 0 to 1.
    pub fn share(&mut self, key: &str) -> Option<f64> {
        let value = self.value(key)?;
        match value.as_f64() {
            Some(share) if (0.0..=1.0).contains(&share) => Some(share),
            _ => self.refuse(key, &value, "must be a number from 0 to 1"),
        }
    }

    /// A duration as Go writes it.
    pub fn span(&mut self, key: &str) -> Option<Span> {
        let value = self.value(key)?;
        let text = value.as_str().unwrap_or_default();
        match duration::parse(text) {
            Ok(span) if span <= LONGEST => Some(Span(span)),
            Ok(_) => self.refuse(key, &value, "must be at most 8760h"),
            Err(_) => {
                self.refuse(key, &value, "must be a duration that is not negative, for example 300s or 1h30m")
            }
        }
    }

    /// Texts by name. Numbers are taken for their text: quantities are written both ways.
    pub fn texts(&mut self, key: &str) -> BTreeMap<String, String> {
        let entries = match self.value(key) {
            Some(Value::Object(entries)) => entries,
            Some(other) => return self.refuse(key, &other, "must be an object").unwrap_or_default(),
            None => return BTreeMap::new(),
        };
        let mut texts = BTreeMap::new();
        for (name, value) in entries {
            match value {
                Value::String(text) => _ = texts.insert(name, text),
                Value::Number(number) => _ = texts.insert(name, number.to_string()),
                Value::Null => {}
                other => self.complain(&format!("{key}.{name}"), show(&other), "must be a text"),
            }
        }
        texts
    }

    /// A list; `None` if there is none.
    pub fn list(&mut self, key: &str) -> Option<Vec<Value>> {
        match self.value(key)? {
            Value::Array(list) => Some(list),
            other => self.refuse(key, &other, "must be a list"),
        }
    }

    /// A text or a list of texts.
    pub fn text_list(&mut self, key: &str) -> Option<Vec<String>> {
        let list = match self.value(key)? {
            Value::Array(list) => list,
            text @ Value::String(_) => vec![text],
            other => return self.refuse(key, &other, "must be a list of texts"),
        };
        let mut texts = vec![];
        for (index, value) in list.into_iter().enumerate() {
            match value {
                Value::String(text) => texts.push(text),
                other => self.complain(&format!("{key}[{index}]"), show(&other), "must be a text"),
            }
        }
        Some(texts)
    }

    /// Reads an object within; a missing one is not read.
    pub fn within<T>(&mut self, key: &str, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
        let value = self.value(key)?;
        Some(self.nested(key, value, read))
    }

    /// Reads every object of a list.
    pub fn each<T>(
        &mut self,
        key: &str,
        mut read: impl FnMut(&mut Fields<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.list(key)?;
        let entries = list.into_iter().enumerate();
        Some(entries.filter_map(|(n, value)| self.nested(&format!("{key}[{n}]"), value, &mut read)).collect())
    }

    /// Reads an object that was taken out of a field already.
    pub fn nested<T>(&mut self, key: &str, value: Value, read: impl FnOnce(&mut Fields<'_>) -> T) -> T {
        let path = self.at(key);
        let mut fields = Fields::of(&path, value, self.findings);
        let result = read(&mut fields);
        fields.finish();
        result
    }

    /// Mentions the fields that nobody asked for.
    pub fn finish(mut self) {
        for key in std::mem::take(&mut self.map).into_iter().map(|(key, _)| key) {
            self.mention(&key, "", "is not known and has no effect");
        }
    }

    fn refuse<T>(&mut self, key: &str, value: &Value, message: &str) -> Option<T> {
        self.complain(key, show(value), message);
        None
    }
}

/// A year: longer waits are mistakes, and a limit keeps every sum of times within the calendar.
const LONGEST: std::time::Duration = std::time::Duration::from_secs(8760 * 3600);

/// A value for people, cut where it would fill the screen.
fn show(value: &Value) -> String {
    const MOST: usize = 80;
    let text = value.as_str().map_or_else(|| value.to_string(), Into::into);
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain(['…']).collect() }
}
