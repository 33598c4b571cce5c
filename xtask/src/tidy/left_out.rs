//! Tests that are left out on the embedded control plane: each is there, and has a reason.
//!
//! Never here: who leaves them out; the Makefile does.

use std::collections::HashSet;

use crate::workspace::Source;

/// A line for each: the path of the test in its executable, a colon, and why.
const LIST: &str = "tests/embedded.txt";

/// Names that no test has, and lines without a reason.
pub fn complaints(sources: &[Source]) -> Vec<String> {
    let list = sources.iter().find(|source| source.path == LIST).map_or("", |source| &source.text);
    let tests: HashSet<&str> = sources
        .iter()
        .filter(|source| source.path.starts_with("tests/e2e/"))
        .flat_map(|source| source.text.lines())
        .filter_map(|line| line.trim_start().strip_prefix("async fn ")?.split_once('('))
        .map(|(name, _)| name)
        .collect();
    let lines = list.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let complaint = |line: &str| match line.split_once(": ") {
        None => Some(format!("{LIST}: `{line}` has no reason")),
        Some((test, _)) => {
            let name = test.rsplit("::").next().unwrap_or(test);
            (!tests.contains(name)).then(|| format!("{LIST}: there is no test `{test}`"))
        }
    };
    lines.filter_map(complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_test_that_is_there_and_says_why() {
        let source = |path: &str, text: &str| Source { path: path.into(), text: text.into() };
        let list = source(LIST, "# words\na::is_there: why\na::is_gone: why\na::is_there\n");
        let tests = source("tests/e2e/a.rs", "#[tokio::test]\nasync fn is_there() {}\n");
        let wanted = [
            "tests/embedded.txt: there is no test `a::is_gone`",
            "tests/embedded.txt: `a::is_there` has no reason",
        ];
        assert_eq!(complaints(&[list, tests]), wanted);
    }
}
