//! From a captured packet to the UDP datagram in it: link layer, IPv4 or IPv6, UDP.
//!
//! Source: the link types of tcpdump.org, IEEE 802.1Q (VLAN tags), RFC 791, RFC 8200 section 4 (extension headers),
//! RFC 768. Checksums are not looked at: a capture on the sending host often has none. Fragments are not reassembled;
//! QUIC forbids them (RFC 9000 section 14).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::capture::CapturedPacket;
use crate::cursor::Cursor;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const UDP: u8 = 17;

/// Where a datagram came from and went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it was sent to.
    pub destination: SocketAddr,
}

impl Path {
    /// The way back.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
        }
    }
}

/// A UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Sender and receiver.
    pub path: Path,
    /// What was captured of the payload.
    pub payload: &'a [u8],
    /// Bytes of the payload on the wire.
    pub length: usize,
}

/// Why a captured packet is not a datagram that can be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoDatagram {
    /// A link type of which the layout is not known here.
    #[error("link type {0} is not known (Ethernet, raw IP, loopback and Linux cooked are)")]
    LinkType(u16),
    /// Something else than UDP over IP.
    #[error("not UDP")]
    NotUdp,
    /// A part of a larger IP packet.
    #[error("an IP fragment")]
    Fragment,
    /// Headers that are incomplete or contradict themselves.
    #[error("incomplete or damaged headers")]
    Damaged,
}

impl<'a> Datagram<'a> {
    /// Bytes of the IP packet around it, header options and extension headers left out.
    #[must_use]
    pub fn ip_size(&self) -> u32 {
        let header = if self.path.source.is_ipv4() { 20 } else { 40 };
        u32::try_from(header + 8 + self.length).expect("an IP packet is below 4 GiB")
    }

    /// The datagram in a captured packet.
    pub fn of(packet: &CapturedPacket<'a>) -> Result<Self, NoDatagram> {
        let cursor = Cursor::new(packet.bytes);
        let (protocol, cursor) =
            network_layer(packet.link_type, cursor).ok_or(NoDatagram::Damaged)??;
        match protocol {
            IPV4 => ipv4(cursor),
            IPV6 => ipv6(cursor),
            _ => Some(Err(NoDatagram::NotUdp)),
        }
        .unwrap_or(Err(NoDatagram::Damaged))
    }
}

/// `EtherType` of the network layer and what follows. None at the end of the packet.
fn network_layer(
    link_type: u16,
    mut cursor: Cursor<'_>,
) -> Option<Result<(u16, Cursor<'_>), NoDatagram>> {
    let protocol = match link_type {
        // NULL and LOOP: an address family, whose number depends on the system
        0 | 108 => {
            cursor.take(4)?;
            ip_version(cursor)?
        }
        // Ethernet
        1 => {
            cursor.take(12)?;
            cursor.u16()?
        }
        // RAW (two historic numbers too), IPV4, IPV6
        12 | 14 | 101 | 228 | 229 => ip_version(cursor)?,
        // LINUX_SLL
        113 => {
            cursor.take(14)?;
            cursor.u16()?
        }
        // LINUX_SLL2
        276 => {
            let protocol = cursor.u16()?;
            cursor.take(18)?;
            protocol
        }
        other => return Some(Err(NoDatagram::LinkType(other))),
    };
    without_vlan_tags(protocol, cursor).map(Ok)
}

fn ip_version(cursor: Cursor<'_>) -> Option<u16> {
    match cursor.rest().first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

fn without_vlan_tags(mut protocol: u16, mut cursor: Cursor<'_>) -> Option<(u16, Cursor<'_>)> {
    while matches!(protocol, 0x8100 | 0x88a8 | 0x9100) {
        cursor.take(2)?;
        protocol = cursor.u16()?;
    }
    Some((protocol, cursor))
}

fn ipv4(mut cursor: Cursor<'_>) -> Option<Result<Datagram<'_>, NoDatagram>> {
    let header: [u8; 20] = cursor.array()?;
    let length = usize::from(header[0] & 0x0f) * 4;
    cursor.take(length.checked_sub(20)?)?;
    // Offset and "more fragments"
    if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
        return Some(Err(NoDatagram::Fragment));
    }
    if header[9] != UDP {
        return Some(Err(NoDatagram::NotUdp));
    }
    let address = |at: usize| {
        let octets: [u8; 4] = header[at..at + 4].try_into().expect("four bytes");
        IpAddr::from(Ipv4Addr::from(octets))
    };
    udp(cursor, address(12), address(16)).map(Ok)
}

fn ipv6(mut cursor: Cursor<'_>) -> Option<Result<Datagram<'_>, NoDatagram>> {
    let header: [u8; 40] = cursor.array()?;
    let mut next = header[6];
    while next != UDP {
        next = match next {
            // Hop-by-hop, routing, destination options: a length in units of 8 bytes, the first not counted
            0 | 43 | 60 => {
                let [following, length] = cursor.array()?;
                cursor.take(usize::from(length) * 8 + 6)?;
                following
            }
            44 => {
                let head: [u8; 8] = cursor.array()?;
                if u16::from_be_bytes([head[2], head[3]]) & 0xfff9 != 0 {
                    return Some(Err(NoDatagram::Fragment));
                }
                head[0]
            }
            _ => return Some(Err(NoDatagram::NotUdp)),
        };
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
        IpAddr::from(Ipv6Addr::from(octets))
    };
    udp(cursor, address(8), address(24)).map(Ok)
}

fn udp(mut cursor: Cursor<'_>, source: IpAddr, destination: IpAddr) -> Option<Datagram<'_>> {
    let (source_port, destination_port) = (cursor.u16()?, cursor.u16()?);
    let length = usize::from(cursor.u16()?).checked_sub(8)?;
    cursor.take(2)?; // checksum
    let captured = cursor.rest();
    Some(Datagram {
        path: Path {
            source: SocketAddr::new(source, source_port),
            destination: SocketAddr::new(destination, destination_port),
        },
        payload: &captured[..length.min(captured.len())],
        length,
    })
}
