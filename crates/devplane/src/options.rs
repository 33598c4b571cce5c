//! What may differ from plane to plane. Never here: time and chance, which are handed in as they are asked for.

use std::sync::Arc;

use jiff::SignedDuration;

use crate::audit::Audit;

/// How a plane behaves. The default is what Kubernetes does by default.
#[derive(Clone)]
pub struct Options {
    /// How long a node may be silent before it is Unknown.
    pub node_grace: SignedDuration,
    /// The same for a node that has never said how it is.
    pub node_startup_grace: SignedDuration,
    /// How long pods stay on a node that is silent or not ready, unless they say so themselves, in whole seconds.
    pub pod_toleration: SignedDuration,
    /// How long a pod stays whose node does not exist.
    pub orphan_grace: SignedDuration,
    /// How long an event is kept after it was last written.
    pub event_age: SignedDuration,
    /// The certificate authority that the ConfigMap `kube-root-ca.crt` of each namespace holds; without it there is none.
    pub ca: Option<String>,
    /// Who is told of every write.
    pub audit: Option<Arc<Audit>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            node_grace: SignedDuration::from_secs(50),
            node_startup_grace: SignedDuration::from_secs(60),
            pod_toleration: SignedDuration::from_secs(300),
            orphan_grace: SignedDuration::from_secs(40),
            event_age: SignedDuration::from_hours(1),
            ca: None,
            audit: None,
        }
    }
}
