//! The message to a sender whose packet is larger than the MTU of the next hop.
//!
//! Source: RFC 792 and RFC 1191, section 4 (IPv4: destination unreachable, fragmentation needed and
//! DF set); RFC 4443, section 3.2 (IPv6: packet too big). As much of the packet as they may have is
//! in them: RFC 1812, section 4.3.2.3, and RFC 4443, section 3.2.
//!
//! Deviation: a link has no address, so the message seems to come from the packet's destination.

use std::net::IpAddr;

use crate::ip::{IpHeader, internet_checksum};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;
/// Bytes of the largest message, with its IP header, and of that header and its own.
const MOST: [usize; 2] = [576, 1280];
const HEADERS: [usize; 2] = [20 + 8, 40 + 8];
/// Types of errors among IPv4's messages (RFC 1122, section 3.2.2).
const ERRORS: [u8; 5] = [3, 4, 5, 11, 12];

/// The IP packet to its sender that says that a packet is larger than `mtu`. None: of that one
/// nothing may be said: it is an error itself, a fragment but the first, or, in IPv4, one that
/// routers may fragment.
#[must_use]
pub fn too_big(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 => too_big_v4(packet, mtu),
        6 => too_big_v6(packet, mtu),
        _ => None,
    }
}

fn too_big_v4(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    const DONT_FRAGMENT: u8 = 0x40;
    let header = usize::from(packet[0] & 0xf) * 4;
    let content = packet.get(header..)?;
    let offset = u16::from_be_bytes([packet[6] & 0x1f, packet[7]]);
    let is_error = packet[9] == ICMP && ERRORS.contains(content.first()?);
    if header < 20 || packet[6] & DONT_FRAGMENT == 0 || offset != 0 || is_error {
        return None;
    }
    let address = |at: usize| {
        packet[at..at + 4]
            .first_chunk::<4>()
            .map(|it| IpAddr::from(*it))
    };
    let mtu = u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes();
    let mut message = vec![3, 4, 0, 0, 0, 0, mtu[0], mtu[1]];
    message.extend_from_slice(&packet[..packet.len().min(MOST[0] - HEADERS[0])]);
    let checksum = internet_checksum(&[&message]);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    Some(addressed(address(16)?, address(12)?, ICMP, &message))
}

fn too_big_v6(packet: &[u8], mtu: u32) -> Option<Vec<u8>> {
    const INFORMATIONAL: u8 = 128;
    let content = packet.get(40..)?;
    if packet[6] == ICMP_V6 && *content.first()? < INFORMATIONAL {
        return None;
    }
    let (source, destination) = (&packet[8..24], &packet[24..40]);
    let mut message = vec![2, 0, 0, 0];
    message.extend_from_slice(&mtu.to_be_bytes());
    message.extend_from_slice(&packet[..packet.len().min(MOST[1] - HEADERS[1])]);
    // The pseudo-header of RFC 8200, section 8.1.
    let length = u32::try_from(message.len()).ok()?.to_be_bytes();
    let pseudo = [source, destination, &length, &[0, 0, 0, ICMP_V6]].concat();
    let checksum = internet_checksum(&[&pseudo, &message]);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let address = |bytes: &[u8]| bytes.first_chunk::<16>().map(|it| IpAddr::from(*it));
    Some(addressed(
        address(destination)?,
        address(source)?,
        ICMP_V6,
        &message,
    ))
}

fn addressed(source: IpAddr, destination: IpAddr, protocol: u8, message: &[u8]) -> Vec<u8> {
    let header = IpHeader {
        source,
        destination,
        ecn: 0,
        identification: 0,
        protocol,
    };
    let mut whole = Vec::new();
    header.write(&mut whole, message);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoints, encapsulate};

    fn packet(source: &str, destination: &str, payload: usize) -> Vec<u8> {
        let ends = Endpoints {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        let mut packet = Vec::new();
        encapsulate(&mut packet, ends, 2, 7, &vec![0xa5; payload]);
        packet
    }

    fn v4(payload: usize) -> Vec<u8> {
        packet("192.0.2.1:5000", "198.51.100.1:443", payload)
    }

    fn v6(payload: usize) -> Vec<u8> {
        packet("[2001:db8::1]:5000", "[2001:db8::2]:443", payload)
    }

    #[test]
    fn fragmentation_is_needed_in_ipv4() {
        let sent = v4(1472);
        let found = too_big(&sent, 1400).unwrap();
        assert_eq!(found.len(), 576);
        // RFC 791: version and length, type of service, total length; protocol 1.
        assert_eq!(
            found[..4],
            [0x45, 0, 576_u16.to_be_bytes()[0], 576_u16.to_be_bytes()[1]]
        );
        assert_eq!(found[9], 1);
        assert_eq!(internet_checksum(&[&found[..20]]), 0);
        assert_eq!(found[12..16], [198, 51, 100, 1]);
        assert_eq!(found[16..20], [192, 0, 2, 1]);
        // RFC 1191: type 3, code 4, checksum, 16 bits unused, the MTU of the next hop, the packet.
        assert_eq!(found[20..22], [3, 4]);
        assert_eq!(found[24..28], [0, 0, 0x05, 0x78]);
        assert_eq!(internet_checksum(&[&found[20..]]), 0);
        assert_eq!(found[28..], sent[..548]);
    }

    #[test]
    fn a_packet_is_too_big_in_ipv6() {
        let sent = v6(1452);
        let found = too_big(&sent, 1400).unwrap();
        assert_eq!(found.len(), 1280);
        assert_eq!((found[0] >> 4, found[6]), (6, 58));
        assert_eq!(u16::from_be_bytes([found[4], found[5]]), 1240);
        assert_eq!(
            (&found[8..24], &found[24..40]),
            (&sent[24..40], &sent[8..24])
        );
        // RFC 4443: type 2, code 0, checksum, 32 bits of the MTU, the packet.
        assert_eq!(found[40..42], [2, 0]);
        assert_eq!(found[44..48], [0, 0, 0x05, 0x78]);
        assert_eq!(found[48..], sent[..1232]);
        let length = [0, 0, 0x04, 0xd8];
        let parts: [&[u8]; 4] = [&found[8..40], &length, &[0, 0, 0, 58], &found[40..]];
        assert_eq!(internet_checksum(&parts), 0);
    }

    #[test]
    fn a_short_packet_is_in_it_as_a_whole() {
        assert_eq!(too_big(&v4(100), 68).unwrap()[28..], v4(100));
        assert_eq!(too_big(&v6(100), 68).unwrap()[48..], v6(100));
    }

    #[test]
    fn nothing_is_said_of_errors_fragments_and_what_may_be_fragmented() {
        for (at, value) in [(6, 0), (7, 1)] {
            let mut sent = v4(1472);
            sent[at] = value;
            assert_eq!(too_big(&sent, 1400), None);
        }
        for sent in [v4(1472), v6(1452)] {
            let mut error = too_big(&sent, 1400).unwrap();
            assert_eq!(too_big(&error, 100), None);
            // An echo request is no error.
            let (kind, echo) = if error[0] == 0x45 { (20, 8) } else { (40, 128) };
            error[kind] = echo;
            assert!(too_big(&error, 100).is_some());
        }
        for bytes in [&[][..], &[0x45], &[0x60, 0], &[0xff; 60]] {
            assert_eq!(too_big(bytes, 100), None);
        }
    }
}
