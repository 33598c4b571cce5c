//! Metrics of the process: makes them, and writes them as text. Never here: what is counted by one controller alone.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use prometheus::core::Collector;
use prometheus::{Encoder, HistogramOpts, Opts, TextEncoder};
pub use prometheus::{GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// Everything that was made, by name, so that asking twice gives the same metric.
static KNOWN: Mutex<BTreeMap<String, Metric>> = Mutex::new(BTreeMap::new());

#[derive(Clone)]
enum Metric {
    Counter(IntCounterVec),
    Gauge(IntGaugeVec),
    FloatGauge(GaugeVec),
    Histogram(HistogramVec),
}

/// The counter of a name. Panics if the name is not valid or belongs to another kind of metric.
pub fn counter(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    let make = || register(IntCounterVec::new(Opts::new(name, help), labels)).map(Metric::Counter);
    match known(name, make) {
        Metric::Counter(metric) => metric,
        Metric::Gauge(_) | Metric::FloatGauge(_) | Metric::Histogram(_) => {
            panic!("metric `{name}` is not a counter")
        }
    }
}

/// The gauge of a name. Panics as [`counter`] does.
pub fn gauge(name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    let make = || register(IntGaugeVec::new(Opts::new(name, help), labels)).map(Metric::Gauge);
    match known(name, make) {
        Metric::Gauge(metric) => metric,
        Metric::Counter(_) | Metric::FloatGauge(_) | Metric::Histogram(_) => {
            panic!("metric `{name}` is not a gauge")
        }
    }
}

/// The gauge of a name whose values have fractions. Panics as [`counter`] does.
pub fn float_gauge(name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    let make = || register(GaugeVec::new(Opts::new(name, help), labels)).map(Metric::FloatGauge);
    match known(name, make) {
        Metric::FloatGauge(metric) => metric,
        Metric::Counter(_) | Metric::Gauge(_) | Metric::Histogram(_) => {
            panic!("metric `{name}` has no fractions")
        }
    }
}

/// The histogram of a name. Panics as [`counter`] does.
pub fn histogram(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    let options = || HistogramOpts::new(name, help).buckets(buckets.to_vec());
    let make = || register(HistogramVec::new(options(), labels)).map(Metric::Histogram);
    match known(name, make) {
        Metric::Histogram(metric) => metric,
        Metric::Counter(_) | Metric::Gauge(_) | Metric::FloatGauge(_) => {
            panic!("metric `{name}` is not a histogram")
        }
    }
}

/// All metrics in the text format, those of the process included.
pub fn text() -> String {
    let mut text = Vec::new();
    if let Err(error) = TextEncoder::new().encode(&prometheus::gather(), &mut text) {
        tracing::error!(%error, "cannot encode metrics");
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// The media type of [`text`].
pub(crate) const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

fn known(name: &str, make: impl FnOnce() -> prometheus::Result<Metric>) -> Metric {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(metric) = known.get(name) {
        return metric.clone();
    }
    let metric = make().expect("a metric has a valid name and is made here only");
    known.insert(name.to_owned(), metric.clone());
    metric
}

fn register<M: Collector + Clone + 'static>(metric: prometheus::Result<M>) -> prometheus::Result<M> {
    let metric = metric?;
    prometheus::default_registry().register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// From a tenth of a millisecond to 100 s: a look into the cache up to an answer of a slow cloud.
const SECONDS: &[f64] = &[0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 100.0];

/// What is known of one queue. Names are those that users know from other controllers.
pub(crate) struct QueueMetrics {
    pub(crate) depth: IntGauge,
    pub(crate) adds: IntCounter,
    pub(crate) retries: IntCounter,
    pub(crate) waited: Histogram,
    pub(crate) worked: Histogram,
}

impl QueueMetrics {
    pub(crate) fn new(queue: &str) -> Self {
        let (counter, label) =
            (|name, help| counter(name, help, &["name"]).with_label_values(&[queue]), &["name"]);
        let time = |name, help| histogram(name, help, label, SECONDS).with_label_values(&[queue]);
        Self {
            depth: gauge("workqueue_depth", "Keys that are ready.", label).with_label_values(&[queue]),
            adds: counter("workqueue_adds_total", "Keys that were added."),
            retries: counter("workqueue_retries_total", "Keys that were added with a back-off."),
            waited: time(
                "workqueue_queue_duration_seconds",
                "How long keys were ready before they were taken.",
            ),
            worked: time("workqueue_work_duration_seconds", "How long keys were worked on."),
        }
    }
}

/// What is known of the reconciles of one controller.
#[derive(Clone)]
pub(crate) struct ReconcileMetrics {
    pub(crate) success: IntCounter,
    pub(crate) error: IntCounter,
    pub(crate) requeue: IntCounter,
    pub(crate) requeue_after: IntCounter,
    pub(crate) errors: IntCounter,
    pub(crate) panics: IntCounter,
    pub(crate) seconds: Histogram,
    pub(crate) active: IntGauge,
    pub(crate) workers_limit: IntGauge,
}

impl ReconcileMetrics {
    pub(crate) fn new(controller: &str) -> Self {
        let (label, name) = (&["controller"], &[controller]);
        let total =
            counter("controller_runtime_reconcile_total", "Reconciles by result.", &["controller", "result"]);
        let result = |result| total.with_label_values(&[controller, result]);
        let count = |metric, help| counter(metric, help, label).with_label_values(name);
        let level = |metric, help| gauge(metric, help, label).with_label_values(name);
        let seconds = "controller_runtime_reconcile_time_seconds";
        Self {
            success: result("success"),
            error: result("error"),
            requeue: result("requeue"),
            requeue_after: result("requeue_after"),
            errors: count("controller_runtime_reconcile_errors_total", "Reconciles that failed."),
            panics: count("controller_runtime_reconcile_panics_total", "Reconciles that panicked."),
            seconds: histogram(seconds, "How long reconciles took.", label, SECONDS).with_label_values(name),
            active: level("controller_runtime_active_workers", "Reconciles that run."),
            workers_limit: level(
                "controller_runtime_max_concurrent_reconciles",
                "Reconciles that may run at once.",
            ),
        }
    }
}

/// Writes to the API server, counted where all of them pass.
pub(crate) static API_WRITES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Requests that ask the API server for a change, by resource, verb and answer (0: no answer).";
    counter("mapi_api_writes_total", help, &["resource", "verb", "code"])
});

/// All requests, those that were sent again included.
pub(crate) static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    let help = "Requests to the API server, by answer and method.";
    counter("rest_client_requests_total", help, &["code", "method"])
});

/// Events that were not written.
pub(crate) static EVENTS_DROPPED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counter("mapi_events_dropped_total", "Events that were not written, by cause.", &["cause"])
});

/// Whether this process holds a lease.
pub(crate) static LEADER: LazyLock<IntGaugeVec> = LazyLock::new(|| {
    gauge("leader_election_master_status", "1 while this process holds the lease.", &["name"])
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_one_metric_and_its_text() {
        for _ in 0..2 {
            counter("mapi_test_total", "A test.", &["kind"]).with_label_values(&["a"]).inc();
        }
        let text = text();
        assert!(text.contains("mapi_test_total{kind=\"a\"} 2\n"), "{text}");
        assert!(text.contains("process_resident_memory_bytes"), "{text}");
    }
}
