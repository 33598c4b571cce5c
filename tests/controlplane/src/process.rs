//! Child processes that cannot outlive us: those of the control plane, and those that a test adds.
//!
//! Each program runs under a shell that holds the read end of a pipe. We hold the only write end and never
//! write. When it closes, because we closed it or because we are gone in whatever way, the shell kills the
//! program. Asking the kernel for a signal at the parent's death would not do: that counts the death of the
//! thread that started the child, and a test's thread ends before the test's process does.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
};

use anyhow::Context as _;

/// Starts "$@", writes its process id to the file, and passes its exit code on.
const GUARDIAN: &str = r#"
exec 3<&0 </dev/null
pid_file=$1; shift
"$@" 3<&- &
program=$!
echo "$program" >"$pid_file"
{ read -r line <&3; kill -KILL "$program"; } 2>/dev/null &
watcher=$!
exec 3<&-
wait "$program"
code=$?
kill -KILL "$watcher" 2>/dev/null
exit "$code"
"#;

/// Removes a folder once nobody holds the pipe. The programs are dying at that moment and may add a file to a
/// folder that is being emptied, so it tries more than once.
const JANITOR: &str = r#"
read -r line
for attempt in 1 2 3 4 5; do rm -rf "$1" && exit; sleep 1; done
"#;

/// A program under its guardian. Dropping it kills the program and waits for its end.
#[derive(Debug)]
pub struct Process {
    guardian: Child,
    lifeline: Option<ChildStdin>,
    pid_file: PathBuf,
    /// The file name of the program.
    pub name: &'static str,
    /// What the program has printed.
    pub log: PathBuf,
}

impl Process {
    /// Starts `folder/name`, with `directory` to work, log and note its process id in.
    pub fn start(
        folder: &Path,
        name: &'static str,
        arguments: &[String],
        directory: &Path,
    ) -> anyhow::Result<Process> {
        let log = directory.join(format!("{name}.log"));
        let pid_file = directory.join(format!("{name}.pid"));
        let out = File::create(&log).with_context(|| format!("cannot create `{}`", log.display()))?;
        let errors = out.try_clone().context("cannot share the log file")?;
        let mut command = shell(GUARDIAN);
        command.arg(&pid_file).arg(folder.join(name)).args(arguments).current_dir(directory);
        let mut guardian = command
            .stdout(out)
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot start the guardian of {name}"))?;
        let lifeline = guardian.stdin.take();
        Ok(Process { guardian, lifeline, pid_file, name, log })
    }

    /// How the program ended, if it has.
    pub fn ended(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        self.guardian.try_wait().with_context(|| format!("cannot ask how {} is", self.name))
    }

    /// Waits for the program to end by itself and says how it did. This blocks.
    pub fn wait(mut self) -> anyhow::Result<ExitStatus> {
        self.guardian.wait().with_context(|| format!("cannot wait for the end of {}", self.name))
    }

    /// The process id of the program itself; `None` in the first moments after the start.
    pub fn pid(&self) -> Option<u32> {
        fs::read_to_string(&self.pid_file).ok()?.trim().parse().ok()
    }

    /// Kills the program without waiting for its end.
    pub fn kill(&mut self) {
        self.lifeline = None;
    }

    /// The last lines of the log.
    pub fn log_tail(&self) -> String {
        /// Enough for a panic of a Go program above its usage text.
        const LINES: usize = 30;
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if let Err(error) = self.guardian.wait() {
            tracing::warn!(%error, name = self.name, "cannot wait for a process of the control plane");
        }
    }
}

/// Removes a folder when this process is gone without having done so itself.
#[derive(Debug)]
pub struct Janitor(Child);

impl Janitor {
    /// Watches a folder from now on.
    pub fn watch(directory: &Path) -> anyhow::Result<Janitor> {
        let child = shell(JANITOR)
            .arg(directory)
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the janitor of the control plane")?;
        Ok(Janitor(child))
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        if let Err(error) = self.0.wait() {
            tracing::warn!(%error, "cannot wait for the janitor of the control plane");
        }
    }
}

/// A shell in a process group of its own, so that Ctrl-C reaches us alone and we end things in our order.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).stdin(Stdio::piped()).process_group(0);
    command
}
