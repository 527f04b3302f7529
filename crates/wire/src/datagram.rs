//! From a captured packet to the IP packet in it, and to the UDP datagram in that: link layer,
//! tunnels, IPv4 or IPv6, UDP.
//!
//! Source: RFC 768. QUIC forbids fragments (RFC 9000 section 14).

use std::net::SocketAddr;

use crate::capture::CapturedPacket;
use crate::decapsulation_error::DecapsulationError;
use crate::ip::UDP;
use crate::ip_layer::{IpLayer, Path};
use crate::{link_layer, tunnels};

/// A UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Sender and receiver.
    pub path: Path,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
    /// Bytes of the payload on the wire.
    pub length: usize,
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

impl<'a> IpLayer<'a> {
    /// The IP packet in a captured packet; None if there is another network layer.
    pub fn of(packet: &CapturedPacket<'a>) -> Result<Option<Self>, DecapsulationError> {
        let (protocol, cursor) = link_layer::network_layer(packet.link_type, packet.bytes)?;
        match Self::read(protocol, cursor)? {
            Some(outermost) => tunnels::innermost(outermost).map(Some),
            None => Ok(None),
        }
    }
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
