//! Random numbers that can be had again: a failing run prints its seed.

use std::time::SystemTime;

/// A sequence of numbers that depends on its seed alone.
#[derive(Debug, Clone)]
pub struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    /// The sequence of the seed in the environment variable `E2E_SEED`, else one that never was before.
    pub fn from_env() -> Chance {
        let now = || {
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_nanos() as u64)
        };
        let seed = match std::env::var("E2E_SEED") {
            Ok(text) => text.parse().expect("E2E_SEED is a whole number"),
            Err(_) => now() ^ u64::from(std::process::id()),
        };
        Chance { seed, state: seed }
    }

    /// What to set `E2E_SEED` to.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A number from 0 to `limit - 1`. The bias of the remainder does not matter for limits as small as ours.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// `count` different numbers from 0 to `limit - 1`.
    pub fn some_of(&mut self, limit: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..limit).collect();
        for place in 0..count.min(limit) {
            let other = place + self.below((limit - place) as u64) as usize;
            all.swap(place, other);
        }
        all.truncate(count);
        all
    }

    /// SplitMix64: public domain, and every seed is a good one.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
