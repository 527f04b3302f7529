//! A packet between two programs: whole, as those have it that carry IP, or as a UDP payload.

use std::net::{IpAddr, SocketAddr};

use bentpipe_link::{Direction, HostName};
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
    /// Whole IP packets, of a program between a client and a server. Those that come from one that
    /// knows UDP alone come by these addresses.
    Between {
        client: SocketAddr,
        server: SocketAddr,
    },
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

impl SentPacket {
    /// The address of the client in a packet that was made whole, by the way that it goes.
    pub fn client_address(&self, way: Direction) -> Option<IpAddr> {
        let path = path_of(&captured(self.whole.as_ref()?))?;
        Some(match way {
            Direction::Return => path.source.ip(),
            Direction::Forward => path.destination.ip(),
        })
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
            Self::Between { .. } => Some(SentPacket {
                ip: IpPacket::parse(&captured(&bytes))?,
                whole: Some(bytes),
            }),
            Self::Any => Some(SentPacket {
                ip: any(&bytes)?,
                whole: Some(bytes),
            }),
        }
    }

    /// The same over a path on which the client has an address of its own; `host` is the program's.
    pub fn over(mut self, host: HostName, client: IpAddr) -> Self {
        if let Self::Ip { own, other } = &mut self {
            let end = if host == HostName::Client { own } else { other };
            end.set_ip(client);
        }
        self
    }

    /// A packet that goes `way`, as a datagram for the program; None if it has no use for it.
    /// `number` tells packets apart that are made whole here.
    pub fn write(self, packet: &SentPacket, way: Direction, number: u16) -> Option<Bytes> {
        let (source, destination) = match (self, way) {
            (Self::Udp(_), _) => {
                let Transport::Udp(payload) = &packet.ip.transport else {
                    return None;
                };
                return Some(payload.clone());
            }
            (Self::Any, _) => return packet.whole.clone(),
            (Self::Ip { own, other }, _) => (other, own),
            (Self::Between { client, server }, Direction::Return) => (client, server),
            (Self::Between { client, server }, Direction::Forward) => (server, client),
        };
        if let Some(whole) = &packet.whole {
            return Some(whole.clone());
        }
        let ends = Endpoints {
            source,
            destination,
        };
        let payload = packet.ip.transport.content();
        if payload.len() > PAYLOAD_LIMIT {
            return None; // more than either version of IP carries
        }
        let mut whole = Vec::new();
        encapsulate(&mut whole, ends, packet.ip.ecn, number, payload);
        Some(whole.into())
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
        let whole = ip().write(&sent, Direction::Return, 1).unwrap();
        let back = whole_packets.read(0, whole.clone()).unwrap();
        assert_eq!(back.ip, sent.ip, "its ECN is the header's");
        assert_eq!(
            ip().write(&back, Direction::Return, 9),
            Some(whole),
            "as it was"
        );
        assert_eq!(
            UDP.write(&back, Direction::Return, 9),
            Some(Bytes::from_static(b"payload"))
        );
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
        let whole = form.write(&answer, Direction::Forward, 1).unwrap();
        assert_eq!(whole[22..24], 34567_u16.to_be_bytes(), "its port");
    }

    #[test]
    fn over_a_further_path_the_client_has_another_address() {
        let mut udp = UDP;
        let datagram = udp.read(0, Bytes::from_static(b"payload")).unwrap();
        let of_server = DatagramForm::Ip {
            own: "198.51.100.1:443".parse().unwrap(),
            other: "192.0.2.1:50000".parse().unwrap(),
        };
        // Where an IPv4 header has the destination, and the source.
        for (host, form, client) in [
            (HostName::Client, ip(), 16..20),
            (HostName::Server, of_server, 12..16),
        ] {
            let whole =
                form.over(host, [192, 0, 2, 2].into())
                    .write(&datagram, Direction::Return, 1);
            assert_eq!(whole.unwrap()[client], [192, 0, 2, 2]);
        }
    }

    #[test]
    fn a_program_between_gets_packets_of_who_sent_them() {
        let between = DatagramForm::Between {
            client: "192.0.2.1:50000".parse().unwrap(),
            server: "198.51.100.1:443".parse().unwrap(),
        };
        let mut udp = UDP;
        let sent = udp.read(0, Bytes::from_static(b"payload")).unwrap();
        for (way, from) in [(Direction::Return, 192), (Direction::Forward, 198)] {
            let whole = between.write(&sent, way, 1).unwrap();
            assert_eq!(whole[12], from, "{way:?}: the first byte of the source");
        }
    }

    #[test]
    fn of_any_packet_ports_and_fragments_are_kept() {
        let (mut udp, mut any) = (UDP, DatagramForm::Any);
        let datagram = udp.read(0, Bytes::from_static(b"payload")).unwrap();
        let whole = ip().write(&datagram, Direction::Return, 1).unwrap();
        let found = any.read(0, whole.clone()).unwrap();
        assert_eq!(found.ip.transport.content(), &whole[20..], "its header too");
        assert_eq!(found.ip.transport.protocol(), 17);
        assert_eq!(any.write(&found, Direction::Return, 9), Some(whole.clone()));
        let mut fragment = whole.to_vec();
        fragment[7] = 1; // its offset
        let found = any.read(0, fragment.clone().into()).unwrap();
        assert_eq!(found.ip.transport.protocol(), UNKNOWN);
        assert_eq!(
            any.write(&found, Direction::Return, 9),
            Some(fragment.into())
        );
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
        assert!(UDP.write(&ping, Direction::Return, 0).is_none());
    }
}
