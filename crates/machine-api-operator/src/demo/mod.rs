//! `machine-api-operator demo`: the whole product at work in this one process, for whoever wants to see it.
//!
//! Here is the order of things: an API server, CRDs, controllers, the sample, the show, and the way out, on which
//! nothing is left behind. Never here: how a part of it is done.

mod fault;
mod frame;
mod healing;
mod install;
mod place;
mod sample;
mod scratch;
mod screen;
mod show;
mod text;
mod view;
mod waits;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, bail};
use mapi_controllers::start::Controller;
use mapi_runtime::CancellationToken;
use mapi_runtime::client::ClientOptions;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use self::sample::Pace;

use self::healing::Healing;
use self::install::{Installer, Made};
use self::place::Place;
use self::sample::{NAMESPACE, SETS, Sample, startup};
use self::scratch::{KubeconfigFile, Scratch};
use self::screen::Screen;
use self::show::{Ending, Notes, Show};
use crate::args::DemoArgs;
use crate::assembly::{Assembly, Group, Parts};
use crate::{registry, simulated_cloud};

/// The cloud of the demo.
const CLOUD: &str = "kubemark";

/// Keys that each controller works on at once, as by default elsewhere.
const CONCURRENCY: usize = 32;

/// What the parts of a demo take until all of them stand: two minutes, because a first start on a busy computer that is
/// still building something else has taken one.
const PATIENCE: Duration = Duration::from_secs(120);

/// Reasons that are told when time is up.
const REASONS: usize = 10;

/// Lines of the log that are told when something went wrong.
const LOG_LINES: usize = 20;

/// Runs the demo until it is over, or a signal.
pub fn run(args: &DemoArgs) -> ExitCode {
    match attempt(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    if !registry::COMPILED.contains(&CLOUD) {
        bail!(
            "the demo needs the simulated cloud, which this build does not have: build it with the feature `{CLOUD}`"
        );
    }
    let runtime = crate::runtime()?;
    // Before anything is made that a signal would leave behind.
    let signals = runtime.block_on(async { Signals::listen() }).context("cannot listen to signals")?;
    let scratch = Scratch::new()?;
    let kubeconfig = KubeconfigFile::new(args.write_kubeconfig.as_deref(), &scratch)?;
    start_logging(&scratch)?;
    let screen = Screen::new(args.frames.as_deref())?;
    let outcome = runtime.block_on(async {
        let mut stage = Stage::new(args, kubeconfig, screen).await?;
        let outcome = stage.play(args, &signals).await;
        let cleared = stage.clear(&signals).await;
        outcome.and_then(|outcome| cleared.map(|()| outcome))
    });
    // A controller that is in the middle of a request to a server that does not answer must not hold us up.
    runtime.shutdown_timeout(Duration::from_secs(1));
    if !matches!(outcome, Ok(Outcome::Complete | Outcome::Interrupted)) {
        let log = scratch.log_tail(LOG_LINES);
        if !log.is_empty() {
            eprintln!("the end of the log:\n{log}");
        }
    }
    Ok(match outcome? {
        Outcome::Complete => ExitCode::SUCCESS,
        // Whoever waits for machines has not got them.
        Outcome::Interrupted if args.until_running => ExitCode::from(130),
        Outcome::Interrupted => ExitCode::SUCCESS,
        Outcome::TimedOut => ExitCode::FAILURE,
    })
}

/// How a demo ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// All machines run.
    Complete,
    /// Somebody ended it.
    Interrupted,
    /// Not all machines run, and time is up.
    TimedOut,
}

/// Everything that a demo has started or made.
struct Stage {
    began: Instant,
    place: Place,
    installer: Installer,
    kubeconfig: KubeconfigFile,
    screen: Screen,
    notes: Notes,
    made: Made,
    stop: CancellationToken,
    running: Option<(Assembly, JoinHandle<anyhow::Result<()>>)>,
    show: Option<Show>,
    patience: Duration,
}

impl Stage {
    async fn new(args: &DemoArgs, kubeconfig: KubeconfigFile, screen: Screen) -> anyhow::Result<Self> {
        let began = Instant::now();
        let place = Place::open(args.kubeconfig.as_deref()).await?;
        let client = place.client(&ClientOptions::default())?;
        Ok(Self {
            began,
            place,
            installer: Installer::new(client),
            kubeconfig,
            screen,
            notes: Notes::new(began),
            made: Made::default(),
            stop: CancellationToken::new(),
            running: None,
            show: None,
            patience: patience(args),
        })
    }

    /// Everything up to the end of the show.
    async fn play(&mut self, args: &DemoArgs, signals: &Signals) -> anyhow::Result<Outcome> {
        let deadline = self.began + args.timeout.unwrap_or(self.patience);
        let ending = tokio::select! {
            biased;
            () = signals.first() => return Ok(Outcome::Interrupted),
            () = tokio::time::sleep_until(deadline), if args.until_running => None,
            ending = self.perform(args) => Some(ending.or_else(unseen)?),
        };
        match ending {
            Some(Ending::Complete) => {
                let seconds = self.began.elapsed().as_secs_f64();
                let count = args.machines;
                self.screen.say(&format!("{count} of {count} machines run, after {seconds:.1} s."))?;
                Ok(Outcome::Complete)
            }
            Some(Ending::Unseen) => Ok(Outcome::Interrupted),
            Some(Ending::Broken) => bail!("the controllers ended by themselves"),
            None => {
                self.tell_reasons(deadline - self.began);
                Ok(Outcome::TimedOut)
            }
        }
    }

    async fn perform(&mut self, args: &DemoArgs) -> anyhow::Result<Ending> {
        let name = self.place.name();
        if !self.place.is_embedded() {
            self.screen.say(&format!("Preparing namespace {NAMESPACE} at {name}"))?;
        }
        self.installer.prepare(&mut self.made).await?;
        self.start_controllers()?;
        let (assembly, _) = self.running.as_ref().expect("they were just started");
        assembly.synced().await;

        self.kubeconfig.write(self.place.kubeconfig(), NAMESPACE)?;
        self.screen.introduce(self.introduction(args))?;
        let context = Arc::clone(&assembly.context);
        let show = Show::new(Arc::clone(&context), name, self.notes.clone())?;
        let mut healing = args.fail.map(|kind| Healing::new(kind, args.machines));
        let is_hurried = healing.as_ref().is_some_and(Healing::is_hurried);
        let sample = Sample::new(args.machines, &args.profile, is_hurried);
        self.installer.apply_check(&sample).await?;
        match &mut healing {
            Some(healing) => {
                if let Some(name) = healing.apply_sets(&self.installer, &sample, &context).await? {
                    show.tell_fault(&mut self.screen, healing, &name)?;
                }
            }
            None => {
                for set in &sample.sets {
                    self.installer.apply_set(set).await?;
                }
            }
        }
        let goal = usize::try_from(args.machines).context("that many machines cannot be counted")?;
        let show = self.show.insert(show);
        show.run(&mut self.screen, healing.as_mut(), goal, args.until_running).await
    }

    fn start_controllers(&mut self) -> anyhow::Result<()> {
        let cloud_client = self.place.client(&simulated_cloud::client_options(true))?;
        let assembly = Assembly::new(Parts {
            client: self.place.client(&ClientOptions::default())?,
            cloud_client: cloud_client.clone(),
            platforms: vec![CLOUD],
            namespace: Some(NAMESPACE.into()),
            migration: false,
            concurrency: CONCURRENCY,
            listener: Some(self.notes.listener()),
            stop: self.stop.clone(),
        });
        let far_side = simulated_cloud::Part {
            client: cloud_client,
            namespace: Some(NAMESPACE.into()),
            heartbeats: true,
            stop: self.stop.clone(),
        };
        let all = Group { controllers: Controller::ALL.to_vec(), far_side: Some(far_side), lease: None };
        let running = assembly.start(vec![all]);
        self.running = Some((assembly, running));
        Ok(())
    }

    /// What stays above the table: what to type in another terminal.
    fn introduction(&self, args: &DemoArgs) -> Vec<String> {
        let more = args.machines.div_ceil(2) + 2;
        vec![
            "Try in another terminal, and look here (Ctrl-C ends all of it):".into(),
            format!("  export KUBECONFIG={}", shell_word(&self.kubeconfig.path.to_string_lossy())),
            "  kubectl get machines --watch".into(),
            format!("  kubectl scale machineset {} --replicas={more}", SETS[0]),
            "  kubectl delete $(kubectl get machines --output=name | head -n 1)".into(),
            String::new(),
        ]
    }

    fn tell_reasons(&mut self, waited: Duration) {
        // Where it was said is gone by now if this cannot be.
        let _ = self.screen.say("");
        let waited = waited.as_secs_f64();
        let Some(show) = &self.show else {
            eprintln!("error: nothing runs after {waited:.1} s: the API server has not come that far");
            return;
        };
        let snapshot = show.look(REASONS);
        let counts = &snapshot.counts;
        eprintln!("error: {} of {} machines run after {waited:.1} s", counts.up, counts.wanted);
        for line in view::reasons(&snapshot, REASONS) {
            eprintln!("  {line}");
        }
    }

    /// Takes away what was made at somebody's API server, ends what runs, and says so.
    async fn clear(mut self, signals: &Signals) -> anyhow::Result<()> {
        let removed = if self.place.is_embedded() { Ok(()) } else { self.remove(signals).await };
        self.stop.cancel();
        if let Some((assembly, running)) = self.running.take() {
            let _ = running.await;
            // The events that are not written yet are about objects that are gone.
            if self.place.is_embedded() { assembly.leave() } else { assembly.end().await }
        }
        self.place.close().await;
        let end = if removed.is_ok() { "Everything has ended, and nothing is left." } else { "" };
        // If nobody looks on any more there is nobody to tell.
        let _ = self.screen.say(end);
        removed
    }

    async fn remove(&mut self, signals: &Signals) -> anyhow::Result<()> {
        let what = "removing what the demo made there (Ctrl-C leaves it as it is)";
        // What ended the show may have been a signal; only another one is about this.
        let _ = self.screen.say(what);
        let work = async {
            self.installer.remove_namespace(&self.made).await?;
            self.installer.remove_crds(&self.made).await
        };
        tokio::select! {
            result = work => result,
            () = tokio::time::sleep(self.patience) => {
                bail!("not all is gone after {} s: look into namespace `{NAMESPACE}`", self.patience.as_secs())
            }
            () = signals.next() => bail!("left as it is: namespace `{NAMESPACE}`"),
        }
    }
}

/// An error that says no more than that nobody looks on is an end like others.
fn unseen(error: anyhow::Error) -> anyhow::Result<Ending> {
    match error.downcast_ref::<io::Error>() {
        Some(cause) if cause.kind() == io::ErrorKind::BrokenPipe => Ok(Ending::Unseen),
        Some(_) | None => Err(error),
    }
}

/// How long a demo may take until all machines run, or until all are gone.
fn patience(args: &DemoArgs) -> Duration {
    let most = startup(args.machines, &args.profile);
    // A machine that falls ill is noticed, removed, and made again.
    let healing = if args.fail.is_some() { most + PATIENCE } else { Duration::ZERO };
    PATIENCE + most * 2 + healing
}

/// A word that a shell takes as it is.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(is_plain) { text.into() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// How many signals have come that shall end the demo.
struct Signals(watch::Receiver<u32>);

impl Signals {
    fn listen() -> io::Result<Self> {
        let (sender, receiver) = watch::channel(0);
        for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
            let (mut signals, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    sender.send_modify(|count| *count += 1);
                }
            });
        }
        Ok(Self(receiver))
    }

    /// Waits for the first one, which may have come already.
    async fn first(&self) {
        self.beyond(0).await;
    }

    /// Waits for one that has not come yet.
    async fn next(&self) {
        let before = *self.0.borrow();
        self.beyond(before).await;
    }

    async fn beyond(&self, before: u32) {
        // An error would mean that the tasks above have ended, which they do with the runtime.
        let _ = self.0.clone().wait_for(|count| *count > before).await;
    }
}

/// Logs go to a file beside the kubeconfig, not to destroy the table; with `RUST_LOG` and standard error somewhere else
/// they go there.
fn start_logging(scratch: &Scratch) -> anyhow::Result<()> {
    let asked = tracing_subscriber::EnvFilter::try_from_default_env().ok();
    let builder = tracing_subscriber::fmt().with_ansi(false).compact();
    match asked {
        Some(filter) if !io::stderr().is_terminal() => {
            builder.with_env_filter(filter).with_writer(io::stderr).init();
        }
        asked => {
            let filter = asked.unwrap_or_else(|| tracing_subscriber::EnvFilter::new("warn"));
            builder.with_env_filter(filter).with_writer(Mutex::new(scratch.log()?)).init();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_shell_would_take_apart_is_quoted() {
        assert_eq!(shell_word("/a-1/kubeconfig"), "/a-1/kubeconfig");
        assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
    }
}
