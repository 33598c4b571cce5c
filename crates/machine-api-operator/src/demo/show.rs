//! The show: looks at the caches whenever something changed, a few times a second at most, until it is over.
//!
//! Never here: requests to the API server for what is shown; the controllers watch it anyhow.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mapi_api::event::{Event, EventType};
use mapi_api::{Key, Machine, MachineSet, Node, Object as _};
use mapi_controllers::Context;
use mapi_runtime::events::Listener;
use mapi_runtime::store::Change;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::frame::{Board, Note, counts, room};
use super::healing::Healing;
use super::sample::SETS;
use super::screen::{Screen, Step, time};
use super::view::{Phase, Snapshot, look};

/// Four times a second is live enough, and of thousands of machines twice.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_OF_MANY: Duration = Duration::from_millis(500);
/// From here on machines are many.
const MANY: usize = 500;
/// Without a terminal, of machines that are only counted, once a second.
const PAUSE_OF_COUNTS: Duration = Duration::from_secs(1);

/// More notes than can be shown.
const NOTES: usize = 16;

/// Events that say of a machine only what others say better.
const QUIET: [&str; 4] = ["Update", "DrainProceeds", "DrainSucceeded", "Deleted"];

/// What happened, for who looks on. Clones share it.
#[derive(Clone)]
pub struct Notes {
    began: Instant,
    last: Arc<Mutex<VecDeque<Note>>>,
    /// Whether all machines have run at some time.
    is_settled: Arc<AtomicBool>,
}

impl Notes {
    /// None yet; times are counted from `began`.
    pub fn new(began: Instant) -> Self {
        Self { began, last: Arc::default(), is_settled: Arc::default() }
    }

    /// Notes what the controllers tell.
    pub fn listener(&self) -> Listener {
        let notes = self.clone();
        Arc::new(move |_, event| {
            let Event { type_, reason, note, regarding, .. } = event;
            // While machines come, more of them have no Node than a health check allows: that is no news.
            let is_early = *reason == "RemediationRestricted" && !notes.is_settled();
            if is_early || QUIET.contains(reason) {
                return;
            }
            notes.add(*type_ == EventType::Warning, reason, &regarding.key.name, without_name(note));
        })
    }

    /// Notes something.
    pub fn add(&self, is_warning: bool, what: &str, object: &str, text: &str) {
        let at = self.began.elapsed();
        let note = Note { at, what: what.into(), object: object.into(), text: text.into(), is_warning };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() == NOTES {
            last.pop_front();
        }
        last.push_back(note);
    }

    fn settle(&self) {
        self.is_settled.store(true, Ordering::Relaxed);
    }

    fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }

    fn list(&self) -> Vec<Note> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The text of an event without the object that it names first: it stands in a column of its own.
fn without_name(note: &str) -> &str {
    let named = note.strip_prefix("Machine ").and_then(|rest| rest.split_once(' '));
    named.filter(|(name, _)| name.contains('/')).map_or(note, |(_, text)| text)
}

/// How the show ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every machine runs, and that was to be waited for.
    Complete,
    /// Nobody looks on any more.
    Unseen,
    /// The controllers ended by themselves.
    Broken,
}

/// What is shown, and to whom.
pub struct Show {
    context: Arc<Context>,
    place: String,
    began: Instant,
    notes: Notes,
    changed: Arc<Notify>,
    steps: mpsc::UnboundedReceiver<Step>,
    resized: Signal,
}

impl Show {
    /// Begins to watch the caches.
    pub fn new(context: Arc<Context>, place: String, notes: Notes) -> io::Result<Self> {
        let changed = Arc::new(Notify::new());
        let (sender, steps) = mpsc::unbounded_channel();
        let began = notes.began;
        let wake = Arc::clone(&changed);
        context.machines.subscribe(move |change: &Change<Machine>| {
            if let Some(step) = step(change, began.elapsed()) {
                // An error means that the show is over.
                let _ = sender.send(step);
            }
            wake.notify_one();
        });
        let wake = Arc::clone(&changed);
        context.sets.subscribe(move |_: &Change<MachineSet>| wake.notify_one());
        let wake = Arc::clone(&changed);
        context.nodes.subscribe(move |change: &Change<Node>| {
            let is_ready = |node: &Node| (node.is_ready(), node.is_unreachable());
            if !matches!(change, Change::Updated { old, new } if is_ready(old) == is_ready(new)) {
                wake.notify_one();
            }
        });
        let resized = signal(SignalKind::window_change())?;
        Ok(Self { context, place, began, notes, changed, steps, resized })
    }

    /// Looks, with at most so many rows.
    pub fn look(&self, room: usize) -> Snapshot {
        let Context { machines, sets, nodes, .. } = &*self.context;
        let node = |name: &str| nodes.get(&Key::cluster(name));
        look(&machines.list(), &sets.list(), node, room)
    }

    /// Shows until it is over. `goal` is how many machines there shall be at first; only with `until_complete` does it
    /// end by itself.
    pub async fn run(
        &mut self,
        screen: &mut Screen,
        mut healing: Option<&mut Healing>,
        goal: usize,
        until_complete: bool,
    ) -> anyhow::Result<Ending> {
        loop {
            let snapshot = self.refresh(screen)?;
            // The cache of the sets may lag behind what was applied.
            let of_sample = snapshot.sets.iter().filter(|set| SETS.contains(&set.name.as_str()));
            let wanted: usize = of_sample.map(|set| set.counts.wanted).sum();
            let is_complete = snapshot.counts.is_complete() && (self.notes.is_settled() || wanted == goal);
            if is_complete {
                if !self.notes.is_settled() && !until_complete {
                    let text = format!("run after {:.1} s", self.began.elapsed().as_secs_f64());
                    self.notes.add(false, "Complete", &format!("{goal} machines"), &text);
                    self.tell(screen, &counts(&snapshot.counts, "machines run").plain())?;
                }
                self.notes.settle();
                if let Some(healing) = healing.as_deref_mut()
                    && let Some(name) = healing.give(&self.context).await?
                {
                    self.tell_fault(screen, healing, &name)?;
                    continue;
                }
                let is_over = healing.as_deref().is_none_or(|healing| healing.is_over(&self.context));
                if until_complete && is_over {
                    return Ok(Ending::Complete);
                }
            }
            if self.wait(screen.is_live(), snapshot.counts.total()).await == Woken::Stopped {
                return Ok(Ending::Broken);
            }
        }
    }

    /// Says that somebody has a fault, and what is to be seen of it.
    pub fn tell_fault(&self, screen: &mut Screen, healing: &Healing, name: &str) -> anyhow::Result<()> {
        let (kind, story) = (healing.kind(), healing.story());
        self.notes.add(true, &format!("fault {kind}"), name, story);
        self.tell(screen, &format!("{name}  has the fault {kind}: {story}"))
    }

    /// A line where there is no table that has it among its notes.
    fn tell(&self, screen: &mut Screen, text: &str) -> anyhow::Result<()> {
        if !screen.is_terminal() {
            screen.say(&format!("{} {text}", time(self.began.elapsed())))?;
        }
        Ok(())
    }

    /// Shows how things stand.
    fn refresh(&mut self, screen: &mut Screen) -> io::Result<Snapshot> {
        // A guess at the number of sets is good enough for how many rows are made.
        let snapshot = self.look(room(screen.size(), self.context.sets.len()));
        let mut steps = vec![];
        while let Ok(step) = self.steps.try_recv() {
            steps.push(step);
        }
        let notes = self.notes.list();
        let board =
            Board { place: &self.place, snapshot: &snapshot, notes: &notes, elapsed: self.began.elapsed() };
        screen.show(&board, steps)?;
        Ok(snapshot)
    }

    async fn wait(&mut self, is_live: bool, machines: usize) -> Woken {
        let began = Instant::now();
        let elapsed = began - self.began;
        let next_second = self.began + Duration::from_secs(elapsed.as_secs() + 1);
        let woken = tokio::select! {
            () = self.context.stop.cancelled() => return Woken::Stopped,
            () = self.changed.notified() => Woken::Changed,
            () = sleep_until(next_second), if is_live => Woken::Changed,
            _ = self.resized.recv() => return Woken::Changed,
        };
        let pause = match (is_live, machines) {
            (true, ..MANY) => PAUSE,
            (true, _) => PAUSE_OF_MANY,
            (false, ..MANY) => PAUSE,
            (false, _) => PAUSE_OF_COUNTS,
        };
        tokio::select! {
            () = sleep(pause) => {}
            _ = self.resized.recv() => {}
        }
        woken
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woken {
    Changed,
    Stopped,
}

/// What a change is for who counts phases.
fn step(change: &Change<Machine>, at: Duration) -> Option<Step> {
    let phase = |machine: &Machine| Phase::of(machine).name();
    let (machine, from, to) = match change {
        Change::Added(machine, _) => (machine, None, Some(phase(machine))),
        Change::Updated { old, new } => (new, Some(phase(old)), Some(phase(new))),
        Change::Removed(machine) => (machine, Some(phase(machine)), None),
    };
    (from != to).then(|| Step { at, machine: machine.name().into(), from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_does_not_name_its_object_twice() {
        assert_eq!(without_name("Machine ns/check/m/n has unhealthy node n"), "has unhealthy node n");
        assert_eq!(without_name("Machine is gone"), "Machine is gone");
        assert_eq!(without_name("Node drain succeeded"), "Node drain succeeded");
    }
}
