//! The product's processes.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use controlplane::Process;

/// File name of the product.
const NAME: &str = "machine-api-operator";

/// The guardian of a process notes its id within milliseconds of the start, unless the machine is overloaded.
const PID_DEADLINE: Duration = Duration::from_secs(20);

/// The product beside the running executable, where cargo puts it.
pub fn binary() -> anyhow::Result<PathBuf> {
    let ours = std::env::current_exe().context("cannot tell where this executable is")?;
    ours.ancestors().skip(1).take(2).map(|folder| folder.join(NAME)).find(|file| file.is_file()).with_context(
        || format!("no `{NAME}` beside `{}`: run `cargo build -p {NAME}` first", ours.display()),
    )
}

/// The CRDs as the product prints them for `kubectl apply`.
pub(crate) fn crds(feature_set: &str) -> anyhow::Result<String> {
    let output = Command::new(binary()?)
        .args(["crds", "--feature-set", feature_set])
        .output()
        .with_context(|| format!("cannot run `{NAME} crds`"))?;
    if !output.status.success() {
        bail!("`{NAME} crds` failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("the CRDs are not UTF-8")
}

/// What can be done to a process.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    /// SIGINT: what Ctrl-C is.
    Interrupt,
    /// SIGTERM: end in good order.
    Terminate,
    /// SIGSTOP: freeze, as a process that gets no processor does.
    Stop,
    /// SIGCONT: go on after a stop.
    Continue,
}

/// A running process of the product. Dropping it is SIGKILL; it never outlives the test.
#[derive(Debug)]
pub struct Program {
    process: Process,
}

impl Program {
    /// Starts the product with `arguments`; `directory` is made, and holds its log.
    pub(crate) fn start(directory: &Path, arguments: &[String]) -> anyhow::Result<Program> {
        let binary = binary()?;
        let folder = binary.parent().context("the product is in a folder")?;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make `{}`", directory.display()))?;
        Ok(Program { process: Process::start(folder, NAME, arguments, directory)? })
    }

    /// SIGKILL. It returns once the process is gone.
    pub fn kill(self) {}

    /// The process id.
    pub fn pid(&self) -> anyhow::Result<u32> {
        let deadline = Instant::now() + PID_DEADLINE;
        while Instant::now() < deadline {
            if let Some(pid) = self.process.pid() {
                return Ok(pid);
            }
            std::thread::yield_now();
        }
        bail!("the guardian of `{NAME}` noted no process id");
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        send(self.pid()?, signal)
    }

    /// Waits for it to end by itself.
    pub async fn wait(self) -> anyhow::Result<ExitStatus> {
        tokio::task::spawn_blocking(|| self.process.wait()).await.context("the wait was cancelled")?
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.process.ended()
    }

    /// What it printed.
    pub fn log(&self) -> String {
        read(&self.process.log)
    }
}

/// Sends a signal to a process.
pub(crate) fn send(pid: u32, signal: Signal) -> anyhow::Result<()> {
    let name = match signal {
        Signal::Interrupt => "INT",
        Signal::Terminate => "TERM",
        Signal::Stop => "STOP",
        Signal::Continue => "CONT",
    };
    let pid = pid.to_string();
    let status = Command::new("sh")
        .args(["-c", r#"kill -"$1" "$2""#, "sh", name, &pid])
        .status()
        .context("cannot run a shell to send a signal")?;
    if !status.success() {
        bail!("cannot send SIG{name} to process {pid}");
    }
    Ok(())
}

/// The text of a log. A line may be cut in the middle of a character, and a log may not exist yet.
pub(crate) fn read(log: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(log).unwrap_or_default()).into_owned()
}

/// The log of a program that worked in `directory`.
pub(crate) fn log_in(directory: &Path) -> String {
    read(&directory.join(NAME).with_extension("log"))
}
