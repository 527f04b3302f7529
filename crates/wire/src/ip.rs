//! IPv4 and UDP headers around a datagram, for captures of links that carry datagrams only.
//!
//! Source: RFC 791 section 3.1, RFC 768, RFC 3168 section 5 (ECN bits).

use std::net::SocketAddrV4;

/// Bytes that IPv4 and UDP add to a datagram.
pub const IPV4_UDP_HEADER: usize = 28;

/// The addresses and ports of a datagram's sender and receiver, over IPv4.
#[derive(Debug, Clone, Copy)]
pub struct Endpoints {
    /// Where the datagram comes from.
    pub source: SocketAddrV4,
    /// Where it goes.
    pub destination: SocketAddrV4,
}

/// Writes the IP packet that carries `payload` into `packet`, replacing what it held.
///
/// `ecn` are the two ECN bits, `identification` the IPv4 field that tells packets of a flow apart.
pub fn encapsulate(
    packet: &mut Vec<u8>,
    ends: Endpoints,
    ecn: u8,
    identification: u16,
    payload: &[u8],
) {
    const UDP: u8 = 17;
    let udp_length = u16::try_from(payload.len() + 8).expect("a UDP datagram fits 16 bits");
    let total_length = udp_length + 20;
    packet.clear();
    packet.extend_from_slice(&[0x45, ecn & 3]);
    packet.extend_from_slice(&total_length.to_be_bytes());
    packet.extend_from_slice(&identification.to_be_bytes());
    packet.extend_from_slice(&[0x40, 0]); // don't fragment: RFC 9000 section 14
    packet.extend_from_slice(&[64, UDP, 0, 0]);
    packet.extend_from_slice(&ends.source.ip().octets());
    packet.extend_from_slice(&ends.destination.ip().octets());
    let checksum = internet_checksum(&[&packet[..20]]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());

    packet.extend_from_slice(&ends.source.port().to_be_bytes());
    packet.extend_from_slice(&ends.destination.port().to_be_bytes());
    packet.extend_from_slice(&udp_length.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(payload);
    let [high, low] = udp_length.to_be_bytes();
    let checksum = match internet_checksum(&[&packet[12..20], &[0, UDP, high, low], &packet[20..]])
    {
        0 => 0xffff, // RFC 768: zero on the wire would mean that there is none
        sum => sum,
    };
    packet[26..28].copy_from_slice(&checksum.to_be_bytes());
}

/// The ones' complement sum of RFC 1071 over `parts`, each but the last of even length.
fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u64;
    for part in parts {
        let mut words = part.chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            sum += u64::from(*last) << 8;
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("folded to 16 bits")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_rfc_1071_example() {
        // RFC 1071 section 3: these words sum to ddf2, whose complement is 220d.
        assert_eq!(
            internet_checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]),
            0x220d
        );
    }

    #[test]
    fn a_receiver_finds_both_checksums_right() {
        let ends = Endpoints {
            source: "192.0.2.1:50000".parse().unwrap(),
            destination: "198.51.100.1:443".parse().unwrap(),
        };
        let mut packet = Vec::new();
        for payload in [&b"odd"[..], b"even", b""] {
            encapsulate(&mut packet, ends, 2, 7, payload);
            assert_eq!(packet.len(), IPV4_UDP_HEADER + payload.len());
            assert_eq!(internet_checksum(&[&packet[..20]]), 0);
            let length = u16::try_from(packet.len() - 20).unwrap().to_be_bytes();
            assert_eq!(
                internet_checksum(&[&packet[12..20], &[0, 17], &length, &packet[20..]]),
                0
            );
        }
    }
}
