//! The official Python client as a driver: a program of its own that prints a line per case. Never here: its cases.

use std::{path::Path, process::Stdio, time::Duration};

use anyhow::{Context as _, ensure};
use tokio::process::Command;

use crate::{
    load::{Driver, package},
    report::{Done, Outcome},
    target::Target,
};

/// Whether there is a Python to run it with.
pub(crate) async fn is_installed() -> bool {
    let mut command = Command::new("python3");
    command.args(["-c", "import venv"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// Runs the program against the target. Its lines are `ok NAME` and `failed NAME: why`, each line of the why being
/// indented after the first.
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
    let done = results(&stdout);
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

fn results(stdout: &str) -> Vec<Done> {
    let mut done: Vec<Done> = Vec::new();
    for line in stdout.lines() {
        let (title, outcome) = match (line.strip_prefix("ok "), line.strip_prefix("failed ")) {
            (Some(name), _) => (name, Outcome::Agrees),
            (None, Some(rest)) => {
                let (name, why) = rest.split_once(": ").unwrap_or((rest, ""));
                (name, Outcome::Fails(format!("  {why}")))
            }
            (None, None) => {
                if let Some(Done { outcome: Outcome::Fails(story), .. }) = done.last_mut() {
                    story.push_str(&format!("\n  {line}"));
                }
                continue;
            }
        };
        done.push(Done {
            title: format!("python: {title}"),
            driver: Driver::Python,
            outcome,
            took: Duration::ZERO,
        });
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_result_and_what_is_indented_belongs_to_it() {
        let done = results("ok a\nfailed b: no\n  more\nok c\n");
        let titles: Vec<&str> = done.iter().map(|done| done.title.as_str()).collect();
        assert_eq!(titles, ["python: a", "python: b", "python: c"]);
        assert!(matches!(&done[1].outcome, Outcome::Fails(story) if story == "  no\n    more"));
    }
}
