//! What came of the cases, for people. Never here: how it came about.

use std::{fs, time::Duration};

use crate::{
    load::{Driver, package},
    target::Server,
};

/// Longer than this a case is worth a line.
const SLOW: Duration = Duration::from_secs(8);

/// What a case came to.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// As expected.
    Agrees,
    /// Not as expected, and the case says why that may be.
    Tolerated(String),
    /// Not as expected: the story.
    Fails(String),
}

impl Outcome {
    /// What a case came to that failed with a story or did not, and that may differ for a reason or may not.
    pub(crate) fn of(server: Server, story: Option<String>, may_differ: Option<String>) -> Outcome {
        match (story, may_differ.filter(|_| server == Server::Devplane)) {
            (None, None) => Outcome::Agrees,
            (Some(_), Some(reason)) => Outcome::Tolerated(reason),
            (Some(story), None) => Outcome::Fails(story),
            (None, Some(_)) => Outcome::Fails("  it agrees now: take away its `differs`".into()),
        }
    }
}

/// A case that was done.
#[derive(Debug)]
pub(crate) struct Done {
    pub title: String,
    pub driver: Driver,
    pub outcome: Outcome,
    pub took: Duration,
}

/// All that was done.
pub(crate) struct Report {
    pub server: Server,
    pub done: Vec<Done>,
    pub left_out: Vec<String>,
    /// Whether it was the whole suite.
    pub is_whole: bool,
    pub took: Duration,
}

impl Report {
    pub(crate) fn is_good(&self) -> bool {
        self.count(None, is_failure) == 0
    }

    /// Prints the failures, what is tolerated, and the counts. The last line is of the form that Rust's tests have.
    pub(crate) fn print(&self) {
        for done in &self.done {
            if let Outcome::Fails(story) = &done.outcome {
                println!("FAILED {}\n{story}", done.title);
            }
        }
        for done in &self.done {
            if let Outcome::Tolerated(reason) = &done.outcome {
                println!("differs: {}: {reason}", done.title);
            }
        }
        let mut slowest: Vec<&Done> = self.done.iter().filter(|done| done.took > SLOW).collect();
        slowest.sort_by_key(|done| std::cmp::Reverse(done.took));
        for done in slowest {
            println!("slow: {}: {:.1} s", done.title, done.took.as_secs_f64());
        }
        for what in &self.left_out {
            println!("left out: {what}");
        }
        let (all, failed) = (self.done.len(), self.count(None, is_failure));
        let drivers: Vec<String> = Driver::ALL
            .into_iter()
            .map(|driver| format!("{} {}", driver.name(), self.share(Some(driver))))
            .collect();
        let line = format!("{}: {} · {}", self.server.name(), self.share(None), drivers.join(" · "));
        println!("{line}");
        if self.is_whole {
            self.keep(&line);
        }
        println!(
            "test result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s",
            if failed == 0 { "ok" } else { "FAILED" },
            all - failed,
            self.took.as_secs_f64(),
        );
    }

    /// Writes the counts down, so that those of both servers can be shown at once.
    fn keep(&self, line: &str) {
        let file = package().join("../../build").join(format!("conformance-{}.txt", self.server.name()));
        let folder = file.parent().expect("it is in a folder");
        if let Err(error) = fs::create_dir_all(folder).and_then(|()| fs::write(&file, format!("{line}\n"))) {
            println!("cannot write `{}`: {error}", file.display());
        }
    }

    /// `12 of 14 (1 tolerated)`.
    fn share(&self, driver: Option<Driver>) -> String {
        let all = self.count(driver, |_| true);
        let agreeing = self.count(driver, |outcome| matches!(outcome, Outcome::Agrees));
        let tolerated = self.count(driver, |outcome| matches!(outcome, Outcome::Tolerated(_)));
        let note = if tolerated == 0 { String::new() } else { format!(" ({tolerated} tolerated)") };
        format!("{agreeing} of {all}{note}")
    }

    fn count(&self, driver: Option<Driver>, is_so: impl Fn(&Outcome) -> bool) -> usize {
        let of_driver = self.done.iter().filter(|done| driver.is_none_or(|driver| done.driver == driver));
        of_driver.filter(|done| is_so(&done.outcome)).count()
    }
}

fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fails(_))
}
