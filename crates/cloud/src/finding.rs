//! Complaints about a spec, by field path. One code says them at admission and in the controllers.

use std::fmt;

/// Whether a finding stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The spec cannot be used.
    Error,
    /// The spec can be used, but the user should know.
    Warning,
}

/// One complaint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it stands in the way.
    pub severity: Severity,
    /// Path from the root of the provider spec, for example `faults[0].kind`.
    pub path: String,
    /// The value there, never a secret. Empty if it is missing.
    pub value: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Finding {
    /// A complaint that stands in the way.
    pub fn error(path: impl Into<String>, value: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, path: path.into(), value: value.into(), message: message.into() }
    }

    /// A complaint that does not.
    pub fn warning(path: impl Into<String>, value: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(path, value, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, value, message, severity: _ } = self;
        let path = if path.is_empty() { "value" } else { path };
        if value.is_empty() {
            write!(f, "{path}: {message}")
        } else {
            write!(f, "{path}: `{value}`: {message}")
        }
    }
}

/// Complaints in the order in which they were found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    /// Whether one of them stands in the way.
    pub fn has_error(&self) -> bool {
        self.0.iter().any(|f| f.severity == Severity::Error)
    }

    /// Those that stand in the way, joined by `; `.
    pub fn errors(&self) -> String {
        let errors = self.0.iter().filter(|f| f.severity == Severity::Error).map(Finding::to_string);
        errors.collect::<Vec<_>>().join("; ")
    }
}

impl From<Finding> for Findings {
    fn from(finding: Finding) -> Self {
        Self(vec![finding])
    }
}
