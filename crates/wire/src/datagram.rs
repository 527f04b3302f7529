//! From a captured packet to the IP packet in it, and to the UDP datagram in that: link layer,
//! tunnels, IPv4 or IPv6, UDP.
//!
//! Source: RFC 791, RFC 8200 section 4 (extension headers), RFC 768. Checksums are not looked at: a capture on the sending host often
//! has none. Fragments are not reassembled; QUIC forbids them (RFC 9000 section 14).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::capture::CapturedPacket;
use crate::cursor::Cursor;
use crate::ip::{IpVersion, TCP, UDP};
use crate::link_layer::{self, IPV4, IPV6};
use crate::tunnels;

/// The path of a datagram: the addresses and ports that it came from and went to.
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

/// The reason why a captured packet is not a datagram that can be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecapsulationError {
    /// A link type of which the layout is not known here.
    #[error(
        "link type {0} ({name}) is not read (hint: capture with Ethernet, IP, PPP, loopback or Linux \
         cooked headers)",
        name = link_layer::name(*.0)
    )]
    LinkType(u16),
    /// More tunnels, one in the other, than anybody lays.
    #[error("more than 8 tunnels, one in the other")]
    Nested,
    /// Something else than UDP over IP.
    #[error("not UDP")]
    NotUdp,
    /// Something else than TCP over IP, where UDP was ruled out before.
    #[error("neither UDP nor TCP")]
    NotTcp,
    /// A part of a larger IP packet.
    #[error("an IP fragment")]
    Fragment,
    /// Headers that are incomplete or contradict themselves.
    #[error("incomplete or damaged headers")]
    Damaged,
}

impl<'a> Datagram<'a> {
    /// Bytes of the IP packet around it, header options and extension headers left out. Of one in a
    /// tunnel, that is the packet which the tunnel carries: what the link carries is more.
    #[must_use]
    pub fn ip_size(&self) -> u32 {
        let header = if self.path.source.is_ipv4() { 20 } else { 40 };
        u32::try_from(header + 8 + self.length).expect("an IP packet is below 4 GiB")
    }

    /// The datagram in a captured packet.
    pub fn of(packet: &CapturedPacket<'a>) -> Result<Self, DecapsulationError> {
        let ip = IpLayer::of(packet)?.ok_or(DecapsulationError::NotUdp)?;
        if ip.protocol != UDP {
            return Err(DecapsulationError::NotUdp);
        }
        udp(&ip).ok_or(DecapsulationError::Damaged)
    }
}

/// An IP packet that is no fragment, up to its transport layer. Of packets in tunnels, the innermost.
#[derive(Debug, Clone, Copy)]
pub struct IpLayer<'a> {
    /// Who sent it.
    pub source: IpAddr,
    /// Whom it was sent to.
    pub destination: IpAddr,
    /// The two ECN bits.
    pub ecn: u8,
    /// The transport layer's protocol, by its IANA number.
    pub protocol: u8,
    /// The identification field of IPv4.
    pub(crate) identification: Option<u16>,
    /// What was captured of the transport layer, and what the link may have put behind it.
    pub(crate) rest: Cursor<'a>,
    /// Bytes of the transport layer on the wire. None if the header does not say: packets above 64
    /// KiB that never met a wire, as the kernel hands them to the network card.
    pub(crate) length: Option<usize>,
}

impl<'a> IpLayer<'a> {
    /// The version of IP.
    #[must_use]
    pub fn version(&self) -> IpVersion {
        match self.source {
            IpAddr::V4(_) => IpVersion::V4,
            IpAddr::V6(_) => IpVersion::V6,
        }
    }

    /// What was captured of the transport layer, header and all.
    #[must_use]
    pub fn transport(&self) -> &'a [u8] {
        let captured = self.rest.rest();
        let length = self.length.unwrap_or(captured.len());
        &captured[..length.min(captured.len())]
    }

    /// Addresses with ports; None if the protocol is neither UDP nor TCP, or the packet was cut.
    #[must_use]
    pub fn path(&self) -> Option<Path> {
        let mut cursor = self.rest;
        if !matches!(self.protocol, UDP | TCP) {
            return None;
        }
        let (source, destination) = (cursor.u16()?, cursor.u16()?);
        Some(Path {
            source: SocketAddr::new(self.source, source),
            destination: SocketAddr::new(self.destination, destination),
        })
    }

    /// The IP packet in a captured packet; None if there is another network layer.
    pub fn of(packet: &CapturedPacket<'a>) -> Result<Option<Self>, DecapsulationError> {
        let (protocol, cursor) = link_layer::network_layer(packet.link_type, packet.bytes)?;
        match Self::read(protocol, cursor)? {
            Some(outermost) => tunnels::innermost(outermost).map(Some),
            None => Ok(None),
        }
    }

    /// The IP packet behind an `EtherType`; None if it is not that of IP.
    pub(crate) fn read(
        protocol: u16,
        cursor: Cursor<'a>,
    ) -> Result<Option<Self>, DecapsulationError> {
        let ip = match protocol {
            IPV4 => ipv4(cursor),
            IPV6 => ipv6(cursor),
            _ => return Ok(None),
        };
        ip.unwrap_or(Err(DecapsulationError::Damaged)).map(Some)
    }
}

fn ipv4(mut cursor: Cursor<'_>) -> Option<Result<IpLayer<'_>, DecapsulationError>> {
    let header: [u8; 20] = cursor.array()?;
    if header[0] >> 4 != 4 {
        return None;
    }
    let length = usize::from(header[0] & 0x0f) * 4;
    cursor.take(length.checked_sub(20)?)?;
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    // Offset and "more fragments"
    if field(6) & 0x3fff != 0 {
        return Some(Err(DecapsulationError::Fragment));
    }
    let address = |at: usize| {
        let octets: [u8; 4] = header[at..at + 4].try_into().expect("four bytes");
        IpAddr::from(Ipv4Addr::from(octets))
    };
    Some(Ok(IpLayer {
        source: address(12),
        destination: address(16),
        ecn: header[1] & 3,
        protocol: header[9],
        identification: Some(field(4)),
        rest: cursor,
        length: usize::from(field(2)).checked_sub(length),
    }))
}

fn ipv6(mut cursor: Cursor<'_>) -> Option<Result<IpLayer<'_>, DecapsulationError>> {
    let header: [u8; 40] = cursor.array()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let payload = cursor.rest().len();
    let mut next = header[6];
    loop {
        next = match next {
            // Hop-by-hop, routing, destination options: a length in units of 8 bytes, the first not
            // counted
            0 | 43 | 60 => {
                let [following, length] = cursor.array()?;
                cursor.take(usize::from(length) * 8 + 6)?;
                following
            }
            44 => {
                let head: [u8; 8] = cursor.array()?;
                if u16::from_be_bytes([head[2], head[3]]) & 0xfff9 != 0 {
                    return Some(Err(DecapsulationError::Fragment));
                }
                head[0]
            }
            _ => break,
        };
    }
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen bytes");
        IpAddr::from(Ipv6Addr::from(octets))
    };
    let extensions = payload - cursor.rest().len();
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    Some(Ok(IpLayer {
        source: address(8),
        destination: address(24),
        ecn: header[1] >> 4 & 3,
        protocol: next,
        identification: None,
        rest: cursor,
        // A packet above 64 KiB has 0 there (RFC 2675 section 3, and what Linux hands to cards).
        length: (length > 0)
            .then(|| length.checked_sub(extensions))
            .flatten(),
    }))
}

fn udp<'a>(ip: &IpLayer<'a>) -> Option<Datagram<'a>> {
    let mut cursor = ip.rest;
    let (source_port, destination_port) = (cursor.u16()?, cursor.u16()?);
    let length = usize::from(cursor.u16()?).checked_sub(8)?;
    cursor.take(2)?; // checksum
    let captured = cursor.rest();
    Some(Datagram {
        path: Path {
            source: SocketAddr::new(ip.source, source_port),
            destination: SocketAddr::new(ip.destination, destination_port),
        },
        payload: &captured[..length.min(captured.len())],
        length,
    })
}
