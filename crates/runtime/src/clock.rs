//! The wall clock as a value that is handed in. Never here: durations of waits, which are the async runtime's.

use mapi_api::Timestamp;

/// What time it is for people and for the API server.
pub trait Clock: Send + Sync {
    /// The present time.
    fn now(&self) -> Timestamp;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
