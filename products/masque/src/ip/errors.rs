//! The errors that an end of a tunnel tells the senders of packets, and how many of them.
//!
//! Source: RFC 792; RFC 1191, section 4; RFC 1812, sections 4.3.2 (of what no error may be told,
//! and how much of a packet is in one) and 5.2.7.1 (code 13); RFC 4443, sections 2.4 (the same of
//! IPv6, and a token bucket), 3.1 to 3.3.

use std::net::IpAddr;
use std::time::Duration;

use bentpipe_wire::IpHeader;

use super::network::is_icmp;
use super::packet::{Header, checksum};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Bytes of the largest message, with its IP header, and of that header and its own.
const MOST: [usize; 2] = [576, 1280];
const HEADERS: [usize; 2] = [20 + 8, 40 + 8];
/// Types of errors among IPv4's messages (RFC 1122, section 3.2.2); those of IPv6 are below 128.
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
const INFORMATIONAL: u8 = 128;

/// The reason for which a packet goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// There is no route to its destination.
    NoRoute,
    /// It may not go there.
    Prohibited,
    /// Its destination is an address that no client has.
    Unreachable,
    /// It may pass no further router.
    HopLimit,
    /// It has more bytes than the tunnel carries.
    TooBig(usize),
}

impl Problem {
    /// Type, code, and the four bytes behind the checksum.
    fn of_v4(self) -> [u8; 6] {
        match self {
            Self::NoRoute => [3, 0, 0, 0, 0, 0],
            Self::Unreachable => [3, 1, 0, 0, 0, 0],
            Self::Prohibited => [3, 13, 0, 0, 0, 0],
            Self::HopLimit => [11, 0, 0, 0, 0, 0],
            Self::TooBig(most) => {
                let [high, low] = u16::try_from(most).unwrap_or(u16::MAX).to_be_bytes();
                [3, 4, 0, 0, high, low]
            }
        }
    }

    fn of_v6(self) -> [u8; 6] {
        match self {
            Self::NoRoute => [1, 0, 0, 0, 0, 0],
            Self::Prohibited => [1, 1, 0, 0, 0, 0],
            Self::Unreachable => [1, 3, 0, 0, 0, 0],
            Self::HopLimit => [3, 0, 0, 0, 0, 0],
            Self::TooBig(most) => {
                let most = u32::try_from(most).unwrap_or(u32::MAX).to_be_bytes();
                [2, 0, most[0], most[1], most[2], most[3]]
            }
        }
    }
}

/// The packet to a packet's sender that tells the problem, from `source`, which is of its version;
/// `None`: of this packet nothing may be told.
pub fn icmp_error(packet: &[u8], problem: Problem, source: IpAddr) -> Option<Vec<u8>> {
    const DONT_FRAGMENT: u8 = 0x40;
    let header = Header::read(packet).ok()?;
    let content = packet.get(header.content?..)?;
    let is_error = |kind: u8| match header.protocol {
        ICMP => ERRORS.contains(&kind),
        _ => kind < INFORMATIONAL,
    };
    if is_icmp(header.protocol) && content.first().is_none_or(|kind| is_error(*kind)) {
        return None;
    }
    let is_group = header.destination.is_multicast() || is_broadcast(header.destination);
    let to = header.source;
    let is_nobody = to.is_unspecified() || to.is_multicast() || is_broadcast(to);
    if is_group || is_nobody || to.is_loopback() || source.is_ipv4() != to.is_ipv4() {
        return None;
    }
    let is_v4 = to.is_ipv4();
    let is_large = matches!(problem, Problem::TooBig(_));
    if is_v4 && is_large && packet[6] & DONT_FRAGMENT == 0 {
        return None; // routers may fragment it
    }
    let of_version = usize::from(!is_v4);
    let most = MOST[of_version] - HEADERS[of_version];
    let words = if is_v4 {
        problem.of_v4()
    } else {
        problem.of_v6()
    };
    let protocol = if is_v4 { ICMP } else { ICMP_V6 };
    let mut message = vec![words[0], words[1], 0, 0];
    message.extend_from_slice(&words[2..]);
    message.extend_from_slice(&packet[..packet.len().min(most)]);
    let sum = match (source, to) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            // The pseudo-header of RFC 8200, section 8.1.
            let length = u32::try_from(message.len()).expect("1280 bytes at most");
            let length = length.to_be_bytes();
            checksum(&[
                &from.octets(),
                &to.octets(),
                &length,
                &[0, 0, 0, ICMP_V6],
                &message,
            ])
        }
        _ => checksum(&[&message]),
    };
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let header = IpHeader {
        source,
        destination: to,
        ecn: 0,
        identification: 0,
        protocol,
    };
    let mut whole = Vec::new();
    header.write(&mut whole, &message);
    Some(whole)
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(it) if it.is_broadcast())
}

/// The errors that an end has told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorCounts {
    /// Those that were sent.
    pub told: u64,
    /// Those that were not, since there had been too many.
    pub withheld: u64,
}

impl ErrorCounts {
    /// Counts one.
    pub fn count(&mut self, is_told: bool) {
        self.told += u64::from(is_told);
        self.withheld += u64::from(!is_told);
    }
}

/// A bound on how many errors are told: a token bucket.
#[derive(Debug, Clone, Copy)]
pub struct Throttle {
    /// The time in which one more may be told.
    interval: Duration,
    /// How many may be told at once.
    burst: u32,
    /// When the bucket would be full again.
    full_at: Duration,
}

impl Throttle {
    /// One that is full: `burst` at once, and one more after each `interval`.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self {
            interval,
            burst,
            full_at: Duration::ZERO,
        }
    }

    /// Takes one; `false`: there is none.
    pub fn take(&mut self, now: Duration) -> bool {
        let next = self.full_at.max(now) + self.interval;
        let may = next <= now + self.interval * self.burst;
        if may {
            self.full_at = next;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::{Endpoints, encapsulate, too_big};
    use proptest::prelude::*;

    use super::*;

    const ENDS: [[&str; 2]; 2] = [
        ["192.0.2.1:5000", "198.51.100.1:443"],
        ["[2001:db8::1]:5000", "[2001:db8::2]:443"],
    ];

    fn packet(ends: [&str; 2], payload: usize) -> Vec<u8> {
        let [source, destination] = ends.map(|it| it.parse().unwrap());
        let mut packet = Vec::new();
        let ends = Endpoints {
            source,
            destination,
        };
        encapsulate(&mut packet, ends, 2, 7, &vec![0xa5; payload]);
        packet
    }

    #[test]
    fn that_a_packet_is_too_big_is_told_as_by_links() {
        for ends in ENDS {
            let sent = packet(ends, 1460);
            let from = Header::read(&sent).unwrap().destination;
            for most in [68, 1412] {
                let told = icmp_error(&sent, Problem::TooBig(most), from);
                assert_eq!(told, too_big(&sent, u32::try_from(most).unwrap()));
                assert!(told.is_some());
            }
            let mut fragmented = packet(ENDS[0], 1460);
            fragmented[6] = 0;
            assert_eq!(icmp_error(&fragmented, Problem::TooBig(68), from), None);
        }
    }

    #[test]
    fn types_and_codes_are_those_of_the_rfcs() {
        for (problem, v4, v6) in [
            (Problem::NoRoute, [3, 0], [1, 0]),
            (Problem::Prohibited, [3, 13], [1, 1]),
            (Problem::Unreachable, [3, 1], [1, 3]),
            (Problem::HopLimit, [11, 0], [3, 0]),
        ] {
            for (ends, from, at, expected) in [
                (ENDS[0], "10.9.0.1", 20, v4),
                (ENDS[1], "fd00:9::1", 40, v6),
            ] {
                let sent = packet(ends, 100);
                let from: IpAddr = from.parse().unwrap();
                let told = icmp_error(&sent, problem, from).unwrap();
                let header = Header::read(&told).unwrap();
                assert_eq!(header.source, from);
                assert_eq!(header.destination, Header::read(&sent).unwrap().source);
                assert_eq!(told[at..at + 2], expected, "{problem:?}");
                assert_eq!(told[at + 8..], sent, "the packet is in it");
            }
        }
    }

    #[test]
    fn of_errors_fragments_and_groups_nothing_is_told() {
        for (ends, own) in ENDS.into_iter().zip(["10.9.0.1", "fd00:9::1"]) {
            let sent = packet(ends, 100);
            let own: IpAddr = own.parse().unwrap();
            let tell = |packet: &[u8]| icmp_error(packet, Problem::Prohibited, own);
            let mut error = tell(&sent).unwrap();
            assert_eq!(tell(&error), None, "of an error");
            let (kind, echo) = if own.is_ipv4() { (20, 8) } else { (40, 128) };
            error[kind] = echo;
            assert!(tell(&error).is_some(), "of an echo");
            assert_eq!(tell(&sent[..sent.len() - 1]), None);
            let other = if own.is_ipv4() { ENDS[1] } else { ENDS[0] };
            assert_eq!(
                tell(&packet(other, 100)),
                None,
                "there is no address to tell it from"
            );
        }
        let own: IpAddr = [10, 9, 0, 1].into();
        for ends in [
            ["192.0.2.1:5000", "224.0.1.1:443"],
            ["192.0.2.1:5000", "255.255.255.255:443"],
            ["127.0.0.1:5000", "198.51.100.1:443"],
            ["0.0.0.0:5000", "198.51.100.1:443"],
        ] {
            let sent = packet(ends, 100);
            assert_eq!(icmp_error(&sent, Problem::NoRoute, own), None, "{ends:?}");
        }
    }

    #[test]
    fn errors_are_told_in_a_burst_and_then_one_by_one() {
        let second = Duration::from_secs(1);
        let mut throttle = Throttle::new(second, 3);
        let took = |throttle: &mut Throttle, now| (0..9).filter(|_| throttle.take(now)).count();
        assert_eq!(took(&mut throttle, Duration::ZERO), 3);
        assert_eq!(took(&mut throttle, second), 1);
        assert_eq!(took(&mut throttle, 3 * second), 2);
        assert_eq!(
            took(&mut throttle, 100 * second),
            3,
            "no more than the burst"
        );
    }

    proptest! {
        #[test]
        fn any_packet_is_told_of_or_not(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            for own in ["10.9.0.1", "fd00:9::1"] {
                let told = icmp_error(&bytes, Problem::Prohibited, own.parse().unwrap());
                prop_assert!(told.is_none_or(|it| Header::read(&it).is_ok()));
            }
        }
    }
}
