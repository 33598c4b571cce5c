//! A hash whose values never change: names, addresses and variation of instances come from it, so that a create that is
//! repeated, by whatever process, is the same create.

/// FNV-1a over the parts, with a separator that is in none of them, and a last mix that spreads its weak low bits.
pub fn hash(parts: &[&str]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut state = OFFSET;
    for part in parts {
        for byte in part.bytes().chain([0xff]) {
            state = (state ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    state ^= state >> 64;
    state = state.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    state ^ (state >> 61)
}

/// A value that is uniform in `[0, 1)`.
pub fn fraction(parts: &[&str]) -> f64 {
    let bits = (hash(parts) >> 75) as u64;
    bits as f64 / (1u64 << 53) as f64
}

/// Identity of the instance of a Machine: `i-sim-` and 17 hexadecimal digits of the hash of the Machine's UID. Sixty-eight
/// bits: among a hundred thousand machines two are alike with a probability of about 2e-11, and then the second
/// one is refused with an error that says so.
pub fn instance_id(machine_uid: &str) -> String {
    format!("i-sim-{:017x}", hash(&["instance", machine_uid]) >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instance_of_a_machine_never_changes_its_name() {
        assert_eq!(
            instance_id("5f0c8e5e-0000-4000-8000-000000000001"),
            instance_id("5f0c8e5e-0000-4000-8000-000000000001")
        );
        assert_eq!(instance_id("a").len(), "i-sim-".len() + 17);
        assert_ne!(instance_id("a"), instance_id("b"));
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
    }

    #[test]
    fn fractions_are_spread_evenly() {
        let mut buckets = [0; 10];
        for n in 0..10_000 {
            buckets[(fraction(&["test", &n.to_string()]) * 10.0) as usize] += 1;
        }
        assert!(buckets.iter().all(|count| (900..1100).contains(count)), "{buckets:?}");
    }
}
