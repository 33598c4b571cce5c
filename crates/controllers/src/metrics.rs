//! The controllers' own metrics, named and labelled as in the original so that alerts and dashboards go on working.

use mapi_cloud::{Activity, Kind};
use mapi_core::Measure;
use mapi_runtime::metrics::{self, GaugeVec, HistogramVec, IntCounterVec};

/// Upper bounds in seconds of `mapi_machine_phase_transition_seconds`. Source: the original's metric.
const TRANSITION_BUCKETS: [f64; 13] =
    [5.0, 10.0, 20.0, 30.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 360.0, 480.0, 600.0];

/// The controllers' own metrics.
#[derive(Clone)]
pub struct Metrics {
    transitions: HistogramVec,
    create_failed: IntCounterVec,
    update_failed: IntCounterVec,
    delete_failed: IntCounterVec,
    covered: GaugeVec,
    short_circuit: GaugeVec,
    remediated: IntCounterVec,
    undecodable: IntCounterVec,
}

impl Default for Metrics {
    /// The metrics of this process; a second call gives the same ones.
    fn default() -> Self {
        let object = ["name", "namespace"];
        let failed = ["name", "namespace", "reason"];
        Self {
            transitions: metrics::histogram(
                "mapi_machine_phase_transition_seconds",
                "Seconds from the creation of a Machine to its entering a phase.",
                &["phase"],
                &TRANSITION_BUCKETS,
            ),
            create_failed: metrics::counter(
                "mapi_instance_create_failed",
                "Failed creations of instances.",
                &failed,
            ),
            update_failed: metrics::counter(
                "mapi_instance_update_failed",
                "Failed updates of instances.",
                &failed,
            ),
            delete_failed: metrics::counter(
                "mapi_instance_delete_failed",
                "Failed deletions of instances.",
                &failed,
            ),
            covered: metrics::float_gauge(
                "mapi_machinehealthcheck_nodes_covered",
                "Machines that a health check covers.",
                &object,
            ),
            short_circuit: metrics::float_gauge(
                "mapi_machinehealthcheck_short_circuit",
                "1 while a health check repairs nothing because too many machines are unhealthy.",
                &object,
            ),
            remediated: metrics::counter(
                "mapi_machinehealthcheck_remediation_success_total",
                "Machines that a health check deleted.",
                &object,
            ),
            undecodable: metrics::counter(
                "mapi_undecodable_objects_total",
                "Stored objects that could not be decoded when they were seen.",
                &["kind"],
            ),
        }
    }
}

impl Metrics {
    /// Moves a metric.
    #[expect(clippy::cast_precision_loss, reason = "counts of machines are far below 2^52")]
    pub fn record(&self, measure: &Measure) {
        match measure {
            Measure::PhaseTransition { phase, seconds } => {
                self.transitions.with_label_values(&[phase]).observe(*seconds);
            }
            Measure::InstanceFailed { activity, key, reason } => {
                let counter = match activity {
                    Activity::Create => &self.create_failed,
                    Activity::Observe | Activity::Update => &self.update_failed,
                    Activity::Delete => &self.delete_failed,
                };
                counter.with_label_values(&[&*key.name, &*key.namespace, *reason]).inc();
            }
            Measure::NodesCovered { key, count } => {
                self.covered.with_label_values(&[&*key.name, &*key.namespace]).set(*count as f64);
            }
            Measure::ShortCircuit { key, is_stopped } => {
                let value = f64::from(u8::from(*is_stopped));
                self.short_circuit.with_label_values(&[&*key.name, &*key.namespace]).set(value);
            }
            Measure::Remediated { key } => {
                self.remediated.with_label_values(&[&*key.name, &*key.namespace]).inc();
            }
            Measure::ForgetHealthCheck { key } => {
                // A series that was never made cannot be removed, and need not be.
                let labels = [&*key.name, &*key.namespace];
                let _ = self.covered.remove_label_values(&labels);
                let _ = self.short_circuit.remove_label_values(&labels);
                let _ = self.remediated.remove_label_values(&labels);
            }
        }
    }

    /// Counts a stored object that could not be decoded.
    pub fn undecodable(&self, kind: &str) {
        self.undecodable.with_label_values(&[kind]).inc();
    }

    /// Drops the failure series of a Machine that is gone, so that they do not pile up.
    pub fn forget_machine(&self, key: &mapi_api::Key) {
        for counter in [&self.create_failed, &self.update_failed, &self.delete_failed] {
            for kind in Kind::ALL {
                let _ = counter.remove_label_values(&[&*key.name, &*key.namespace, kind.word()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Weakness 34: series of what is gone must not pile up.
    #[test]
    fn the_failure_series_of_a_machine_go_with_it() {
        let (metrics, key) = (Metrics::default(), mapi_api::Key::new("ns", "gone-with-its-series"));
        for kind in Kind::ALL {
            for activity in [Activity::Create, Activity::Update, Activity::Delete] {
                metrics.record(&Measure::InstanceFailed { activity, key: key.clone(), reason: kind.word() });
            }
        }
        assert!(metrics::text().contains("gone-with-its-series"));
        metrics.forget_machine(&key);
        assert!(!metrics::text().contains("gone-with-its-series"));
    }
}
