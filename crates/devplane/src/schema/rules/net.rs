//! Addresses, networks and URLs, as values of rules. Never here: connections.

use std::any::Any;
use std::net::IpAddr;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use cel::{DeclarationError, Env, add_member_overload, add_overload};

use super::super::formats;

static ADDRESS: Type = Type::new_unspecified_type("net.IP");
static NETWORK: Type = Type::new_unspecified_type("net.CIDR");
static LOCATION: Type = Type::new_unspecified_type("kubernetes.URL");

/// An IP address.
#[derive(Clone, Debug, PartialEq)]
struct Address(IpAddr);

/// A range of addresses.
#[derive(Clone, Debug, PartialEq)]
struct Network {
    address: IpAddr,
    bits: u8,
}

/// A URL.
#[derive(Clone, Debug, PartialEq)]
struct Location(String);

/// What the types are as values.
macro_rules! value {
    ($name:ident, $kind:ident) => {
        impl Val for $name {
            fn get_type(&self) -> &Type {
                &$kind
            }
            fn cel_type() -> &'static Type {
                &$kind
            }
            fn equals(&self, other: &dyn Val) -> bool {
                other.downcast_ref::<$name>() == Some(self)
            }
            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
                Box::new(self.clone())
            }
            fn as_any(&self) -> Option<&dyn Any> {
                Some(self)
            }
        }

        impl StaticVal for $name {}
    };
}

value!(Address, ADDRESS);
value!(Network, NETWORK);
value!(Location, LOCATION);

/// Functions of addresses, networks and URLs.
pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn is_ip: (CelString) -> CelBool, name = "isIP")?;
    add_overload!(env, fn ip: (CelString) -> Result<Address>)?;
    add_overload!(env, fn is_canonical: (CelString) -> Result<CelBool>, name = "ip.isCanonical")?;
    add_overload!(env, fn address_text: (Address) -> CelString, name = "string")?;
    add_member_overload!(env, fn family: (Address) -> CelInt)?;
    add_member_overload!(env, fn is_unspecified: (Address) -> CelBool)?;
    add_member_overload!(env, fn is_loopback: (Address) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_multicast: (Address) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_unicast: (Address) -> CelBool)?;
    add_member_overload!(env, fn is_global_unicast: (Address) -> CelBool)?;
    add_overload!(env, fn is_cidr: (CelString) -> CelBool, name = "isCIDR")?;
    add_overload!(env, fn cidr: (CelString) -> Result<Network>)?;
    add_overload!(env, fn network_text: (Network) -> CelString, name = "string")?;
    add_member_overload!(env, fn contains_ip: (Network, Address) -> CelBool, name = "containsIP")?;
    add_member_overload!(env, fn contains_ip_text: (Network, CelString) -> Result<CelBool>, name = "containsIP")?;
    add_member_overload!(env, fn contains_cidr: (Network, Network) -> CelBool, name = "containsCIDR")?;
    add_member_overload!(env, fn contains_cidr_text: (Network, CelString) -> Result<CelBool>, name = "containsCIDR")?;
    add_member_overload!(env, fn network_ip: (Network) -> Address, name = "ip")?;
    add_member_overload!(env, fn masked: (Network) -> Network)?;
    add_member_overload!(env, fn prefix_length: (Network) -> CelInt)?;
    add_overload!(env, fn is_url: (CelString) -> CelBool, name = "isURL")?;
    add_overload!(env, fn url: (CelString) -> Result<Location>)?;
    add_member_overload!(env, fn get_scheme: (Location) -> CelString)?;
    add_member_overload!(env, fn get_host: (Location) -> CelString)?;
    add_member_overload!(env, fn get_hostname: (Location) -> CelString)?;
    add_member_overload!(env, fn get_port: (Location) -> CelString)?;
    add_member_overload!(env, fn get_escaped_path: (Location) -> CelString)
}

/// Without a zone, and IPv4 only as IPv4.
fn address(text: &str) -> Result<IpAddr, String> {
    let wrong = |why: &str| format!("IP Address {text:?} parse error during conversion from string: {why}");
    match text.parse() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {text:?} is not allowed"))
        }
        Ok(address) => Ok(address),
        Err(_) => Err(wrong(&format!("ParseAddr({text:?}): unable to parse IP"))),
    }
}

fn network(text: &str) -> Result<Network, String> {
    let wrong = |why: &str| {
        let what = "network address parse error during conversion from string";
        format!("{what}: {what}: netip.ParsePrefix({text:?}): {why}")
    };
    let (address, bits) = text.split_once('/').ok_or_else(|| wrong("no '/'"))?;
    let address: IpAddr =
        address.parse().map_err(|_| wrong(&format!("ParseAddr({address:?}): unable to parse IP")))?;
    if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
        return Err(wrong("IPv4-mapped IPv6 address is not allowed"));
    }
    let is_plain = bits == "0" || !bits.starts_with('0') && bits.bytes().all(|byte| byte.is_ascii_digit());
    let count: Option<u8> = bits.parse().ok().filter(|_| is_plain);
    let bits = count.ok_or_else(|| wrong(&format!("bad bits after slash: {bits:?}")))?;
    if bits > width(address) {
        Err(wrong("prefix length out of range"))
    } else {
        Ok(Network { address, bits })
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The bits of an address, at the upper end.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Network {
    fn mask(&self) -> u128 {
        u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or_default()
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && (bits(address) ^ bits(self.address)) & self.mask() == 0
    }
}

fn text<'v>(text: impl Into<String>) -> CelString<'v> {
    CelString::from(text.into())
}

fn is_ip(given: &CelString<'_>) -> CelBool {
    address(given.inner()).is_ok().into()
}

fn ip(given: &CelString<'_>) -> Result<Address, ExecutionError> {
    address(given.inner()).map(Address).map_err(|why| ExecutionError::function_error("ip", why))
}

fn is_canonical(given: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok((ip(given)?.0.to_string() == given.inner()).into())
}

fn address_text<'v>(address: &Address) -> CelString<'v> {
    text(address.0.to_string())
}

fn family(address: &Address) -> CelInt {
    CelInt::from(if address.0.is_ipv4() { 4 } else { 6 })
}

fn is_unspecified(address: &Address) -> CelBool {
    address.0.is_unspecified().into()
}

fn is_loopback(address: &Address) -> CelBool {
    address.0.is_loopback().into()
}

fn is_link_local_multicast(address: &Address) -> CelBool {
    let is_local = match address.0 {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    };
    is_local.into()
}

fn is_link_local_unicast(address: &Address) -> CelBool {
    let is_local = match address.0 {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    is_local.into()
}

fn is_global_unicast(address: &Address) -> CelBool {
    let ip = address.0;
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    let is_local = *is_link_local_unicast(address).inner();
    (!is_broadcast && !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast() && !is_local).into()
}

fn is_cidr(given: &CelString<'_>) -> CelBool {
    network(given.inner()).is_ok().into()
}

fn cidr(given: &CelString<'_>) -> Result<Network, ExecutionError> {
    network(given.inner()).map_err(|why| ExecutionError::function_error("cidr", why))
}

fn network_text<'v>(network: &Network) -> CelString<'v> {
    text(format!("{}/{}", network.address, network.bits))
}

fn contains_ip(network: &Network, address: &Address) -> CelBool {
    network.contains(address.0).into()
}

fn contains_ip_text(network: &Network, given: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_ip(network, &ip(given)?))
}

fn contains_cidr(network: &Network, other: &Network) -> CelBool {
    (network.bits <= other.bits && network.contains(other.address)).into()
}

fn contains_cidr_text(network: &Network, given: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(contains_cidr(network, &cidr(given)?))
}

fn network_ip(network: &Network) -> Address {
    Address(network.address)
}

fn masked(network: &Network) -> Network {
    let kept = bits(network.address) & network.mask();
    let address = match network.address {
        IpAddr::V4(_) => IpAddr::V4(u32::try_from(kept >> 96).expect("32 bits are left").into()),
        IpAddr::V6(_) => IpAddr::V6(kept.into()),
    };
    Network { address, bits: network.bits }
}

fn prefix_length(network: &Network) -> CelInt {
    CelInt::from(i64::from(network.bits))
}

fn is_url(given: &CelString<'_>) -> CelBool {
    formats::matches("uri", given.inner()).into()
}

fn url(given: &CelString<'_>) -> Result<Location, ExecutionError> {
    if formats::matches("uri", given.inner()) {
        return Ok(Location(given.inner().to_owned()));
    }
    let why = format!(
        "URL parse error during conversion from string: parse {:?}: invalid URI for request",
        given.inner()
    );
    Err(ExecutionError::function_error("url", why))
}

impl Location {
    /// Scheme, host with port, path, and the rest.
    fn parts(&self) -> (&str, &str, &str) {
        let whole = self.0.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) =
            if whole.starts_with('/') { ("", whole) } else { whole.split_once(':').unwrap_or(("", whole)) };
        let Some(rest) = rest.strip_prefix("//") else { return (scheme, "", rest) };
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        (scheme, authority.rsplit_once('@').map_or(authority, |(_, host)| host), path)
    }

    fn host(&self) -> (&str, &str) {
        let (_, host, _) = self.parts();
        if let Some((address, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            return (address, rest.trim_start_matches(':'));
        }
        host.split_once(':').unwrap_or((host, ""))
    }
}

fn get_scheme<'v>(url: &Location) -> CelString<'v> {
    text(url.parts().0)
}

fn get_host<'v>(url: &Location) -> CelString<'v> {
    text(url.parts().1)
}

fn get_hostname<'v>(url: &Location) -> CelString<'v> {
    text(url.host().0)
}

fn get_port<'v>(url: &Location) -> CelString<'v> {
    text(url.host().1)
}

fn get_escaped_path<'v>(url: &Location) -> CelString<'v> {
    text(url.parts().2)
}
