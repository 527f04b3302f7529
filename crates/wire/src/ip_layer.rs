//! An IP packet up to its transport layer: IPv4, or IPv6 with its extension headers.
//!
//! Source: RFC 791, RFC 8200 section 4 (extension headers). Checksums are not looked at: a capture
//! on the sending host often has none. Fragments are not reassembled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::cursor::Cursor;
use crate::decapsulation_error::DecapsulationError;
use crate::ip::{IpVersion, TCP, UDP};
use crate::link_layer::{IPV4, IPV6};

/// The path of a datagram: the addresses and ports that it came from and went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Path {
    /// The sender.
    pub source: SocketAddr,
    /// The receiver.
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

/// An IP packet that is no fragment, up to its transport layer. Of packets in tunnels, the
/// innermost.
#[derive(Debug, Clone, Copy)]
pub struct IpLayer<'a> {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The two ECN bits.
    pub ecn: u8,
    /// The transport layer's protocol, by its IANA number.
    pub protocol: u8,
    /// The identification field of IPv4.
    pub(crate) identification: Option<u16>,
    /// The captured bytes of the transport layer, and those that the link may have put behind it.
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

    /// The captured bytes of the transport layer, header and all.
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
