//! The API server in this process: the embedded control plane, with the system's clock and chance, and who runs its loops.
//!
//! Never here: what it answers.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mapi_api::Timestamp;
use mapi_devplane::{Environment, Plane};
use tokio::time::sleep;

/// Clock and chance of this computer.
#[derive(Default)]
pub struct System {
    keys: RandomState,
    count: AtomicU64,
}

impl Environment for System {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u64 {
        // A keyed hash of numbers that differ: who does not know the keys, which the system chose, cannot guess it.
        self.keys.hash_one(self.count.fetch_add(1, Ordering::Relaxed))
    }
}

/// Twenty times a second: what the loops do in between is done together, and nobody waits for it longer.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs the loops of a plane, for as long as it is polled.
pub async fn run_loops(plane: Plane, environment: Arc<dyn Environment>) {
    loop {
        let due = plane.work();
        let until = due.map(|due| due.duration_since(environment.now()).unsigned_abs());
        tokio::select! {
            () = plane.changed() => {}
            () = sleep(until.unwrap_or(Duration::MAX)), if until.is_some() => {}
        }
        sleep(PAUSE).await;
    }
}
