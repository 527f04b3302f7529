//! A packet of a hop: an IP packet with its transport, and its fate.

use bentpipe_link::{Direction, Fate, FurtherArrival};
use bentpipe_units::Time;
use bentpipe_wire::capture::CapturedPacket;
use bentpipe_wire::{Datagram, DecapsulationError, IpLayer, IpVersion, TCP, UDP, UDP_HEADER};
use bytes::Bytes;

/// Congestion Experienced, in the two ECN bits (RFC 3168, section 5).
const CE: u8 = 3;

/// A packet with its fate.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The number of its flow, from 0.
    pub flow: usize,
    /// The way that it goes.
    pub direction: Direction,
    /// The number of the path that it takes; 0 where there is one.
    pub path: usize,
    /// The time at which it left its sender.
    pub sent: Time,
    /// The packet.
    pub ip: IpPacket,
    /// Its fate.
    pub fate: Fate,
    /// Whether it arrived with a mark of Congestion Experienced that it was sent without.
    pub marked: bool,
    /// Its further arrivals, in the order of time: links made copies of it (RFC 5560).
    pub copies: Vec<FurtherArrival>,
}

impl Packet {
    /// Whether it has been marked on its way, if it arrives with these ECN bits, and with a mark of
    /// the last link where `by_link`.
    #[must_use]
    pub fn is_marked(&self, ecn: u8, by_link: bool) -> bool {
        self.ip.ecn != CE && (ecn == CE || by_link)
    }

    /// The packet has arrived, maybe not for the first time. Arrivals known already may be later.
    pub fn arrive(&mut self, arrival: FurtherArrival) {
        let mut later = arrival;
        match &mut self.fate {
            Fate::Delivered { at } => {
                if arrival.at < *at {
                    std::mem::swap(at, &mut later.at);
                    std::mem::swap(&mut self.marked, &mut later.marked);
                }
                let place = self.copies.partition_point(|it| it.at <= later.at);
                self.copies.insert(place, later);
            }
            fate => {
                *fate = Fate::Delivered { at: arrival.at };
                self.marked = arrival.marked;
            }
        }
    }
}

/// An IP packet, which is what links carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpPacket {
    /// The version of IP.
    pub version: IpVersion,
    /// The two ECN bits.
    pub ecn: u8,
    /// The transport protocol, and the content.
    pub transport: Transport,
    /// Bytes of the whole packet.
    pub bytes: u32,
}

/// The transport layer of an IP packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The payload of a UDP datagram.
    Udp(Bytes),
    /// A TCP segment with its header (RFC 9293 section 3.1).
    Tcp(Bytes),
    /// All that another protocol carries.
    Other {
        /// Its IANA number.
        protocol: u8,
        /// The bytes behind the IP header.
        bytes: Bytes,
    },
}

impl IpPacket {
    /// A UDP datagram in a packet without IP options or extension headers.
    ///
    /// # Panics
    ///
    /// If the payload is longer than a datagram can be.
    #[must_use]
    pub fn udp(version: IpVersion, ecn: u8, payload: Bytes) -> Self {
        let bytes = version.header_bytes() + UDP_HEADER + payload.len();
        Self {
            version,
            ecn,
            bytes: u32::try_from(bytes).expect("the length field has 16 bits"),
            transport: Transport::Udp(payload),
        }
    }

    /// Reads a whole packet; None if it is none of IP.
    #[must_use]
    pub fn parse(packet: &CapturedPacket) -> Option<Self> {
        let ip = match IpLayer::of(packet) {
            Ok(ip) => ip?,
            Err(DecapsulationError::Fragment) => return Self::fragment(packet.bytes),
            Err(_) => return None,
        };
        let transport = match Datagram::of(packet) {
            Ok(datagram) => Transport::Udp(Bytes::copy_from_slice(datagram.payload)),
            Err(_) if ip.protocol == TCP => Transport::Tcp(Bytes::copy_from_slice(ip.transport())),
            Err(_) => Transport::Other {
                protocol: ip.protocol,
                bytes: Bytes::copy_from_slice(ip.transport()),
            },
        };
        Some(Self {
            version: ip.version(),
            ecn: ip.ecn,
            transport,
            bytes: u32::try_from(packet.bytes.len()).ok()?,
        })
    }

    /// A fragment, of which nothing is known but the header.
    fn fragment(bytes: &[u8]) -> Option<Self> {
        let (version, header, protocol, ecn) = match bytes.first()? >> 4 {
            4 => (
                IpVersion::V4,
                usize::from(bytes[0] & 15) * 4,
                *bytes.get(9)?,
                *bytes.get(1)? & 3,
            ),
            _ => (
                IpVersion::V6,
                IpVersion::V6.header_bytes(),
                *bytes.get(6)?,
                *bytes.get(1)? >> 4 & 3,
            ),
        };
        Some(Self {
            version,
            ecn,
            transport: Transport::Other {
                protocol,
                bytes: Bytes::copy_from_slice(bytes.get(header..)?),
            },
            bytes: u32::try_from(bytes.len()).ok()?,
        })
    }
}

impl Transport {
    /// The number of its protocol (IANA, Assigned Internet Protocol Numbers).
    #[must_use]
    pub fn protocol(&self) -> u8 {
        match self {
            Self::Udp(_) => UDP,
            Self::Tcp(_) => TCP,
            Self::Other { protocol, .. } => *protocol,
        }
    }

    /// The payload of UDP; of other protocols, all bytes behind the IP header.
    #[must_use]
    pub fn content(&self) -> &Bytes {
        let (Self::Udp(bytes) | Self::Tcp(bytes) | Self::Other { bytes, .. }) = self;
        bytes
    }

    /// Bytes of what the transport carries; none of a protocol that is not known.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        let header = match self {
            Self::Udp(_) => 0,
            // The offset of the data counts words of four bytes.
            Self::Tcp(segment) => segment.get(12).map_or(0, |it| usize::from(it >> 4) * 4),
            Self::Other { .. } => return 0,
        };
        self.content().len().saturating_sub(header) as u64
    }

    /// Whether it is a QUIC packet with a short header (RFC 9000 section 17.3), if it is QUIC.
    #[must_use]
    pub(crate) fn has_short_header(&self) -> bool {
        matches!(self, Self::Udp(payload) if payload.first().is_some_and(|first| first & 0x80 == 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_transport_carries() {
        let bytes = |length: usize| Bytes::from(vec![0x50; length]);
        let udp = IpPacket::udp(IpVersion::V4, 0, bytes(100));
        assert_eq!((udp.bytes, udp.transport.payload_bytes()), (128, 100));
        let udp = IpPacket::udp(IpVersion::V6, 0, bytes(100));
        assert_eq!((udp.bytes, udp.transport.payload_bytes()), (148, 100));
        assert_eq!(Transport::Tcp(bytes(100)).payload_bytes(), 80);
        assert_eq!(Transport::Tcp(bytes(12)).payload_bytes(), 12, "cut off");
        let other = Transport::Other {
            protocol: 1,
            bytes: bytes(9),
        };
        assert_eq!((other.payload_bytes(), other.protocol()), (0, 1));
    }
}
