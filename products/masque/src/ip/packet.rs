//! The header of an IP packet, as whoever forwards it has to look at it.
//!
//! Source: RFC 791, section 3.1; RFC 1812, section 5.2.2 (what routers verify); RFC 8200, sections
//! 3 and 4.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bentpipe_wire::{TCP, UDP};
use thiserror::Error;

use super::network::is_icmp;

/// The protocols for which rules name ports.
const WITH_PORTS: [u8; 2] = [TCP, UDP];
/// Bytes of a header of IPv4 without options, and of IPv6.
const LEAST: [usize; 2] = [20, 40];

/// The parts of a packet's header by which it is let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The protocol behind all extension headers of IPv6.
    pub protocol: u8,
    /// The routers that it may still pass.
    pub hop_limit: u8,
    /// Where its protocol's header begins; `None`: it is a fragment but the first.
    pub content: Option<usize>,
}

/// The part of a packet that rules for ports are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// The destination port, of TCP or UDP.
    Port(u16),
    /// Errors and echoes.
    Icmp,
    /// A fragment but the first, of one of these: it is of no use without the first.
    Fragment,
    /// Another protocol, or a port that is not there.
    Other,
}

/// The flaw for which a packet is not forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// It is neither of IPv4 nor of IPv6.
    #[error("{0} is no version of IP")]
    Version(u8),
    /// It ends within its headers.
    #[error("it ends within its headers")]
    Short,
    /// Its header has another length than it has itself.
    #[error("its header says {said} bytes, and it has {has}")]
    Length {
        /// The length by its header.
        said: usize,
        /// Its own.
        has: usize,
    },
    /// The checksum of IPv4's header is wrong.
    #[error("the checksum of its header is wrong")]
    Checksum,
    /// Its sender wants it to go on from its destination (RFC 7126, sections 4.3 and 4.4; RFC 5095
    /// and RFC 8200, section 4.4), which no rule has seen.
    #[error("it has a route of its own")]
    SourceRoute,
}

impl Header {
    /// Reads the header of a whole packet.
    pub fn read(packet: &[u8]) -> Result<Self, PacketError> {
        match packet.first().map(|first| first >> 4) {
            None => Err(PacketError::Short),
            Some(4) => v4(packet),
            Some(6) => v6(packet),
            Some(other) => Err(PacketError::Version(other)),
        }
    }

    /// The service that the packet with this header is for.
    #[must_use]
    pub fn service(&self, packet: &[u8]) -> Service {
        let has_ports = WITH_PORTS.contains(&self.protocol);
        let Some(at) = self.content else {
            let is_one = has_ports || is_icmp(self.protocol);
            return if is_one {
                Service::Fragment
            } else {
                Service::Other
            };
        };
        if is_icmp(self.protocol) {
            return Service::Icmp;
        }
        match packet.get(at..) {
            Some([_, _, high, low, ..]) if has_ports => {
                Service::Port(u16::from_be_bytes([*high, *low]))
            }
            _ => Service::Other,
        }
    }
}

/// The address that a packet goes to.
pub fn destination(packet: &[u8]) -> Result<IpAddr, PacketError> {
    Header::read(packet).map(|it| it.destination)
}

fn has_length(packet: &[u8], said: usize) -> Result<(), PacketError> {
    let has = packet.len();
    if said == has {
        return Ok(());
    }
    Err(PacketError::Length { said, has })
}

fn v4(packet: &[u8]) -> Result<Header, PacketError> {
    let fixed: &[u8; LEAST[0]] = packet.first_chunk().ok_or(PacketError::Short)?;
    let header = usize::from(fixed[0] & 0xf) * 4;
    has_length(
        packet,
        usize::from(u16::from_be_bytes([fixed[2], fixed[3]])),
    )?;
    if header < LEAST[0] || packet.len() < header {
        return Err(PacketError::Short);
    }
    if checksum(&[&packet[..header]]) != 0 {
        return Err(PacketError::Checksum);
    }
    if has_source_route(&packet[LEAST[0]..header]) {
        return Err(PacketError::SourceRoute);
    }
    let address = |at: usize| -> IpAddr {
        Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]).into()
    };
    Ok(Header {
        source: address(12),
        destination: address(16),
        protocol: fixed[9],
        hop_limit: fixed[8],
        content: (u16::from_be_bytes([fixed[6], fixed[7]]) << 3 == 0).then_some(header),
    })
}

/// Whether options of IPv4 have a loose or a strict source route. What is wrong with them ends
/// them: a router finds no option behind that.
fn has_source_route(mut options: &[u8]) -> bool {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const SOURCE_ROUTES: [u8; 2] = [131, 137];
    while let [kind, rest @ ..] = options {
        let length = match (*kind, rest) {
            (END, _) => return false,
            (NO_OPERATION, _) => 1,
            (kind, _) if SOURCE_ROUTES.contains(&kind) => return true,
            (_, [length, ..]) if *length >= 2 => usize::from(*length),
            _ => return false,
        };
        options = options.get(length..).unwrap_or_default();
    }
    false
}

fn v6(packet: &[u8]) -> Result<Header, PacketError> {
    let fixed: &[u8; LEAST[1]] = packet.first_chunk().ok_or(PacketError::Short)?;
    let content = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    has_length(packet, LEAST[1] + content)?;
    let address = |at: usize| -> IpAddr {
        let octets: &[u8; 16] = fixed[at..].first_chunk().expect("the header has both");
        Ipv6Addr::from(*octets).into()
    };
    let rest = &packet[LEAST[1]..];
    let (protocol, left) = behind_extensions(fixed[6], rest)?;
    Ok(Header {
        source: address(8),
        destination: address(24),
        protocol,
        hop_limit: fixed[7],
        content: left.map(|left| packet.len() - left),
    })
}

/// The protocol behind the extension headers (RFC 9484, section 4.8), and the bytes that begin with
/// its header; `None`: of a fragment but the first.
fn behind_extensions(mut next: u8, mut rest: &[u8]) -> Result<(u8, Option<usize>), PacketError> {
    const FRAGMENT: u8 = 44;
    loop {
        let length = match (next, rest) {
            // Routing, with segments that are left.
            (43, [_, _, _, left, ..]) if *left > 0 => return Err(PacketError::SourceRoute),
            // Hop-by-hop options, routing, destination options.
            (0 | 43 | 60, [_, length, ..]) => usize::from(*length) * 8 + 8,
            // Authentication (RFC 4302, section 2.2).
            (51, [_, length, ..]) => usize::from(*length) * 4 + 8,
            // Of a fragment but the first, nothing that follows is a header.
            (FRAGMENT, [protocol, _, high, low, ..]) => {
                if u16::from_be_bytes([*high, *low]) >> 3 != 0 {
                    return Ok((*protocol, None));
                }
                8
            }
            (0 | 43 | 60 | 51 | FRAGMENT, _) => return Err(PacketError::Short),
            (protocol, _) => return Ok((protocol, Some(rest.len()))),
        };
        next = rest[0];
        rest = rest.get(length..).ok_or(PacketError::Short)?;
    }
}

/// Takes one from the routers that a packet may still pass; `false`: it may pass none. It has a
/// header that was read.
pub fn decrement_hop_limit(packet: &mut [u8]) -> bool {
    let is_v4 = packet[0] >> 4 == 4;
    let at = if is_v4 { 8 } else { 7 };
    if packet[at] <= 1 {
        return false;
    }
    packet[at] -= 1;
    if is_v4 {
        // The field is the high byte of a word that the checksum is of.
        packet[10..12].copy_from_slice(&[0, 0]);
        let header = usize::from(packet[0] & 0xf) * 4;
        let sum = checksum(&[&packet[..header]]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    true
}

/// The checksum of some parts, of which all but the last have an even length (RFC 1071).
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 = words
        .map(|word| {
            u32::from(u16::from_be_bytes([
                word[0],
                word.get(1).copied().unwrap_or(0),
            ]))
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("all carries are added")
}

#[cfg(test)]
mod tests {
    use bentpipe_wire::IpHeader;
    use proptest::prelude::*;

    use super::*;

    fn packet(source: &str, destination: &str, protocol: u8, content: &[u8]) -> Vec<u8> {
        let header = IpHeader {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            ecn: 2,
            identification: 7,
            protocol,
        };
        let mut packet = Vec::new();
        header.write(&mut packet, content);
        packet
    }

    fn four() -> Vec<u8> {
        packet("192.0.2.1", "198.51.100.1", TCP, &[7; 30])
    }

    fn six(protocol: u8, content: &[u8]) -> Vec<u8> {
        packet("2001:db8::1", "2001:db8::2", protocol, content)
    }

    #[test]
    fn a_header_is_what_the_laboratory_writes() {
        let found = Header::read(&four()).unwrap();
        assert_eq!((found.protocol, found.hop_limit), (TCP, 64));
        assert_eq!(found.source, IpAddr::from([192, 0, 2, 1]));
        let found = Header::read(&six(UDP, &[1; 9])).unwrap();
        assert_eq!((found.protocol, found.hop_limit), (UDP, 64));
        assert_eq!(found.destination.to_string(), "2001:db8::2");
    }

    #[test]
    fn what_is_wrong_with_a_packet_is_said() {
        use PacketError::{Checksum, Length, Short, Version};
        let changed = |mut packet: Vec<u8>, at: usize, to: u8| {
            packet[at] = to;
            Header::read(&packet)
        };
        assert_eq!(Header::read(&[]), Err(Short));
        assert_eq!(changed(four(), 0, 0x55), Err(Version(5)));
        assert_eq!(changed(four(), 0, 0x44), Err(Short));
        assert_eq!(changed(four(), 3, 49), Err(Length { said: 49, has: 50 }));
        assert_eq!(changed(four(), 8, 9), Err(Checksum));
        assert_eq!(Header::read(&four()[..19]), Err(Short));
        assert_eq!(
            changed(six(UDP, &[1; 9]), 5, 10),
            Err(Length { said: 50, has: 49 })
        );
        assert_eq!(Header::read(&six(UDP, &[])[..39]), Err(Short));
    }

    #[test]
    fn the_protocol_is_behind_extensions() {
        let options = [60, 0, 1, 4, 0, 0, 0, 0];
        let first = [TCP, 0, 0, 1, 0, 0, 0, 7];
        let later = [60, 0, 0, 9, 0, 0, 0, 7];
        for (protocol, content, found) in [
            (
                0,
                [&options[..], &[TCP, 0, 1, 4, 0, 0, 0, 0]].concat(),
                Ok(TCP),
            ),
            (44, first.to_vec(), Ok(TCP)),
            (44, later.to_vec(), Ok(60)),
            (51, [&[UDP, 1][..], &[0; 10]].concat(), Ok(UDP)),
            (0, options.to_vec(), Err(PacketError::Short)),
            (0, vec![TCP, 9], Err(PacketError::Short)),
            (44, vec![TCP], Err(PacketError::Short)),
        ] {
            let header = Header::read(&six(protocol, &content));
            assert_eq!(
                header.map(|it| it.protocol),
                found,
                "{protocol} {content:?}"
            );
        }
    }

    #[test]
    fn packets_that_go_on_from_their_destination_are_refused() {
        let with_options = |options: &[u8]| {
            let mut packet = packet(
                "192.0.2.1",
                "198.51.100.1",
                TCP,
                &[options, &[7; 9]].concat(),
            );
            packet[0] = 0x40 | u8::try_from(5 + options.len() / 4).unwrap();
            packet[10..12].fill(0);
            let sum = checksum(&[&packet[..20 + options.len()]]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            Header::read(&packet).map(|it| it.content)
        };
        for (options, is_refused) in [
            (&[131, 7, 4, 10, 0, 0, 1, 0][..], true),
            (&[137, 7, 4, 10, 0, 0, 1, 0], true),
            (&[1, 148, 4, 0, 0, 131, 3, 4], true),
            (&[148, 4, 0, 0, 1, 1, 1, 137], true),
            (&[148, 4, 131, 137], false),
            (&[0, 131, 3, 4], false),
            (&[7, 0, 131, 3], false),
            (&[7, 9, 131, 3], false),
        ] {
            let expected = if is_refused {
                Err(PacketError::SourceRoute)
            } else {
                Ok(Some(20 + options.len()))
            };
            assert_eq!(with_options(options), expected, "{options:?}");
        }
        let routed = |kind, left| {
            let routing = [&[TCP, 2, kind, left][..], &[0; 20]].concat();
            Header::read(&six(43, &routing)).map(|it| it.protocol)
        };
        for kind in [0, 2, 3, 4] {
            assert_eq!(routed(kind, 0), Ok(TCP));
            assert_eq!(routed(kind, 1), Err(PacketError::SourceRoute));
        }
        let hidden = [&[43, 0, 1, 4, 0, 0, 0, 0][..], &[TCP, 0, 4, 1, 0, 0, 0, 0]].concat();
        assert_eq!(
            Header::read(&six(0, &hidden)),
            Err(PacketError::SourceRoute)
        );
    }

    #[test]
    fn a_port_is_that_of_the_first_fragment_behind_all_extensions() {
        let ports = [0, 9, 1, 187]; // from 9 to 443
        let options = [&[TCP, 0, 1, 4, 0, 0, 0, 0][..], &ports].concat();
        let later = |mut packet: Vec<u8>| {
            packet[7] = 9;
            packet[10..12].fill(0);
            let sum = checksum(&[&packet[..20]]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            packet
        };
        let v4 = |protocol, content: &[u8]| packet("192.0.2.1", "198.51.100.1", protocol, content);
        for (packet, service) in [
            (v4(TCP, &ports), Service::Port(443)),
            (v4(UDP, &ports), Service::Port(443)),
            (v4(TCP, &ports[..3]), Service::Other),
            (v4(1, &ports), Service::Icmp),
            (v4(47, &ports), Service::Other),
            (later(v4(TCP, &ports)), Service::Fragment),
            (later(v4(1, &ports)), Service::Fragment),
            (later(v4(47, &ports)), Service::Other),
            (six(UDP, &ports), Service::Port(443)),
            (six(60, &options), Service::Port(443)),
            (six(58, &ports), Service::Icmp),
            (six(44, &[TCP, 0, 0, 9, 0, 0, 0, 7]), Service::Fragment),
            (six(44, &[59, 0, 0, 9, 0, 0, 0, 7]), Service::Other),
        ] {
            let header = Header::read(&packet).unwrap();
            assert_eq!(header.service(&packet), service, "{packet:?}");
        }
    }

    #[test]
    fn hop_limits_go_down_to_one() {
        for mut packet in [four(), six(UDP, &[1; 9])] {
            for left in (1..64).rev() {
                assert!(decrement_hop_limit(&mut packet));
                assert_eq!(Header::read(&packet).unwrap().hop_limit, left);
            }
            assert!(!decrement_hop_limit(&mut packet));
        }
    }

    proptest! {
        #[test]
        fn any_packet_is_read_or_refused(
            version in prop::sample::select(vec![4_u8, 6, 5]),
            mut bytes in prop::collection::vec(any::<u8>(), 1..200),
            right_length in any::<bool>(),
        ) {
            bytes[0] = version << 4 | bytes[0] & 0xf;
            if right_length && bytes.len() >= 6 {
                let length = u16::try_from(bytes.len()).unwrap();
                bytes[2..4].copy_from_slice(&length.to_be_bytes());
                bytes[4..6].copy_from_slice(&length.saturating_sub(40).to_be_bytes());
            }
            if let Ok(header) = Header::read(&bytes) {
                let _ = header.service(&bytes);
                decrement_hop_limit(&mut bytes);
                prop_assert!(Header::read(&bytes).is_ok());
            }
        }
    }
}
