//! The official Python client as a driver: a program of its own that prints a line per case. Never here: its cases.

use std::{collections::HashMap, path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::{
    load::{Driver, package},
    report::{Done, Outcome},
    target::{Server, Target},
};

/// Whether there is a Python to run it with.
pub(crate) async fn is_installed() -> bool {
    let mut command = Command::new("python3");
    command.args(["-c", "import venv"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// Runs the program against the target. Its lines are `ok NAME` and `failed NAME: why`, each line of the why being
/// indented after the first; before it `differs NAME: reason` where a difference is tolerated.
pub(crate) async fn run(target: &Target) -> anyhow::Result<Vec<Done>> {
    let folder = package().join("python");
    let python = install(&folder).await?;
    let output = Command::new(python)
        .arg(folder.join("cases.py"))
        .arg(&target.kubeconfig)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("cannot run the Python client")?;
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let done = results(target.server, &stdout);
    ensure!(output.status.success() && !done.is_empty(), "the Python client broke off:\n{stdout}{stderr}");
    Ok(done)
}

/// Installs the client, once per version of it, and returns the Python that has it.
async fn install(folder: &Path) -> anyhow::Result<String> {
    let output = Command::new("sh").arg(folder.join("install.sh")).stdin(Stdio::null()).output().await?;
    ensure!(
        output.status.success(),
        "cannot install the Python client: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn results(server: Server, stdout: &str) -> Vec<Done> {
    let mut stories: Vec<(&str, Option<String>)> = Vec::new();
    let mut reasons = HashMap::new();
    for line in stdout.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (name, text) = rest.split_once(": ").unwrap_or((rest, ""));
        match word {
            "ok" => stories.push((rest, None)),
            "failed" => stories.push((name, Some(format!("  {text}")))),
            "differs" => drop(reasons.insert(name, text.to_owned())),
            _ => {
                if let Some((_, Some(story))) = stories.last_mut() {
                    story.push_str(&format!("\n  {line}"));
                }
            }
        }
    }
    let done = stories.into_iter().map(|(name, story)| Done {
        title: format!("python: {name}"),
        driver: Driver::Python,
        outcome: Outcome::of(server, story, reasons.get(name).cloned()),
        took: Duration::ZERO,
    });
    done.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(server: Server, stdout: &str) -> Vec<String> {
        let done = results(server, stdout).into_iter();
        done.map(|Done { title, outcome, .. }| format!("{title}: {outcome:?}")).collect()
    }

    #[test]
    fn each_line_is_a_result_and_what_is_indented_belongs_to_it() {
        let wanted = ["python: a: Agrees", "python: b: Fails(\"  no\\n    more\")", "python: c: Agrees"];
        assert_eq!(told(Server::Real, "ok a\nfailed b: no\n  more\nok c\n"), wanted);
    }

    #[test]
    fn a_difference_is_tolerated_of_ours_alone_and_only_as_long_as_there_is_one() {
        let (fails, agrees) = ("differs a: why\nfailed a: no\n", "differs a: why\nok a\n");
        assert_eq!(told(Server::Devplane, fails), ["python: a: Tolerated(\"why\")"]);
        assert_eq!(told(Server::Real, fails), ["python: a: Fails(\"  no\")"]);
        assert_eq!(told(Server::Real, agrees), ["python: a: Agrees"]);
        let no_longer = "python: a: Fails(\"  it agrees now: take away its `differs`\")";
        assert_eq!(told(Server::Devplane, agrees), [no_longer]);
    }
}
