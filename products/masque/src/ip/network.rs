//! Prefixes and ranges of IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// ICMP and `ICMPv6`, which routes always carry (RFC 9484, section 4.7.3).
const ICMP: [u8; 2] = [1, 58];
/// The protocol of a route that carries all.
pub const ANY: u8 = 0;

/// The bits of an address of IPv4 or IPv6.
pub fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The prefix of an address; `None`: it is longer than an address, or has bits behind it.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let rest = width(address).checked_sub(length)?;
        let is_clean = match address {
            IpAddr::V4(it) => u64::from(it.to_bits()) & ((1 << rest) - 1) == 0,
            IpAddr::V6(it) => it.to_bits() & below(rest) == 0,
        };
        is_clean.then_some(Self { address, length })
    }

    /// The prefix of one address alone.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        Self {
            address,
            length: width(address),
        }
    }

    /// The prefix that stands for no address of this version (RFC 9484, section 4.7.2).
    #[must_use]
    pub fn none_like(self) -> Self {
        Self::of(match self.address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        })
    }

    /// Its first address.
    #[must_use]
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Its length in bits.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        self.start_and_end().contains(address)
    }

    /// Whether another prefix is in it.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.length <= other.length && self.contains(other.address)
    }

    /// An address of it that a host may have: where it is that of a network, not the network's.
    #[must_use]
    pub fn host(self) -> Self {
        let is_network = width(self.address) - self.length > 1;
        let bits = bits_of(self.address) + u128::from(is_network);
        Self::of(address_of(bits, self.address))
    }

    /// Its first address and its last.
    #[must_use]
    pub fn ends(self) -> [IpAddr; 2] {
        let Span(start, end) = self.start_and_end();
        [start, end]
    }

    fn start_and_end(self) -> Span {
        let rest = width(self.address) - self.length;
        let end = match self.address {
            IpAddr::V4(it) => {
                let ones = u32::try_from((1_u64 << rest) - 1).expect("32 bits at most");
                Ipv4Addr::from_bits(it.to_bits() | ones).into()
            }
            IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits() | below(rest)).into(),
        };
        Span(self.address, end)
    }
}

impl FromStr for Prefix {
    type Err = String;

    /// An address, or its first and a length: `10.9.0.0/24`.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((address, length)) = text.split_once('/') else {
            let address = text.parse().map(Self::of);
            return address.map_err(|_| no_prefix(text));
        };
        let digits =
            (1..=3).contains(&length.len()) && length.bytes().all(|it| it.is_ascii_digit());
        let length = length.parse::<u8>().ok().filter(|_| digits);
        let (Ok(address), Some(length)) = (address.parse::<IpAddr>(), length) else {
            return Err(no_prefix(text));
        };
        Self::new(address, length).ok_or_else(|| match first(address, length) {
            Some(first) => format!(
                "{text:?}: the address is not the first of its prefix; write {first}/{length}"
            ),
            None => no_prefix(text),
        })
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

fn no_prefix(text: &str) -> String {
    format!("{text:?} is no prefix; write one such as \"10.9.0.0/24\" or \"fd00:9::/64\"")
}

/// The first address of the prefix of this length that an address is in.
fn first(address: IpAddr, length: u8) -> Option<IpAddr> {
    let rest = width(address).checked_sub(length)?;
    Some(address_of(bits_of(address) & !below(rest), address))
}

/// An address as a number.
pub fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => it.to_bits().into(),
        IpAddr::V6(it) => it.to_bits(),
    }
}

/// The address of a number, of the version of `like`.
pub fn address_of(bits: u128, like: IpAddr) -> IpAddr {
    match like {
        IpAddr::V4(_) => {
            let bits = u32::try_from(bits).expect("it was an address of IPv4");
            Ipv4Addr::from_bits(bits).into()
        }
        IpAddr::V6(_) => Ipv6Addr::from_bits(bits).into(),
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The low bits of an address, this many, all set.
fn below(bits: u8) -> u128 {
    1_u128
        .checked_shl(u32::from(bits))
        .map_or(u128::MAX, |it| it - 1)
}

/// The addresses from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span(IpAddr, IpAddr);

impl Span {
    fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.0.is_ipv4() && self.0 <= address && address <= self.1
    }
}

/// A range of addresses to which packets are carried, of one protocol or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    span: Span,
    protocol: u8,
}

impl Route {
    /// The route from one address to another; `None`: they are no range.
    #[must_use]
    pub fn new(start: IpAddr, end: IpAddr, protocol: u8) -> Option<Self> {
        let is_range = start.is_ipv4() == end.is_ipv4() && start <= end;
        let span = Span(start, end);
        is_range.then_some(Self { span, protocol })
    }

    /// The route to a prefix, for all protocols.
    #[must_use]
    pub fn to(prefix: Prefix) -> Self {
        Self {
            span: prefix.start_and_end(),
            protocol: ANY,
        }
    }

    /// Its first address and its last.
    #[must_use]
    pub fn ends(self) -> [IpAddr; 2] {
        [self.span.0, self.span.1]
    }

    /// The protocol that it carries; 0: all.
    #[must_use]
    pub fn protocol(self) -> u8 {
        self.protocol
    }

    /// Whether it carries packets of this protocol to this address.
    #[must_use]
    pub fn carries(self, address: IpAddr, protocol: u8) -> bool {
        let is_for = self.protocol == ANY || self.protocol == protocol || is_icmp(protocol);
        is_for && self.span.contains(address)
    }

    /// The part of it that leads to a prefix, and carries a protocol; `None`: there is none.
    /// Without either it is itself.
    #[must_use]
    pub fn within(self, prefix: Option<Prefix>, protocol: Option<u8>) -> Option<Self> {
        let protocol = match protocol {
            Some(only) if self.protocol == ANY || self.protocol == only => only,
            Some(_) => return None,
            None => self.protocol,
        };
        let Some(prefix) = prefix else {
            return Some(Self { protocol, ..self });
        };
        let Span(start, end) = prefix.start_and_end();
        if start.is_ipv4() != self.span.0.is_ipv4() {
            return None;
        }
        Self::new(start.max(self.span.0), end.min(self.span.1), protocol)
    }

    /// Whether it may stand before another in a `ROUTE_ADVERTISEMENT` (RFC 9484, section 4.7.3).
    #[must_use]
    pub fn precedes(self, other: Self) -> bool {
        let order = |it: Self| (!it.span.0.is_ipv4(), it.protocol);
        order(self) < order(other) || order(self) == order(other) && self.span.1 < other.span.0
    }

    /// Whether one carries all protocols to where the other carries one: no list may have both.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let is_any = self.protocol == ANY || other.protocol == ANY;
        let same_version = self.span.0.is_ipv4() == other.span.0.is_ipv4();
        is_any && same_version && self.span.0 <= other.span.1 && other.span.0 <= self.span.1
    }
}

/// Whether a protocol is that of errors and echoes of IP.
pub fn is_icmp(protocol: u8) -> bool {
    ICMP.contains(&protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(address: &str, length: u8) -> Option<Prefix> {
        Prefix::new(address.parse().unwrap(), length)
    }

    fn route(start: &str, end: &str, protocol: u8) -> Option<Route> {
        Route::new(start.parse().unwrap(), end.parse().unwrap(), protocol)
    }

    #[test]
    fn a_prefix_has_nothing_behind_it() {
        for (address, length, is_one) in [
            ("192.0.2.0", 24, true),
            ("192.0.2.1", 24, false),
            ("192.0.2.1", 32, true),
            ("192.0.2.1", 33, false),
            ("0.0.0.0", 0, true),
            ("2001:db8::", 32, true),
            ("2001:db8::1", 127, false),
            ("2001:db8::1", 128, true),
            ("::", 0, true),
            ("::", 129, false),
        ] {
            assert_eq!(
                prefix(address, length).is_some(),
                is_one,
                "{address}/{length}"
            );
        }
        let all = prefix("::", 0).unwrap();
        assert!(all.contains("ffff::ffff".parse().unwrap()));
        assert!(
            !all.contains("192.0.2.1".parse().unwrap()),
            "of its version"
        );
        let some = prefix("192.0.2.0", 24).unwrap();
        assert!(some.covers(prefix("192.0.2.128", 25).unwrap()));
        assert!(!some.covers(prefix("192.0.0.0", 16).unwrap()));
    }

    #[test]
    fn a_prefix_is_read_as_it_is_written() {
        for text in ["10.9.0.0/24", "0.0.0.0/0", "fd00:9::/64", "192.0.2.1/32"] {
            assert_eq!(
                text.parse::<Prefix>().map(|it| it.to_string()),
                Ok(text.to_owned())
            );
        }
        assert_eq!("192.0.2.1".parse(), Ok(Prefix::of([192, 0, 2, 1].into())));
        for (text, words) in [
            ("10.9.0.1/24", "write 10.9.0.0/24"),
            ("fd00::1/8", "write fd00::/8"),
            ("10.9.0.0/33", "no prefix"),
            ("10.9.0.0/+1", "no prefix"),
            ("10.9.0.0/", "no prefix"),
            ("pool", "no prefix"),
        ] {
            let said = text.parse::<Prefix>().unwrap_err();
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn routes_carry_their_protocol_and_icmp() {
        let tcp = route("192.0.2.1", "192.0.2.9", 6).unwrap();
        for (address, protocol, is_carried) in [
            ("192.0.2.1", 6, true),
            ("192.0.2.9", 6, true),
            ("192.0.2.10", 6, false),
            ("192.0.2.5", 17, false),
            ("192.0.2.5", 1, true),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(
                tcp.carries(address, protocol),
                is_carried,
                "{address} {protocol}"
            );
        }
        assert!(route("192.0.2.9", "192.0.2.1", 0).is_none());
        assert!(route("192.0.2.9", "::", 0).is_none());
    }

    #[test]
    fn a_scope_cuts_a_route() {
        let all = route("192.0.2.0", "192.0.2.255", 0).unwrap();
        let half = prefix("192.0.2.128", 25);
        let cut = all.within(half, Some(6));
        assert_eq!(cut, route("192.0.2.128", "192.0.2.255", 6));
        assert_eq!(all.within(None, None), Some(all));
        assert_eq!(all.within(prefix("198.51.100.0", 24), None), None);
        assert_eq!(all.within(prefix("2001:db8::", 32), None), None);
        let udp = route("192.0.2.0", "192.0.2.255", 17).unwrap();
        assert_eq!(udp.within(None, Some(6)), None);
    }
}
