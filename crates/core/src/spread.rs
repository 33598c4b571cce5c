//! Spreads what would otherwise happen to many objects at the same moment, without randomness: by identity.

use std::time::Duration;

/// A delay in `[0, span)`, the same for the same seed, to milliseconds.
pub(crate) fn spread(seed: &str, span: Duration) -> Duration {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(hash(seed.as_bytes()) % millis)
}

/// FNV-1a: the same in every build and process, so that equal facts give equal plans (I23).
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_identities_are_spread_over_the_whole_span() {
        let span = Duration::from_secs(100);
        let mut tenths = [0; 10];
        for i in 0..100 {
            let delay = spread(&format!("11111111-2222-3333-4444-{i:012}"), span);
            assert!(delay < span);
            tenths[usize::try_from(delay.as_secs() / 10).expect("small")] += 1;
        }
        assert!(tenths.iter().all(|count| *count > 0), "{tenths:?}");
        assert_eq!(spread("a", span), spread("a", span));
        assert_eq!(spread("a", Duration::ZERO), Duration::ZERO);
    }
}
