//! Writes events. Never here: what is worth an event.
//!
//! Emitting never blocks and never fails: what cannot be queued or written is counted and dropped. An event that repeats
//! becomes a series with a count. The text is part of what makes a repetition, so a changed text is never lost in a count.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use mapi_api::Timestamp;
use mapi_api::event::{Event, EventType};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::metrics::EVENTS_DROPPED;
use crate::worker::chain;
use crate::writes::{ApiError, Writer};

/// Room for a burst of a few events for each of a thousand machines, 300 bytes each.
const QUEUE_LIMIT: usize = 4096;

/// Requests in flight: enough to keep up with the controllers, too few to starve them.
const IN_FLIGHT: usize = 4;

/// What is quiet for six minutes is over; its next occurrence is a new event. Six minutes, because others that show
/// events take a series for finished after that time.
const SERIES_ENDS_AFTER: Duration = Duration::from_secs(360);

/// A count is written at most once a minute.
const SERIES_INTERVAL: Duration = Duration::from_secs(60);

/// Series that are remembered, 150 bytes each. Beyond it the quietest is forgotten: its repetition is a new event.
const SERIES_LIMIT: usize = 2048;

/// New events about one object: 25 at once, then one every five minutes, as users know it. Counts are free.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);

/// Limits of the API on the length of a note, in bytes.
const NOTE_LIMIT: usize = 1024;
/// The part of an object's name that goes into the name of its event, which may have 253 bytes.
const NAME_LIMIT: usize = 220;

/// Emits events. Clones share the queue.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Message>,
    listener: Option<Listener>,
}

/// Somebody in this process who is told each event as it is emitted, with the name of the controller. Must not block.
pub type Listener = Arc<dyn Fn(&'static str, &Event) + Send + Sync>;

enum Message {
    Emit(&'static str, Event),
    Flush(oneshot::Sender<()>),
}

impl Recorder {
    /// A recorder, and the work that writes its events. The work ends when all clones of the recorder are gone.
    /// `instance` is the name of this process, usually the host's.
    pub fn new(writer: Writer, instance: String, clock: Arc<dyn Clock>) -> (Self, BoxFuture<'static, ()>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LIMIT);
        let scribe = Scribe {
            writer,
            instance,
            clock,
            random: RandomState::new(),
            series: HashMap::new(),
            budgets: HashMap::new(),
            writes: FuturesUnordered::new(),
            flushes: Vec::new(),
            swept: Instant::now(),
            last_nanosecond: 0,
        };
        (Self { queue: sender, listener: None }, scribe.run(receiver).boxed())
    }

    /// The same recorder, which tells `listener` too.
    pub fn with_listener(self, listener: Listener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Queues an event. `reporter` is the name of the controller.
    pub fn emit(&self, reporter: &'static str, event: Event) {
        if let Some(listener) = &self.listener {
            listener(reporter, &event);
        }
        if self.queue.try_send(Message::Emit(reporter, event)).is_err() {
            EVENTS_DROPPED.with_label_values(&["queue"]).inc();
        }
    }

    /// Waits until all that was emitted before is written, counts included.
    pub async fn flush(&self) {
        let (sender, receiver) = oneshot::channel();
        if self.queue.send(Message::Flush(sender)).await.is_ok() {
            // An error means that the work was dropped: there is nothing to wait for.
            let _ = receiver.await;
        }
    }
}

/// What makes a repetition, as a number: 128 bits make a collision as likely as a broken disk.
type SeriesKey = (u64, u64);

struct Series {
    namespace: String,
    name: String,
    count: u32,
    written: u32,
    last: Timestamp,
    last_at: Instant,
    written_at: Instant,
    is_in_flight: bool,
}

struct Budget {
    left: f64,
    at: Instant,
}

struct Scribe {
    writer: Writer,
    instance: String,
    clock: Arc<dyn Clock>,
    random: RandomState,
    series: HashMap<SeriesKey, Series>,
    budgets: HashMap<u64, Budget>,
    writes: FuturesUnordered<BoxFuture<'static, Written>>,
    flushes: Vec<oneshot::Sender<()>>,
    swept: Instant,
    last_nanosecond: i128,
}

/// A write that ended: of which series, up to which count.
struct Written {
    key: SeriesKey,
    count: u32,
    answer: Result<(), ApiError>,
}

impl Scribe {
    async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut is_open = true;
        while is_open || !self.is_done() {
            if !is_open || !self.flushes.is_empty() {
                self.write_counts(None);
                if self.is_done() {
                    self.flushes.drain(..).for_each(|flush| _ = flush.send(()));
                    continue;
                }
            }
            let next_count = self.next_count();
            let may_take = is_open && self.flushes.is_empty() && self.writes.len() < IN_FLIGHT;
            tokio::select! {
                biased;
                Some(written) = self.writes.next() => self.written(written),
                message = queue.recv(), if may_take => match message {
                    Some(Message::Emit(reporter, event)) => self.note(reporter, event),
                    Some(Message::Flush(flush)) => self.flushes.push(flush),
                    None => is_open = false,
                },
                () = sleep_until(next_count.unwrap_or_else(Instant::now)), if next_count.is_some() => {
                    self.write_counts(Some(Instant::now()));
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.writes.is_empty() && self.series.values().all(|series| series.count == series.written)
    }

    fn note(&mut self, reporter: &'static str, event: Event) {
        let (now, now_at) = (self.clock.now(), Instant::now());
        self.sweep(now_at);
        let key = self.key(reporter, &event);
        let known = self.series.get_mut(&key).filter(|series| now_at < series.last_at + SERIES_ENDS_AFTER);
        if let Some(series) = known {
            series.count = series.count.saturating_add(1);
            (series.last, series.last_at) = (now, now_at);
            // The first repetition is written at once: a series is what people look for.
            if series.written == 1 && !series.is_in_flight {
                self.write_count(key);
            }
            return;
        }
        if !self.may_create(reporter, &event, now_at) {
            EVENTS_DROPPED.with_label_values(&["rate"]).inc();
            return;
        }
        self.create(key, reporter, event);
    }

    fn key(&self, reporter: &str, event: &Event) -> SeriesKey {
        let Event { type_, reason, action, note, regarding } = event;
        let parts = (reporter, type_, reason, action, note, regarding);
        (self.random.hash_one((0, parts)), self.random.hash_one((1, parts)))
    }

    fn may_create(&mut self, reporter: &str, event: &Event, now: Instant) -> bool {
        let object = self.random.hash_one((reporter, &event.regarding.key, &event.regarding.uid));
        let budget = self.budgets.entry(object).or_insert(Budget { left: BURST, at: now });
        let earned = (now - budget.at).as_secs_f64() / REFILL.as_secs_f64();
        *budget = Budget { left: (budget.left + earned).min(BURST), at: now };
        let may = budget.left >= 1.0;
        if may {
            budget.left -= 1.0;
        }
        may
    }

    fn create(&mut self, key: SeriesKey, reporter: &'static str, event: Event) {
        let now = self.clock.now();
        // Names must differ even if the clock stands still.
        self.last_nanosecond = now.as_nanosecond().max(self.last_nanosecond + 1);
        let object = &event.regarding.key;
        let name = format!("{}.{:x}", cut(&object.name, NAME_LIMIT), self.last_nanosecond);
        let namespace = if object.namespace.is_empty() { "default" } else { &*object.namespace };
        let body = body(&event, (namespace, &name), (reporter, &self.instance), now);
        let (namespace, at) = (namespace.to_owned(), Instant::now());
        let writer = self.writer.clone();
        self.writes.push({
            let namespace = namespace.clone();
            let write = async move { writer.create_dynamic(GROUP, PLURAL, &namespace, &body).await };
            write.map(move |answer| Written { key, count: 1, answer: answer.map(|_| ()) }).boxed()
        });
        let series = Series {
            namespace,
            name,
            count: 1,
            written: 0,
            last: now,
            last_at: at,
            written_at: at,
            is_in_flight: true,
        };
        self.series.insert(key, series);
    }

    /// Writes the counts that are due, or all.
    fn write_counts(&mut self, due: Option<Instant>) {
        let is_due = |series: &Series| due.is_none_or(|due| series.written_at + SERIES_INTERVAL <= due);
        let room = IN_FLIGHT.saturating_sub(self.writes.len());
        let open = self.series.iter().filter(|(_, series)| series.is_waiting() && is_due(series));
        let keys: Vec<SeriesKey> = open.map(|(key, _)| *key).take(room).collect();
        keys.into_iter().for_each(|key| self.write_count(key));
    }

    fn write_count(&mut self, key: SeriesKey) {
        let Some(series) = self.series.get_mut(&key) else { return };
        (series.is_in_flight, series.written_at) = (true, Instant::now());
        let count = series.count;
        let patch = json!({"series": {"count": count, "lastObservedTime": micro(series.last)}});
        let (writer, namespace, name) = (self.writer.clone(), series.namespace.clone(), series.name.clone());
        let write = async move {
            writer.patch_dynamic(GROUP, PLURAL, &mapi_api::Key::new(&namespace, &name), &patch).await
        };
        self.writes.push(write.map(move |answer| Written { key, count, answer: answer.map(|_| ()) }).boxed());
    }

    fn written(&mut self, written: Written) {
        let Written { key, count, answer } = written;
        match answer {
            Ok(()) => {
                let Some(series) = self.series.get_mut(&key) else { return };
                (series.is_in_flight, series.written) = (false, count);
                if count == 1 && series.count > 1 {
                    self.write_count(key);
                }
            }
            Err(error) => {
                // The event is gone or was never there: the next occurrence is a new one.
                self.series.remove(&key);
                EVENTS_DROPPED.with_label_values(&["refused"]).inc();
                if !error.is_namespace_terminating() && !error.is_not_found() {
                    tracing::warn!(error = chain(&error), "event dropped");
                }
            }
        }
    }

    /// When the next count is due.
    fn next_count(&self) -> Option<Instant> {
        if self.writes.len() >= IN_FLIGHT {
            return None;
        }
        let waiting = self.series.values().filter(|series| series.is_waiting());
        waiting.map(|series| series.written_at + SERIES_INTERVAL).min()
    }

    /// Forgets what is over. Runs with events only: at rest there is no timer.
    fn sweep(&mut self, now: Instant) {
        if self.series.len() >= SERIES_LIMIT {
            let idle = self.series.iter().filter(|(_, series)| !series.is_in_flight);
            let quietest =
                idle.min_by_key(|(_, series)| (series.is_waiting(), series.last_at)).map(|(key, _)| *key);
            quietest.map(|key| self.series.remove(&key));
        }
        if now < self.swept + SERIES_INTERVAL {
            return;
        }
        self.swept = now;
        self.series
            .retain(|_, series| series.count != series.written || now < series.last_at + SERIES_ENDS_AFTER);
        self.series.shrink_to(SERIES_LIMIT / 8);
        let full_again = |budget: &Budget| (BURST - budget.left) * REFILL.as_secs_f64();
        self.budgets.retain(|_, budget| (now - budget.at).as_secs_f64() < full_again(budget));
        self.budgets.shrink_to(SERIES_LIMIT / 8);
    }
}

impl Series {
    /// Whether there is a count that nobody is writing.
    fn is_waiting(&self) -> bool {
        self.count != self.written && !self.is_in_flight
    }
}

const GROUP: &str = "events.k8s.io/v1";
const PLURAL: &str = "events";

fn body(
    event: &Event,
    (namespace, name): (&str, &str),
    (reporter, instance): (&str, &str),
    now: Timestamp,
) -> Value {
    let Event { type_, reason, action, note, regarding } = event;
    let type_ = match type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    };
    json!({
        "apiVersion": GROUP,
        "kind": "Event",
        "metadata": {"namespace": namespace, "name": name},
        "eventTime": micro(now),
        "reportingController": reporter,
        "reportingInstance": cut(instance, 128),
        "type": type_,
        "reason": reason,
        "action": action,
        "note": cut(note, NOTE_LIMIT),
        "regarding": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "namespace": &*regarding.key.namespace,
            "name": &*regarding.key.name,
            "uid": regarding.uid,
        },
    })
}

/// With microseconds, always six digits, as the API wants it.
fn micro(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// The longest prefix of at most `limit` bytes.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests;
