//! A process that is listened to while it runs: the demo, and what a user types beside it.
//!
//! Never here: what it should say.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, bail};
use tokio::{sync::mpsc, time::timeout};

use crate::{Signal, or_panic, program::send};

/// What the demo does in half a minute takes longer on processors that others use.
const PATIENCE: Duration = Duration::from_secs(240);

/// A process that is listened to. Dropping it is SIGKILL.
pub struct Talk {
    child: Child,
    words: mpsc::UnboundedReceiver<Word>,
    heard: Heard,
}

/// Everything that a process said.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// Standard output, line by line.
    pub stdout: Vec<String>,
    /// Standard error, line by line.
    pub stderr: Vec<String>,
}

enum Word {
    Out(String),
    Error(String),
}

impl Talk {
    /// Starts a command and listens to it.
    #[track_caller]
    pub fn start(command: &mut Command) -> Talk {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = crate::or_panic_now(started.with_context(|| format!("cannot start {command:?}")));
        let (sender, words) = mpsc::unbounded_channel();
        listen(child.stdout.take(), sender.clone(), Word::Out);
        listen(child.stderr.take(), sender, Word::Error);
        Talk { child, words, heard: Heard::default() }
    }

    /// Waits for a line of standard output that is as it should be, from here on.
    #[track_caller]
    pub fn line(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> impl Future<Output = String> {
        or_panic(async move {
            let found = timeout(PATIENCE, async {
                while let Some(word) = self.words.recv().await {
                    let line = self.heard.add(word);
                    if let Some(line) = line.filter(|line| is_it(line)) {
                        return Some(line);
                    }
                }
                None
            });
            match found.await {
                Ok(Some(line)) => Ok(line),
                Ok(None) => bail!("it ended without {what}; it said {:#?}", self.heard),
                Err(_) => bail!("no {what} after {} s; it said {:#?}", PATIENCE.as_secs(), self.heard),
            }
        })
    }

    /// Sends a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        crate::or_panic_now(send(self.child.id(), signal));
    }

    /// Waits until it has ended by itself, and tells how, and all that it said.
    #[track_caller]
    pub fn end(mut self) -> impl Future<Output = (ExitStatus, Heard)> {
        or_panic(async move {
            let rest = timeout(PATIENCE, async {
                while let Some(word) = self.words.recv().await {
                    self.heard.add(word);
                }
            });
            if rest.await.is_err() {
                bail!("it has not ended after {} s; it said {:#?}", PATIENCE.as_secs(), self.heard);
            }
            // Whoever has closed both of its outputs is about to end.
            let status = self.child.wait().context("cannot wait for its end")?;
            Ok((status, self.heard.clone()))
        })
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Heard {
    /// Keeps a word, and returns it if it is of standard output.
    fn add(&mut self, word: Word) -> Option<String> {
        match word {
            Word::Out(line) => {
                self.stdout.push(line.clone());
                Some(line)
            }
            Word::Error(line) => {
                self.stderr.push(line);
                None
            }
        }
    }
}

fn listen(
    stream: Option<impl Read + Send + 'static>,
    sender: mpsc::UnboundedSender<Word>,
    of: fn(String) -> Word,
) {
    let stream = BufReader::new(stream.expect("it is piped"));
    thread::spawn(move || {
        for line in stream.lines().map_while(Result::ok) {
            if sender.send(of(line)).is_err() {
                break;
            }
        }
    });
}
