//! Size of source files, and what must not be in any file.
//!
//! Never here: taste; rustfmt and clippy have that.

use crate::workspace::Source;

/// More is more than a reader keeps in mind; style asks for half of it.
const MAX_LINES: usize = 800;

/// Folders of somebody's machine. Written in two parts, so that this file has none.
const MACHINE_PATHS: &[&str] = &[
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Use", "rs/"),
    concat!("/wo", "rk/"),
    concat!("/tm", "p/"),
];

/// Marks of unfinished work.
const UNFINISHED: &[&str] =
    &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("todo", "!("), concat!("#[ign", "ore")];

/// Every file that breaks a rule, a line each.
pub fn complaints(sources: &[Source]) -> Vec<String> {
    sources.iter().flat_map(source_complaints).collect()
}

fn source_complaints(Source { path, text }: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let lines = text.lines().count();
    let is_rust = path.ends_with(".rs");
    if is_rust && lines > MAX_LINES {
        found.push(format!("{path}: {lines} lines, at most {MAX_LINES} are allowed"));
    }
    if is_rust && !text.starts_with("//!") {
        found.push(format!("{path}: begins with no `//!` that says what the file is for"));
    }
    let mut find = |words: &[&str], what: &str| {
        for word in words.iter().filter(|word| text.contains(**word)) {
            found.push(format!("{path}: {what} `{word}`"));
        }
    };
    find(MACHINE_PATHS, "has a path of somebody's machine,");
    if is_rust {
        find(UNFINISHED, "is unfinished:");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        complaints(&[Source { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn a_file_that_is_too_long_or_says_nothing_of_itself_is_complained_about() {
        assert_eq!(found("a.rs", &"//! For tests.\n".repeat(MAX_LINES)), 0);
        assert_eq!(found("a.rs", &"//! For tests.\n".repeat(MAX_LINES + 1)), 1);
        assert_eq!(found("a.yaml", &"a: 1\n".repeat(MAX_LINES + 1)), 0);
        assert_eq!(found("a.rs", "fn f() {}\n"), 1);
    }

    #[test]
    fn a_path_of_a_machine_is_complained_about_in_any_file() {
        for path in MACHINE_PATHS {
            assert_eq!(found("README.md", &format!("see {path}x")), 1);
        }
    }
}
