//! IP and UDP headers around what is sent, for captures of links that carry no headers.
//!
//! Source: RFC 791 section 3.1, RFC 8200 sections 3 and 8.1, RFC 768, RFC 3168 section 5 (ECN
//! bits).

use std::net::{IpAddr, SocketAddr};

/// The protocol number of TCP (RFC 9293).
pub const TCP: u8 = 6;
/// The protocol number of UDP (RFC 768).
pub const UDP: u8 = 17;
/// Bytes of a UDP header.
pub const UDP_HEADER: usize = 8;
/// The routers that a packet may pass.
const HOP_LIMIT: u8 = 64;

/// A version of IP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// IPv4, RFC 791.
    #[default]
    V4,
    /// IPv6, RFC 8200.
    V6,
}

impl IpVersion {
    /// Bytes of a header without options or extension headers.
    #[must_use]
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    /// Its number: 4 or 6.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V4 => 4,
            Self::V6 => 6,
        }
    }
}

/// The version of IP that a number names: 4 or 6.
impl TryFrom<u8> for IpVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            4 => Ok(Self::V4),
            6 => Ok(Self::V6),
            _ => Err(format!("{number} is no version of IP: write 4 or 6")),
        }
    }
}

/// The header of an IP packet, without options and extension headers.
#[derive(Debug, Clone, Copy)]
pub struct IpHeader {
    /// The source address.
    pub source: IpAddr,
    /// The destination address, of the same version.
    pub destination: IpAddr,
    /// The two ECN bits.
    pub ecn: u8,
    /// The field of IPv4 that tells packets of a flow apart; IPv6 has none.
    pub identification: u16,
    /// The protocol of the payload, by its IANA number.
    pub protocol: u8,
}

impl IpHeader {
    /// Replaces what `packet` held by this header and `content`, a whole segment of the protocol.
    pub fn write(self, packet: &mut Vec<u8>, content: &[u8]) {
        self.begin(packet, content.len());
        packet.extend_from_slice(content);
    }

    /// Replaces what `packet` held by this header, for `content_bytes` bytes to come.
    fn begin(self, packet: &mut Vec<u8>, content_bytes: usize) {
        packet.clear();
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = length(content_bytes + IpVersion::V4.header_bytes());
                packet.extend_from_slice(&[0x45, self.ecn & 3]);
                packet.extend_from_slice(&total.to_be_bytes());
                packet.extend_from_slice(&self.identification.to_be_bytes());
                packet.extend_from_slice(&[0x40, 0]); // don't fragment: RFC 9000 section 14
                packet.extend_from_slice(&[HOP_LIMIT, self.protocol, 0, 0]);
                packet.extend_from_slice(&source.octets());
                packet.extend_from_slice(&destination.octets());
                let checksum = internet_checksum(&[&packet[..20]]);
                packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                packet.extend_from_slice(&[0x60, (self.ecn & 3) << 4, 0, 0]);
                packet.extend_from_slice(&length(content_bytes).to_be_bytes());
                packet.extend_from_slice(&[self.protocol, HOP_LIMIT]);
                packet.extend_from_slice(&source.octets());
                packet.extend_from_slice(&destination.octets());
            }
            (source, destination) => {
                panic!("{source} and {destination} are of one version of IP")
            }
        }
    }
}

/// The addresses and ports of a datagram's sender and receiver.
#[derive(Debug, Clone, Copy)]
pub struct Endpoints {
    /// The source of the datagram.
    pub source: SocketAddr,
    /// The destination, of the same version of IP.
    pub destination: SocketAddr,
}

/// Writes the IP packet that carries `payload` in a UDP datagram into `packet`, replacing what it
/// held.
///
/// `ecn` are the two ECN bits, `identification` the IPv4 field that tells packets of a flow apart.
pub fn encapsulate(
    packet: &mut Vec<u8>,
    ends: Endpoints,
    ecn: u8,
    identification: u16,
    payload: &[u8],
) {
    let udp_length = length(payload.len() + UDP_HEADER);
    let header = IpHeader {
        source: ends.source.ip(),
        destination: ends.destination.ip(),
        ecn,
        identification,
        protocol: UDP,
    };
    header.begin(packet, usize::from(udp_length));
    let udp = packet.len();
    packet.extend_from_slice(&ends.source.port().to_be_bytes());
    packet.extend_from_slice(&ends.destination.port().to_be_bytes());
    packet.extend_from_slice(&udp_length.to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(payload);
    let [high, low] = udp_length.to_be_bytes();
    // The addresses are the last that an IP header has. Those of IPv4 and of IPv6, and the fields
    // behind them, sum up alike (RFC 8200 section 8.1).
    let addresses = if ends.source.is_ipv4() { 8 } else { 32 };
    let pseudo = [&packet[udp - addresses..udp], &[0, UDP, high, low]];
    let checksum = match internet_checksum(&[pseudo[0], pseudo[1], &packet[udp..]]) {
        0 => 0xffff, // RFC 768: zero on the wire would mean that there is none
        sum => sum,
    };
    packet[udp + 6..udp + 8].copy_from_slice(&checksum.to_be_bytes());
}

fn length(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("an IP packet's length fits 16 bits")
}

/// The ones' complement sum of RFC 1071 over `parts`, each but the last of even length.
pub(crate) fn internet_checksum(parts: &[&[u8]]) -> u16 {
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
        for (source, destination) in [
            ("192.0.2.1:50000", "198.51.100.1:443"),
            ("[2001:db8:1::1]:50000", "[2001:db8:2::1]:443"),
        ] {
            let ends = Endpoints {
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
            };
            let mut packet = Vec::new();
            for payload in [&b"odd"[..], b"even", b""] {
                encapsulate(&mut packet, ends, 2, 7, payload);
                let ip = if ends.source.is_ipv4() { 20 } else { 40 };
                assert_eq!(packet.len(), ip + UDP_HEADER + payload.len());
                let addresses = if ip == 20 { 12..20 } else { 8..40 };
                if ip == 20 {
                    assert_eq!(internet_checksum(&[&packet[..20]]), 0);
                }
                let length = u16::try_from(packet.len() - ip).unwrap().to_be_bytes();
                assert_eq!(
                    internet_checksum(&[&packet[addresses], &[0, 17], &length, &packet[ip..]]),
                    0
                );
            }
        }
    }
}
