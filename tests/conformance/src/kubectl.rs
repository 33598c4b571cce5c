//! The command line as a driver. Never here: another program.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, bail};
use regex::Regex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    case::Step,
    expect::{Expect, shortened},
    words::Words,
};

/// A command takes a quarter of a second; on a computer that is busy with other things, seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Output {
    exit: i32,
    stdout: String,
    stderr: String,
}

/// A command that goes on.
#[derive(Debug)]
pub(crate) struct Running {
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

/// Whether the program is there.
pub(crate) async fn is_installed() -> bool {
    let mut command = Command::new("kubectl");
    command.args(["version", "--client"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// The command line of a step. `directory` is for its cache and the files it writes.
pub(crate) fn command(
    arguments: &str,
    step: &Step,
    words: &Words,
    (kubeconfig, directory): (&Path, &Path),
) -> anyhow::Result<Command> {
    let mut command = Command::new("kubectl");
    command
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--cache-dir={}", directory.join("cache").display()))
        .env("TMPDIR", directory)
        .stdin(if step.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Ok(namespace) = words.text("${ns}") {
        command.arg(format!("--namespace={namespace}"));
    }
    command.args(split(&words.text(arguments)?)?);
    for (name, value) in &step.env {
        command.env(name, words.text(value)?);
    }
    Ok(command)
}

/// Runs a command to its end.
pub(crate) async fn run(mut command: Command, stdin: Option<String>) -> anyhow::Result<Output> {
    let mut child = command.spawn().context("cannot run kubectl")?;
    if let (Some(text), Some(mut pipe)) = (stdin, child.stdin.take()) {
        pipe.write_all(text.as_bytes()).await?;
    }
    let output = timeout(PATIENCE, child.wait_with_output()).await.context("kubectl does not end")??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Output {
        exit: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    })
}

impl Output {
    /// The differences from what the step expects.
    pub(crate) fn check(&self, step: &Step, words: &mut Words) -> anyhow::Result<Vec<String>> {
        let mut differences = Vec::new();
        if self.exit != step.exit {
            differences.push(format!("exit code: wanted {}, got {}", step.exit, self.exit));
        }
        for (what, wanted, got) in
            [("output", &step.prints, &self.stdout), ("complaints", &step.complains, &self.stderr)]
        {
            if let Some(wanted) = wanted {
                differences.extend(text_differences(what, &words.value(wanted)?, got)?);
            }
        }
        if let Some(answer) = &step.answer {
            let wanted = words.value(answer)?;
            let got: Value = serde_saphyr::from_str(&self.stdout).unwrap_or(Value::Null);
            let mut expect = Expect::new(words);
            expect.part("", &wanted, Some(&got));
            differences.extend(expect.differences);
        }
        if let (Some(Value::String(name)), true) = (&step.save, differences.is_empty()) {
            words.set(name, self.stdout.trim_end());
        }
        Ok(differences)
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n{}{}", self.exit, shortened(&self.stdout), shortened(&self.stderr))
    }
}

/// A text is searched for a pattern or equal to the wanted one; a list is wanted line by line.
fn text_differences(what: &str, wanted: &Value, got: &str) -> anyhow::Result<Vec<String>> {
    Ok(match wanted {
        Value::String(wanted) if is_match(wanted.trim_end(), got.trim_end())? => Vec::new(),
        Value::String(wanted) => vec![format!("{what}: wanted {wanted:?}, got {:?}", shortened(got))],
        Value::Array(wanted) => {
            let got: Vec<&str> = got.lines().collect();
            let mut differences = Vec::new();
            if wanted.len() != got.len() {
                differences.push(format!("{what}: wanted {} lines, got {}", wanted.len(), got.len()));
            }
            for (number, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                let wanted = wanted.as_str().context("lines are texts")?;
                if !is_match(wanted, &single_spaced(got))? {
                    differences.push(format!("{what}, line {}: wanted {wanted:?}, got {got:?}", number + 1));
                }
            }
            differences
        }
        other => bail!("{what} is a text or a list of lines, not {other}"),
    })
}

fn is_match(wanted: &str, got: &str) -> anyhow::Result<bool> {
    if let Some(piece) = wanted.strip_prefix("<has ").and_then(|rest| rest.strip_suffix('>')) {
        return Ok(got.contains(piece));
    }
    match wanted.strip_prefix("~ ") {
        Some(pattern) => Ok(Regex::new(&format!("(?m){pattern}"))?.is_match(got)),
        None => Ok(wanted == got),
    }
}

fn single_spaced(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Running {
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Running> {
        let mut child = command.stderr(Stdio::null()).spawn().context("cannot run kubectl")?;
        let stdout = child.stdout.take().context("the output of kubectl is piped")?;
        Ok(Running { lines: BufReader::new(stdout).lines(), _child: child })
    }

    /// The differences between the next lines and the wanted ones.
    pub(crate) async fn next(&mut self, wanted: &Value) -> anyhow::Result<Vec<String>> {
        let mut differences = Vec::new();
        for line in wanted.as_array().into_iter().flatten() {
            let line = line.as_str().context("lines are texts")?;
            match timeout(PATIENCE, self.lines.next_line()).await {
                Ok(Ok(Some(got))) if is_match(line, &single_spaced(&got))? => {}
                Ok(Ok(Some(got))) => differences.push(format!("line: wanted {line:?}, got {got:?}")),
                Ok(Ok(None)) => bail!("kubectl ended before the line {line:?}"),
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => bail!("the line {line:?} did not come"),
            }
        }
        Ok(differences)
    }
}

/// Splits at blanks outside of single quotes.
fn split(line: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            blank if blank.is_whitespace() && !is_quoted => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    if is_quoted {
        bail!("a quote never ends in `{line}`");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_split_at_blanks_outside_of_quotes() {
        assert_eq!(split("get  cm 'a b' -o='x'").unwrap(), ["get", "cm", "a b", "-o=x"]);
        assert!(split("get 'cm").is_err());
    }

    #[test]
    fn lines_are_compared_one_by_one_with_blanks_made_one() {
        let found = |wanted: Value, got: &str| text_differences("output", &wanted, got).unwrap().len();
        assert_eq!(found(json!(["NAME AGE", "~ ^a \\d+s$"]), "NAME   AGE\na      5s\n"), 0);
        assert_eq!(found(json!(["NAME AGE"]), "NAME   AGE\na      5s\n"), 1);
        assert_eq!(found(json!("a b"), "a b\n"), 0);
        assert_eq!(found(json!("~ ^b$"), "a\nb\n"), 0);
        assert_eq!(found(json!("<has (x)>"), "a (x)\n"), 0);
    }
}
