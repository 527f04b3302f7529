//! A packet between two programs: whole, as those have it that carry IP, or as a UDP payload.

use std::net::SocketAddr;

use bentpipe_trial::{IpPacket, Transport};
use bentpipe_wire::capture::CapturedPacket;
use bentpipe_wire::{Endpoints, IpLayer, IpVersion, Path, TCP, encapsulate, mark};
use bytes::{Bytes, BytesMut};

/// The longest UDP payload that a packet of IPv6 carries; IPv4 carries 20 bytes more.
const PAYLOAD_LIMIT: usize = 65_487;
/// Link type 101: raw IP.
const RAW: u16 = 101;
/// Stands for the transport of what is no whole datagram, such as a fragment (IANA: reserved).
const UNKNOWN: u8 = 255;

/// The form that the datagrams of a program have.
#[derive(Debug, Clone, Copy)]
pub enum DatagramForm {
    /// UDP payloads, in packets of this version of IP.
    Udp(IpVersion),
    /// Whole IP packets. Those that come from a program that knows UDP alone come by these
    /// addresses: the ones by which the program itself last sent UDP, once it has.
    Ip { own: SocketAddr, other: SocketAddr },
    /// Whole IP packets of any kind, between any ports.
    Any,
}

/// A packet that was sent.
#[derive(Debug, Clone)]
pub struct SentPacket {
    /// The packet as links see it.
    pub ip: IpPacket,
    /// All of it, where its sender made it whole.
    whole: Option<Bytes>,
}

impl SentPacket {
    /// The packet with Congestion Experienced in its ECN bits (RFC 3168, section 5).
    pub fn marked(&self) -> Self {
        let ip = IpPacket {
            ecn: 3,
            ..self.ip.clone()
        };
        let whole = self.whole.as_ref().map(|whole| {
            let mut bytes = BytesMut::from(&whole[..]);
            mark(&mut bytes);
            bytes.freeze()
        });
        Self { ip, whole }
    }
}

impl DatagramForm {
    /// Reads a datagram of the program; None if it is not what it should be.
    pub fn read(&mut self, ecn: u8, bytes: Bytes) -> Option<SentPacket> {
        match self {
            Self::Udp(version) => Some(SentPacket {
                ip: IpPacket::udp(*version, ecn, bytes),
                whole: None,
            }),
            Self::Ip { own, other } => {
                let captured = captured(&bytes);
                let ip = IpPacket::parse(&captured)?;
                if let (Transport::Udp(_), Some(path)) = (&ip.transport, path_of(&captured)) {
                    (*own, *other) = (path.source, path.destination);
                }
                let whole = Some(bytes);
                Some(SentPacket { ip, whole })
            }
            Self::Any => Some(SentPacket {
                ip: any(&bytes)?,
                whole: Some(bytes),
            }),
        }
    }

    /// A packet as a datagram for the program; None if it has no use for it. `number` tells packets
    /// apart that are made whole here.
    pub fn write(self, packet: &SentPacket, number: u16) -> Option<Bytes> {
        match (self, &packet.ip.transport) {
            (Self::Udp(_), Transport::Udp(payload)) => Some(payload.clone()),
            (Self::Udp(_), _) => None,
            (Self::Any, _) => packet.whole.clone(),
            (Self::Ip { own, other }, transport) => {
                if let Some(whole) = &packet.whole {
                    return Some(whole.clone());
                }
                let ends = Endpoints {
                    source: other,
                    destination: own,
                };
                let mut whole = Vec::new();
                let payload = transport.content();
                if payload.len() > PAYLOAD_LIMIT {
                    return None; // more than either version of IP carries
                }
                encapsulate(&mut whole, ends, packet.ip.ecn, number, payload);
                Some(whole.into())
            }
        }
    }
}

fn path_of(captured: &CapturedPacket) -> Option<Path> {
    IpLayer::of(captured).ok()??.path()
}

fn captured(bytes: &[u8]) -> CapturedPacket<'_> {
    CapturedPacket {
        interface: 0,
        time: None,
        link_type: RAW,
        bytes,
        comment: None,
    }
}

/// A packet with all that stands behind its IP header, ports of UDP too; None if it is none.
fn any(bytes: &Bytes) -> Option<IpPacket> {
    let version = IpVersion::try_from(bytes.first()? >> 4).ok()?;
    let (ecn, protocol, content) = match IpLayer::of(&captured(bytes)) {
        Ok(ip) => ip.map(|ip| (ip.ecn, ip.protocol, bytes.slice_ref(ip.transport())))?,
        Err(_) => (
            0,
            UNKNOWN,
            bytes.slice(version.header_bytes().min(bytes.len())..),
        ),
    };
    let transport = match protocol {
        TCP => Transport::Tcp(content),
        protocol => Transport::Other {
            protocol,
            bytes: content,
        },
    };
    Some(IpPacket {
        version,
        ecn,
        transport,
        bytes: u32::try_from(bytes.len()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UDP: DatagramForm = DatagramForm::Udp(IpVersion::V4);

    fn ip() -> DatagramForm {
        DatagramForm::Ip {
            own: "192.0.2.1:50000".parse().unwrap(),
            other: "198.51.100.1:443".parse().unwrap(),
        }
    }

    #[test]
    fn a_datagram_is_the_same_in_either_form() {
        let (mut udp, mut whole_packets) = (UDP, ip());
        let sent = udp.read(2, Bytes::from_static(b"payload")).unwrap();
        assert_eq!(sent.ip.bytes, 28 + 7);
        let whole = ip().write(&sent, 1).unwrap();
        let back = whole_packets.read(0, whole.clone()).unwrap();
        assert_eq!(back.ip, sent.ip, "its ECN is the header's");
        assert_eq!(ip().write(&back, 9), Some(whole), "as it was");
        assert_eq!(UDP.write(&back, 9), Some(Bytes::from_static(b"payload")));
    }

    #[test]
    fn a_program_is_answered_where_it_sends_from() {
        let mut form = ip();
        let mut sent = Vec::new();
        let ends = Endpoints {
            source: "192.0.2.1:34567".parse().unwrap(),
            destination: "198.51.100.1:443".parse().unwrap(),
        };
        encapsulate(&mut sent, ends, 0, 1, b"hello");
        form.read(0, sent.into()).unwrap();
        let mut udp = UDP;
        let answer = udp.read(0, Bytes::from_static(b"answer")).unwrap();
        let whole = form.write(&answer, 1).unwrap();
        assert_eq!(whole[22..24], 34567_u16.to_be_bytes(), "its port");
    }

    #[test]
    fn of_any_packet_ports_and_fragments_are_kept() {
        let (mut udp, mut any) = (UDP, DatagramForm::Any);
        let datagram = udp.read(0, Bytes::from_static(b"payload")).unwrap();
        let whole = ip().write(&datagram, 1).unwrap();
        let found = any.read(0, whole.clone()).unwrap();
        assert_eq!(found.ip.transport.content(), &whole[20..], "its header too");
        assert_eq!(found.ip.transport.protocol(), 17);
        assert_eq!(any.write(&found, 9), Some(whole.clone()));
        let mut fragment = whole.to_vec();
        fragment[7] = 1; // its offset
        let found = any.read(0, fragment.clone().into()).unwrap();
        assert_eq!(found.ip.transport.protocol(), UNKNOWN);
        assert_eq!(any.write(&found, 9), Some(fragment.into()));
        assert!(any.read(0, Bytes::new()).is_none());
    }

    #[test]
    fn what_is_no_packet_or_no_datagram_is_none() {
        assert!(ip().read(0, Bytes::from_static(b"payload")).is_none());
        let mut whole = Vec::new();
        let header = bentpipe_wire::IpHeader {
            source: "192.0.2.1".parse().unwrap(),
            destination: "198.51.100.1".parse().unwrap(),
            ecn: 0,
            identification: 0,
            protocol: 1,
        };
        header.write(&mut whole, &[0; 8]);
        let ping = ip().read(0, whole.into()).unwrap();
        assert!(UDP.write(&ping, 0).is_none());
    }
}
