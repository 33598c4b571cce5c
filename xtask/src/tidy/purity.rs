//! What decisions must not see: `core`, and the plan of each cloud, are functions of values.
//!
//! Never here: what a manifest can forbid; that is `arrows`.

use crate::workspace::Source;

/// What a decision cannot say, and where it could get it from instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("Timestamp::now", "time is in the facts"),
    ("SystemTime", "time is in the facts"),
    ("Instant::now", "time is in the facts"),
    ("std::env", "settings are in the facts"),
    ("std::fs", "a decision reads no files"),
    ("std::net", "a decision asks nobody"),
    ("async fn", "a decision waits for nothing"),
    (".await", "a decision waits for nothing"),
    ("println!", "what is worth telling is an event or condition of the plan"),
];

/// Only here may a cloud be named.
const REGISTRY: &str = "crates/machine-api-operator/src/registry.rs";

/// Every place that breaks a rule, a line each.
pub fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.path.ends_with(".rs")).flat_map(source_complaints).collect()
}

fn source_complaints(Source { path, text }: &Source) -> Vec<String> {
    let mut found = Vec::new();
    if is_pure(path) {
        for (word, instead) in FORBIDDEN.iter().filter(|(word, _)| code(text).any(|line| line.contains(word)))
        {
            found.push(format!("{path}: `{word}` in a decision; {instead}"));
        }
    }
    let names_a_cloud = path.starts_with("crates/") && code(text).any(|line| line.contains("mapi_cloud_"));
    if names_a_cloud && path != REGISTRY {
        found.push(format!("{path}: names a cloud, which only {REGISTRY} may"));
    }
    found
}

fn is_pure(path: &str) -> bool {
    path.starts_with("crates/core/src/") || path.starts_with("clouds/") && path.ends_with("/plan.rs")
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_that_looks_at_the_clock_is_complained_about() {
        let text = "// Timestamp::now is not for us.\nfn f() { let now = Timestamp::now(); }";
        let found = |path: &str| complaints(&[Source { path: path.into(), text: text.into() }]).len();
        assert_eq!(found("crates/core/src/machine.rs"), 1);
        assert_eq!(found("clouds/kubemark/src/plan.rs"), 1);
        assert_eq!(found("clouds/kubemark/src/act.rs"), 0);
    }

    #[test]
    fn only_the_registry_names_clouds() {
        let text = "use mapi_cloud_kubemark::Kubemark;";
        let found = |path: &str| complaints(&[Source { path: path.into(), text: text.into() }]).len();
        assert_eq!(found(REGISTRY), 0);
        assert_eq!(found("crates/controllers/src/start.rs"), 1);
    }
}
