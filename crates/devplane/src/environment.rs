//! What is handed in: the time and the chance. Never here: where either comes from.

use jiff::Timestamp;

/// The world around a plane. A server hands in the system's clock and randomness, a simulator its own.
pub trait Environment: Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// A random number, all 64 bits equally likely.
    fn random(&self) -> u64;
}

/// A time as objects carry it: whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A time with microseconds, as leases and events carry it.
pub(crate) fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// A random UUID, version 4.
pub(crate) fn uid(environment: &dyn Environment) -> String {
    let (high, low) = (environment.random(), environment.random());
    let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0x0fff | 0x4000);
    let (d, e) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
}

/// What `generateName` is completed with: five characters that cannot make up words.
pub(crate) fn suffix(environment: &dyn Environment) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut number = environment.random();
    let mut letters = String::with_capacity(5);
    for _ in 0..5 {
        let count = LETTERS.len() as u64;
        letters
            .push(char::from(LETTERS[usize::try_from(number % count).expect("it is less than the count")]));
        number /= count;
    }
    letters
}
