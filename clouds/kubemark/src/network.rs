//! Addresses of simulated instances: ranges, and the place of an instance in a range. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::hash::hash;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    base: u128,
    host_bits: u32,
    is_v6: bool,
}

impl Cidr {
    /// Reads `10.200.0.0/16` or `fd00:200::/64`. The error says what is allowed.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "must be an address range such as 10.200.0.0/16 or fd00:200::/64";
        let (address, prefix) = text.split_once('/').ok_or(FORM)?;
        let prefix: u32 = prefix.parse().map_err(|_| FORM)?;
        let (value, width, is_v6) = match address.parse().map_err(|_| FORM)? {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32, false),
            IpAddr::V6(address) => (u128::from(address), 128, true),
        };
        let host_bits = u32::checked_sub(width, prefix).ok_or(FORM)?;
        if host_bits < 3 {
            return Err("must leave at least 3 bits for hosts");
        }
        if host_bits >= 128 {
            return Err("must have a prefix of at least 1 bit");
        }
        let mask = (1u128 << host_bits) - 1;
        Ok(Self { base: value & !mask, host_bits, is_v6 })
    }

    /// Whether it is a range of IPv6.
    pub fn is_v6(self) -> bool {
        self.is_v6
    }

    /// Whether two ranges have an address in common.
    pub fn overlaps(self, other: Self) -> bool {
        let bits = self.host_bits.max(other.host_bits);
        self.is_v6 == other.is_v6 && self.base >> bits == other.base >> bits
    }

    /// Candidates for the address of an instance, the best first: one chosen by the hash of its id, then those that follow
    /// it, round the range. The network, the router's usual place and the broadcast address are spared.
    ///
    /// The hash alone would not do: among n machines of a /16 two meet with a probability of about n²/131,072, even odds at 300
    /// and near certainty at 1,000. So whoever creates skips the addresses that are taken.
    pub fn candidates(self, id: &str) -> impl Iterator<Item = IpAddr> {
        let usable = (1u128 << self.host_bits) - 3;
        let first = hash(&["address", id]) % usable;
        (0..usable.min(MOST_CANDIDATES)).map(move |step| self.address(2 + (first + step) % usable))
    }

    fn address(self, host: u128) -> IpAddr {
        let value = self.base | host;
        if self.is_v6 {
            IpAddr::V6(Ipv6Addr::from(value))
        } else {
            IpAddr::V4(Ipv4Addr::from(u32::try_from(value).expect("an IPv4 range holds 32-bit addresses")))
        }
    }
}

/// As many places as the default range has: every one of them is tried.
const MOST_CANDIDATES: u128 = 1 << 16;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(text: &str) -> Cidr {
        Cidr::parse(text).expect("a range")
    }

    #[test]
    fn an_instance_has_the_same_first_address_every_time_and_it_is_in_the_range() {
        let first = |id| range("10.200.0.0/16").candidates(id).next().expect("one").to_string();
        assert_eq!(first("a"), first("a"));
        assert!(first("a").starts_with("10.200."));
        let sixth = range("fd00:200::/64").candidates("a").next().expect("one");
        assert!(sixth.to_string().starts_with("fd00:200:"), "{sixth}");
    }

    #[test]
    fn every_host_of_a_small_range_is_a_candidate_once() {
        let all: Vec<IpAddr> = range("192.168.7.0/29").candidates("a").collect();
        let distinct: BTreeSet<IpAddr> = all.iter().copied().collect();
        assert_eq!((all.len(), distinct.len()), (5, 5));
        for spared in ["192.168.7.0", "192.168.7.1", "192.168.7.7"] {
            assert!(!distinct.contains(&spared.parse().expect("an address")), "{spared}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/30", "::/0", "x/8", "10.0.0.0/-1"] {
            assert!(Cidr::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_overlap_when_one_holds_the_other() {
        assert!(range("10.240.0.0/12").overlaps(range("10.244.7.0/24")));
        assert!(!range("10.240.0.0/12").overlaps(range("10.200.0.0/16")));
    }
}
