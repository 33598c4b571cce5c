//! Size of one machine, for scaling from zero.

use std::collections::BTreeMap;

/// What a Node made from a provider spec would offer.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Virtual CPUs, whole.
    pub cpus: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// GPUs.
    pub gpus: u64,
    /// Pods that fit; `None` if unknown.
    pub max_pods: Option<u64>,
    /// Labels that the Node will carry, for example `kubernetes.io/arch`.
    pub labels: BTreeMap<String, String>,
}
