//! Where in a JSON text a value is that does not fit. Never here: values, which may be secrets.

use std::fmt;

/// A value that does not fit the type that it was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Path of the value, for example `spec.taints[0].key`; empty for the text as a whole.
    pub path: String,
    /// What is wrong with it, as the parser says it, without a position in the text: that moves whenever anything in
    /// front of it does.
    pub message: String,
}

impl Misfit {
    /// What an error means for the text that was read.
    pub fn of(text: &str, error: &serde_json::Error) -> Self {
        let position = format!(" at line {} column {}", error.line(), error.column());
        let message = error.to_string();
        let message = message.strip_suffix(&position).unwrap_or(&message).to_owned();
        let before: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        Self { path: path_at(text, before + error.column()), message }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, message } = self;
        if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
    }
}

/// What the reader is within.
enum Level<'a> {
    Object { key: &'a str, is_value: bool },
    List { index: usize },
}

/// The path of the value that the first `end` bytes end in or with.
fn path_at(text: &str, end: usize) -> String {
    let mut levels = vec![];
    let (mut string, mut is_escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate().take(end) {
        if let Some(start) = string {
            if byte == b'"' && !is_escaped {
                string = None;
                if let Some(Level::Object { key, is_value: false }) = levels.last_mut() {
                    *key = &text[start..at];
                }
            }
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match (byte, levels.last_mut()) {
            (b'"', _) => string = Some(at + 1),
            (b'{', _) => levels.push(Level::Object { key: "", is_value: false }),
            (b'[', _) => levels.push(Level::List { index: 0 }),
            (b'}' | b']', _) => _ = levels.pop(),
            (b':', Some(Level::Object { key: _, is_value })) => *is_value = true,
            (b',', Some(Level::Object { key, is_value })) => (*key, *is_value) = ("", false),
            (b',', Some(Level::List { index })) => *index += 1,
            _ => {}
        }
    }
    levels.iter().fold(String::new(), |path, level| match level {
        Level::Object { key: "", .. } => path,
        Level::Object { key, .. } if !key.chars().all(char::is_alphanumeric) => format!("{path}[{key}]"),
        Level::Object { key, .. } if path.is_empty() => (*key).into(),
        Level::Object { key, .. } => format!("{path}.{key}"),
        Level::List { index } => format!("{path}[{index}]"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, MachineSet};

    fn check<T: serde::de::DeserializeOwned>(text: &str, told: &str) {
        let error = serde_json::from_str::<T>(text).err().expect("it does not fit");
        assert_eq!(Misfit::of(text, &error).to_string(), told, "{text}");
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_by_its_path() {
        check::<Machine>("5", "invalid type: integer `5`, expected struct Machine");
        check::<Machine>(
            r#"{"spec": {"taints": "x"}}"#,
            r#"spec.taints: invalid type: string "x", expected a sequence"#,
        );
        check::<Machine>(
            r#"{"status": {"phase": "a\"{[", "nodeRef": {"name": 5}}}"#,
            "status.nodeRef.name: invalid type: integer `5`, expected a string",
        );
        check::<Machine>(
            r#"{"spec": {"taints": [{"key": "a", "effect": "b"}, {"key": {}}]}}"#,
            "spec.taints[1].key: invalid type: map, expected a string",
        );
        check::<Machine>(
            r#"{"spec": {"lifecycleHooks": {"preDrain": [{"name": "a"}]}}, "status": {}}"#,
            "spec.lifecycleHooks.preDrain[0]: missing field `owner`",
        );
        check::<Machine>(
            r#"{"metadata": {"labels": {"a.io/b": ["c"]}}}"#,
            "metadata.labels[a.io/b]: invalid type: sequence, expected a string",
        );
        check::<MachineSet>(
            "{\n  \"spec\": {\n    \"replicas\": \"x\"\n  }\n}",
            r#"spec.replicas: invalid type: string "x", expected i64"#,
        );
    }
}
