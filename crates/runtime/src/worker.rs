//! Runs reconciles: takes keys from a queue, calls one function, puts keys back. Never here: what a reconcile does.

use std::any::Any;
use std::fmt::Display;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use crate::metrics::ReconcileMetrics;
use crate::queue::Queue;
use crate::{CancellationToken, Error};

/// What becomes of a key after a reconcile that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Nothing, until somebody adds it.
    Done,
    /// It comes again after this time. Its failures are forgotten.
    After(Duration),
    /// It comes again after its back-off, as after a failure.
    Backoff,
}

/// Reconciles keys, `workers` at a time, until the queue is closed and the reconciles that began have ended.
///
/// An error or a panic is logged and the key comes again after its back-off; other keys go on.
pub async fn run<K, F, Fut>(queue: Queue<K>, workers: usize, reconcile: F)
where
    K: Clone + Eq + Hash + Display + Send + Sync + 'static,
    F: Fn(K) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Requeue, Error>> + Send + 'static,
{
    let metrics = ReconcileMetrics::new(queue.name());
    metrics.workers_limit.set(workers.try_into().unwrap_or(i64::MAX));
    let mut tasks = JoinSet::new();
    for _ in 0..workers.max(1) {
        tasks.spawn(work(queue.clone(), metrics.clone(), reconcile.clone()));
    }
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(controller = queue.name(), %error, "a worker ended before its queue");
        }
    }
}

/// Works keys of a queue, as [`run`] does, until `stop`. Returns once the reconciles that had begun have ended.
pub async fn run_until<K, F, Fut>(stop: &CancellationToken, queue: &Queue<K>, workers: usize, reconcile: F)
where
    K: Clone + Eq + Hash + Display + Send + Sync + 'static,
    F: Fn(K) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Requeue, Error>> + Send + 'static,
{
    let end = async {
        stop.cancelled().await;
        queue.close();
    };
    tokio::join!(run(queue.clone(), workers, reconcile), end);
}

async fn work<K, F, Fut>(queue: Queue<K>, metrics: ReconcileMetrics, reconcile: F)
where
    K: Clone + Eq + Hash + Display,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Result<Requeue, Error>>,
{
    while let Some(key) = queue.next().await {
        metrics.active.inc();
        let start = Instant::now();
        // The closure runs inside, so that a panic before the first await is caught too. Nothing is shared with the
        // reconcile but its own captures, whose locks recover from poisoning or fail the next reconcile.
        let guarded = AssertUnwindSafe(async { reconcile(key.clone()).await }).catch_unwind();
        // What is logged on the way names the key it is about.
        let span = tracing::debug_span!("reconcile", controller = queue.name(), %key);
        let answer = guarded.instrument(span).await.unwrap_or_else(|panic| {
            metrics.panics.inc();
            Err(format!("panicked: {}", panic_text(&*panic)).into())
        });
        metrics.seconds.observe(start.elapsed().as_secs_f64());
        metrics.active.dec();
        settle(&queue, &metrics, &key, answer);
        queue.done(&key);
    }
}

fn settle<K: Clone + Eq + Hash + Display>(
    queue: &Queue<K>,
    metrics: &ReconcileMetrics,
    key: &K,
    answer: Result<Requeue, Error>,
) {
    match answer {
        Ok(Requeue::Done) => {
            metrics.success.inc();
            queue.forget(key);
        }
        Ok(Requeue::After(delay)) => {
            metrics.requeue_after.inc();
            queue.forget(key);
            queue.add_after(key.clone(), delay);
        }
        Ok(Requeue::Backoff) => {
            metrics.requeue.inc();
            queue.add_backoff(key.clone());
        }
        Err(error) => {
            metrics.error.inc();
            metrics.errors.inc();
            let retry_in = queue.add_backoff(key.clone());
            let (controller, error) = (queue.name(), chain(&*error));
            tracing::error!(controller, %key, error, ?retry_in, failures = queue.failures(key), "reconcile failed");
        }
    }
}

/// An error and its causes on one line. A cause that the text before it already ends with is not repeated.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let next = source.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = source.source();
    }
    text
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::queue::Backoff;

    #[tokio::test(start_paused = true)]
    async fn a_panic_is_an_error_of_its_key_and_others_go_on() {
        let queue = Queue::new("panics", Backoff::default());
        let seen = Arc::new(Mutex::new(Vec::new()));
        for key in ["bad", "good"] {
            queue.add(key);
        }
        let reconcile = {
            let (queue, seen) = (queue.clone(), seen.clone());
            move |key: &'static str| {
                let failures = queue.failures(&key);
                assert!(key != "bad" || failures > 0, "the first time is bad");
                seen.lock().unwrap().push((key, failures));
                if seen.lock().unwrap().len() == 2 {
                    queue.close();
                }
                async { Ok(Requeue::Done) }
            }
        };
        run(queue.clone(), 1, reconcile).await;
        assert_eq!(*seen.lock().unwrap(), [("good", 0), ("bad", 1)]);
        assert_eq!(queue.failures(&"bad"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_decides_when_a_key_comes_again() {
        let check = async |answers: [Result<Requeue, &'static str>; 3], times_ms: [u128; 3]| {
            let queue = Queue::new("answers", Backoff::default());
            let start = Instant::now();
            let times = Arc::new(Mutex::new(Vec::new()));
            queue.add("a");
            run(queue.clone(), 3, {
                let (queue, times) = (queue.clone(), times.clone());
                move |_| {
                    let mut times = times.lock().unwrap();
                    times.push(start.elapsed().as_millis());
                    let answer = answers[times.len() - 1];
                    if times.len() == 3 {
                        queue.close();
                    }
                    async move { answer.map_err(Error::from) }
                }
            })
            .await;
            assert_eq!(*times.lock().unwrap(), times_ms, "{answers:?}");
        };
        let second = Requeue::After(Duration::from_secs(1));
        // The timer of the paused clock has a resolution of one millisecond.
        check([Err("e"), Err("e"), Ok(Requeue::Done)], [0, 5, 15]).await;
        check([Ok(Requeue::Backoff), Ok(Requeue::Backoff), Ok(Requeue::Done)], [0, 5, 15]).await;
        check([Err("e"), Ok(second), Ok(Requeue::Done)], [0, 5, 1005]).await;
        check([Ok(second), Err("e"), Ok(Requeue::Done)], [0, 1000, 1005]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_reconciles_run_at_once_than_there_are_workers_and_the_end_waits_for_them() {
        let queue = Queue::new("bounded", Backoff::default());
        let (active, peak, ended) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let counters = Arc::new((active, peak, ended));
        for key in 0..10 {
            queue.add(key);
        }
        let running = tokio::spawn(run(queue.clone(), 3, {
            let counters = counters.clone();
            move |_| {
                let counters = counters.clone();
                async move {
                    let now = counters.0.fetch_add(1, Ordering::SeqCst) + 1;
                    counters.1.fetch_max(now, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    counters.0.fetch_sub(1, Ordering::SeqCst);
                    counters.2.fetch_add(1, Ordering::SeqCst);
                    Ok(Requeue::Done)
                }
            }
        }));
        tokio::time::sleep(Duration::from_secs(5)).await;
        queue.close();
        running.await.unwrap();
        assert_eq!(counters.1.load(Ordering::SeqCst), 3);
        assert_eq!(counters.2.load(Ordering::SeqCst), 3, "those that began have ended, others never begin");
    }

    #[test]
    fn a_chain_names_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("cannot patch `a`")]
        struct Outer(#[source] std::io::Error);
        let outer = Outer(std::io::Error::other("refused"));
        assert_eq!(chain(&outer), "cannot patch `a`: refused");
    }
}
