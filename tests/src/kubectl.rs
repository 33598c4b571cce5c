//! The command line that users have.

use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::{Ns, World, or_panic};

/// What kubectl said.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether it ended with success.
    pub is_ok: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Answer {
    /// The words of each line of the output.
    pub fn table(&self) -> Vec<Vec<&str>> {
        self.stdout.lines().map(|line| line.split_whitespace().collect()).collect()
    }
}

impl World {
    /// Runs kubectl as the user and returns what it said, whether or not it succeeded.
    #[track_caller]
    pub fn try_kubectl(&self, arguments: &[&str]) -> impl Future<Output = Answer> + use<> {
        let mut command = Command::new("kubectl");
        command
            .arg(format!("--kubeconfig={}", self.kubeconfig().display()))
            .arg(format!("--cache-dir={}", self.plane().directory().join("kubectl").display()))
            .args(arguments)
            .stdin(Stdio::null());
        or_panic(async move {
            let output = tokio::task::spawn_blocking(move || command.output())
                .await?
                .context("cannot run kubectl: it must be on the PATH")?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Ok(Answer {
                is_ok: output.status.success(),
                stdout: text(&output.stdout),
                stderr: text(&output.stderr),
            })
        })
    }

    /// Runs kubectl as the user. Anything but success is a failure of the test.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> impl Future<Output = Answer> + use<> {
        let line = arguments.join(" ");
        let answer = self.try_kubectl(arguments);
        or_panic(async move {
            match answer.await {
                answer if answer.is_ok => Ok(answer),
                answer => bail!("`kubectl {line}` failed:\n{}{}", answer.stdout, answer.stderr),
            }
        })
    }
}

impl Ns {
    /// Runs kubectl in the namespace. Anything but success is a failure of the test.
    #[track_caller]
    pub fn kubectl(&self, arguments: &[&str]) -> impl Future<Output = Answer> + use<> {
        let mut all = vec!["-n", self.name()];
        all.extend_from_slice(arguments);
        self.world().kubectl(&all)
    }

    /// Runs kubectl in the namespace and returns what it said, whether or not it succeeded.
    #[track_caller]
    pub fn try_kubectl(&self, arguments: &[&str]) -> impl Future<Output = Answer> + use<> {
        let mut all = vec!["-n", self.name()];
        all.extend_from_slice(arguments);
        self.world().try_kubectl(&all)
    }
}
