//! metrics
pub use prometheus::{GaugeVec, HistogramVec, IntCounterVec, IntGaugeVec};
/// x
pub fn counter(_name: &str, _help: &str, _labels: &[&str]) -> IntCounterVec { todo!() }
/// x
pub fn gauge(_name: &str, _help: &str, _labels: &[&str]) -> IntGaugeVec { todo!() }
/// x
pub fn float_gauge(_name: &str, _help: &str, _labels: &[&str]) -> GaugeVec { todo!() }
/// x
pub fn histogram(_name: &str, _help: &str, _labels: &[&str], _buckets: &[f64]) -> HistogramVec { todo!() }
/// x
pub fn text() -> String { todo!() }
