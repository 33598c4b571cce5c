//! Which test covers which case of the behaviour specification.
//!
//! A comment `// M02, M03` above a test says which cases it covers, and may go on after a colon. From these comments
//! docs/test-matrix.md is written. Never here: what a case says.

use std::collections::BTreeMap;

use crate::files::{self, File};
use crate::workspace::{self, Source};

/// Where the table is.
pub const PATH: &str = "docs/test-matrix.md";

/// Arguments of `matrix`.
#[derive(clap::Args)]
pub struct Args {}

/// Writes the table and lists the cases that have no test.
pub fn run(_: &Args) -> anyhow::Result<()> {
    let covered = covered(&workspace::rust_sources()?);
    files::write(&[table(&covered)])?;
    let missing = missing(&covered);
    let count = |suite| tests(&covered).filter(|test| test.suite == suite).count();
    println!(
        "{} of {} cases have a test; {} rows are unit, {} exhaustive, {} e2e",
        cases().count() - missing.len(),
        cases().count(),
        count(Suite::Unit),
        count(Suite::Exhaustive),
        count(Suite::EndToEnd),
    );
    if !missing.is_empty() {
        println!("without a test: {}", missing.join(", "));
    }
    Ok(())
}

/// The table as a file.
pub fn file() -> anyhow::Result<File> {
    Ok(table(&covered(&workspace::rust_sources()?)))
}

/// The groups of cases: letter, number of cases, and what they are about.
const GROUPS: &[(char, u32, &str)] = &[
    ('M', 57, "Machine controller"),
    ('D', 23, "Drain controller"),
    ('S', 41, "MachineSet controller"),
    ('N', 19, "Nodelink controller"),
    ('H', 38, "MachineHealthCheck controller"),
    ('C', 4, "Conditions"),
];

fn cases() -> impl Iterator<Item = String> {
    GROUPS
        .iter()
        .flat_map(|&(letter, count, _)| (1..=count).map(move |number| format!("{letter}{number:02}")))
}

/// Whether a word has the form of a case's id.
fn is_case(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(|letter| GROUPS.iter().any(|group| group.0 == letter))
        && characters.as_str().len() == 2
        && characters.all(|digit| digit.is_ascii_digit())
}

/// A test that covers a case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    suite: Suite,
    path: String,
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Suite {
    Unit,
    Exhaustive,
    EndToEnd,
}

impl Suite {
    fn of(path: &str) -> Self {
        if path.starts_with("tests/") {
            Self::EndToEnd
        } else if path.contains("exhaustive") {
            Self::Exhaustive
        } else {
            Self::Unit
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Exhaustive => "exhaustive",
            Self::EndToEnd => "e2e",
        }
    }
}

type Covered = BTreeMap<String, Vec<Test>>;

fn tests(covered: &Covered) -> impl Iterator<Item = &Test> {
    covered.values().flatten()
}

fn covered(sources: &[Source]) -> Covered {
    let mut covered = Covered::new();
    for source in sources {
        for (cases, name) in marked(&source.text).tests {
            for case in cases {
                let test =
                    Test { suite: Suite::of(&source.path), path: source.path.clone(), name: name.clone() };
                covered.entry(case).or_default().push(test);
            }
        }
    }
    covered.values_mut().for_each(|tests| tests.sort());
    covered
}

fn missing(covered: &Covered) -> Vec<String> {
    cases().filter(|case| !covered.contains_key(case)).collect()
}

/// What the comments of a file say.
#[derive(Default)]
struct Marked {
    /// Cases, and the test below the comment.
    tests: Vec<(Vec<String>, String)>,
    /// Cases in a comment of nothing else that is above no test. One that goes on may be about any code.
    astray: Vec<String>,
}

fn marked(text: &str) -> Marked {
    let mut marked = Marked::default();
    let (mut comments, mut is_test) = (Vec::new(), false);
    // The end is as good as a line of code.
    for line in text.lines().map(str::trim).chain([""]) {
        if let Some(comment) = line.strip_prefix("//") {
            comments.push(comment);
        } else if let Some(attribute) = line.strip_prefix("#[") {
            is_test |= attribute
                .split(['(', ']'])
                .next()
                .is_some_and(|path| path == "test" || path.ends_with("::test"));
        } else {
            let comments = std::mem::take(&mut comments);
            match name_of(line).filter(|_| is_test) {
                Some(name) => {
                    let cases: Vec<_> = comments.iter().flat_map(|comment| cases_of(comment)).collect();
                    if !cases.is_empty() {
                        marked.tests.push((cases, name.to_owned()));
                    }
                }
                None => {
                    let bare = comments.into_iter().filter(|comment| !comment.contains(':'));
                    marked.astray.extend(bare.flat_map(cases_of));
                }
            }
            is_test = false;
        }
    }
    marked
}

/// The cases that a comment begins with: ids separated by commas, then nothing or a colon and more.
fn cases_of(comment: &str) -> Vec<String> {
    let ids = comment.split_once(':').map_or(comment, |(ids, _)| ids);
    let ids: Vec<_> = ids.split(',').map(|id| id.trim().to_owned()).collect();
    if ids.iter().all(|id| is_case(id)) { ids } else { Vec::new() }
}

fn name_of(line: &str) -> Option<&str> {
    let words = line.trim_start_matches("pub ").trim_start_matches("async ");
    words.strip_prefix("fn ")?.split(['(', '<']).next()
}

fn table(covered: &Covered) -> File {
    let mut text = String::from(
        "# Test matrix\n\n\
         Written by `cargo xtask matrix` from the comments above the tests. Each case of the controllers' behaviour has a\n\
         test of the least powerful kind that can fail: a table or a unit beside the code, an exhaustive search, or a run on a\n\
         real control plane (e2e).\n",
    );
    for &(letter, _, about) in GROUPS {
        text += &format!("\n## {about}\n\n| Case | Claim | Test | Suite |\n|---|---|---|---|\n");
        for (case, tests) in covered.iter().filter(|(case, _)| case.starts_with(letter)) {
            for Test { suite, path, name } in tests {
                text +=
                    &format!("| {case} | {} | {path}::{name} | {} |\n", name.replace('_', " "), suite.name());
            }
        }
    }
    let missing = missing(covered);
    if !missing.is_empty() {
        text += &format!("\n## Without a test\n\n{}\n", missing.join(", "));
    }
    File { path: PATH.into(), text }
}

/// What is wrong with the table and the comments, a line each.
pub fn complaints(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        for case in marked(&source.text).astray {
            found.push(format!("{}: comment `{case}` is above no test", source.path));
        }
    }
    let known: Vec<_> = cases().collect();
    let covered = covered(sources);
    found.extend(
        covered.keys().filter(|case| !known.contains(case)).map(|case| format!("there is no case `{case}`")),
    );
    let text = sources.iter().find(|source| source.path == PATH).map_or("", |source| &source.text);
    found.extend(rows(text).filter_map(|row| row_complaint(row, sources)));
    if text != table(&covered).text {
        found.push(format!("{PATH} and the comments above the tests disagree: run `cargo xtask matrix`"));
    }
    found
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.strip_prefix("| ").is_some_and(|rest| rest.get(..3).is_some_and(is_case)))
}

fn row_complaint(row: &str, sources: &[Source]) -> Option<String> {
    let mut cells = row.trim_matches('|').split('|').map(str::trim);
    let (case, test) = (cells.next()?, cells.nth(1).unwrap_or_default());
    let exists = test.rsplit_once("::").is_some_and(|(path, name)| {
        let function = format!("fn {name}(");
        sources.iter().any(|source| source.path == path && source.text.contains(&function))
    });
    (!exists).then(|| format!("{PATH}: the row of {case} names `{test}`, and there is no such test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source { path: path.into(), text: text.into() }
    }

    const TESTS: &str = "
        // M02, M03: the second in its fixed form
        // Odd on purpose.
        // M05
        #[tokio::test(start_paused = true)]
        async fn a_claim() {}

        #[test]
        fn unmarked() {}
    ";

    #[test]
    fn a_comment_above_a_test_covers_its_cases() {
        let covered = covered(&[source("tests/tests/a.rs", TESTS)]);
        assert_eq!(covered.keys().collect::<Vec<_>>(), ["M02", "M03", "M05"]);
        assert!(tests(&covered).all(|test| test.name == "a_claim" && test.suite == Suite::EndToEnd));
    }

    #[test]
    fn a_comment_above_something_else_is_complained_about() {
        assert_eq!(marked("// M02\nfn helper() {}\n").astray, ["M02"]);
        assert_eq!(marked("// M02\nlet x = 1;\n").astray, ["M02"]);
        assert!(marked("// M02: why this code is so\nlet x = 1;\n").astray.is_empty());
        assert!(marked("// M02 is not said like this\nfn helper() {}\n").astray.is_empty());
    }

    #[test]
    fn a_row_that_names_no_test_is_complained_about() {
        let mut sources = vec![source("crates/a.rs", TESTS)];
        sources.push(Source { path: PATH.into(), text: table(&covered(&sources)).text });
        assert_eq!(complaints(&sources), Vec::<String>::new());

        let row = "| M09 | gone | crates/a.rs::gone | unit |\n";
        sources[1].text += row;
        let found = complaints(&sources);
        assert!(found.iter().any(|line| line.contains("`crates/a.rs::gone`")), "{found:?}");
        assert!(found.iter().any(|line| line.contains("disagree")), "{found:?}");
    }

    #[test]
    fn a_case_that_does_not_exist_is_complained_about() {
        let text = "// H77\n#[test]\nfn claim() {}\n";
        assert!(complaints(&[source("a.rs", text)]).contains(&"there is no case `H77`".to_owned()));
    }
}
