//! The time and the chance of the system. Never here: any other.

use jiff::Timestamp;
use rustls::crypto::SecureRandom;

use crate::environment::Environment;

/// The clock of the system, and random numbers that nobody can guess: tokens are made of them.
pub struct System {
    random: &'static dyn SecureRandom,
}

impl System {
    /// The system.
    pub fn new() -> System {
        System { random: rustls::crypto::ring::default_provider().secure_random }
    }
}

impl Default for System {
    fn default() -> Self {
        System::new()
    }
}

impl Environment for System {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes).expect("the system has random numbers to give");
        u64::from_ne_bytes(bytes)
    }
}
