//! The bits of whole IP packets that links read and write: ECN, and what tells flows apart.

/// Congestion Experienced, in the two ECN bits (RFC 3168, section 5).
const CE: u8 = 3;
/// Bytes of an IPv4 header without options, and of an IPv6 header.
const HEADERS: [usize; 2] = [20, 40];

/// The two ECN bits of an IP packet; 0 if it is none.
#[must_use]
pub fn ecn(packet: &[u8]) -> u8 {
    match packet {
        [first, second, ..] if first >> 4 == 4 => second & 3,
        [first, second, ..] if first >> 4 == 6 => second >> 4 & 3,
        _ => 0,
    }
}

/// Marks an IP packet with Congestion Experienced, and corrects the checksum of an IPv4 header.
pub fn mark(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= HEADERS[0] => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= CE;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let checksum = u16::from_be_bytes([packet[10], packet[11]]);
            let mended = changed_checksum(checksum, before, after);
            packet[10..12].copy_from_slice(&mended.to_be_bytes());
        }
        Some(6) if packet.len() >= HEADERS[1] => packet[1] |= CE << 4,
        _ => {}
    }
}

/// The checksum of a header of which one word has changed (RFC 1624, equation 3).
fn changed_checksum(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !u16::try_from(sum).expect("two carries are added")
}

/// Whether an IP packet carries UDP. One with IPv6 extension headers is not recognized.
#[must_use]
pub fn is_udp(packet: &[u8]) -> bool {
    let protocol = match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= HEADERS[0] => packet[9],
        Some(6) if packet.len() >= HEADERS[1] => packet[6],
        _ => return false,
    };
    protocol == crate::UDP
}

/// A number that is the same for all packets of a flow in one direction: over addresses, protocol
/// and ports (FNV-1a, 64 bits). Packets with IPv4 options or IPv6 extension headers, and fragments,
/// count by their addresses alone.
#[must_use]
pub fn flow_hash(packet: &[u8]) -> u64 {
    let (addresses, protocol, ports) = match packet.first().map(|first| first >> 4) {
        Some(4) if packet.len() >= HEADERS[0] => {
            // More fragments, or an offset: the ports are not there, or not in all of them.
            let fragment = u16::from_be_bytes([packet[6] & 0x3f, packet[7]]);
            let is_plain = packet[0] & 0xf == 5 && fragment == 0;
            (12..20, packet[9], is_plain.then_some(HEADERS[0]))
        }
        Some(6) if packet.len() >= HEADERS[1] => (8..40, packet[6], Some(HEADERS[1])),
        _ => return 0,
    };
    let has_ports = matches!(protocol, crate::TCP | crate::UDP);
    let ports = ports.filter(|_| has_ports);
    let ports = ports.and_then(|at| packet.get(at..at + 4)).unwrap_or(&[]);
    let bytes = packet[addresses].iter().chain([&protocol]).chain(ports);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::{Endpoints, encapsulate};

    fn packet(source: &str, destination: &str, bits: u8, payload: &[u8]) -> Vec<u8> {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let ends = Endpoints {
            source: address(source),
            destination: address(destination),
        };
        let mut packet = Vec::new();
        encapsulate(&mut packet, ends, bits, 7, payload);
        packet
    }

    const PAIRS: [(&str, &str); 2] = [
        ("192.0.2.1:5000", "198.51.100.1:443"),
        ("[2001:db8::1]:5000", "[2001:db8::2]:443"),
    ];

    #[test]
    fn a_marked_packet_is_the_one_that_would_have_been_sent_so() {
        for (source, destination) in PAIRS {
            for bits in 0..4 {
                let mut found = packet(source, destination, bits, b"payload");
                assert_eq!(ecn(&found), bits);
                assert!(is_udp(&found));
                mark(&mut found);
                // A UDP checksum covers no ECN bits.
                assert_eq!(found, packet(source, destination, 3, b"payload"));
            }
        }
    }

    #[test]
    fn flows_differ_in_addresses_and_ports_and_in_nothing_else() {
        for (source, destination) in PAIRS {
            let flow = |source: &str, bits, payload: &[u8]| {
                flow_hash(&packet(source, destination, bits, payload))
            };
            let one = flow(source, 0, b"one");
            assert_eq!(one, flow(source, 3, b"another"));
            assert_ne!(one, flow(&source.replace("5000", "5001"), 0, b"one"));
            assert_ne!(
                one,
                flow(&source.replace("1]", "3]").replace(".1:", ".3:"), 0, b"one")
            );
        }
    }

    #[test]
    fn what_is_no_packet_is_left_alone() {
        for bytes in [&[][..], &[0x45], &[0x60, 0, 0], &[0xff; 60]] {
            let mut copy = bytes.to_vec();
            mark(&mut copy);
            assert_eq!(copy, bytes);
            assert_eq!((ecn(bytes), flow_hash(bytes)), (0, 0));
            assert!(!is_udp(bytes));
        }
    }
}
