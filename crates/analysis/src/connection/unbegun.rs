//! Connections of QUIC whose beginning was not captured, and of which there are no secrets.
//!
//! A packet with a short header tells neither its version nor its connection (RFC 9000 section
//! 17.3.1), and RFC 9312 section 2.4 warns of classifiers. A flow of UDP is taken for QUIC if it
//! goes to or from port 443, where HTTP/3 lives, every one of its datagrams begins with a bit that
//! is 0, as a short header does, and its first bytes end in many different ways: header protection
//! makes them look random (RFC 9001 section 5.4), while DTLS, `WireGuard`, `OpenVPN` and STUN
//! have a handful of types there. What it carries stays unknown; its datagrams can be measured.
//! The QUIC bit is not asked for, as ends may grease it (RFC 9287). A flow of QUIC on another port
//! is not found.

use std::collections::HashMap;

use bentpipe_wire::Path;
use bentpipe_wire::quic::{End, Handshake};

use super::recorder::{ObservedConnection, PacketObservation};
use super::{Protocol, WireImage};

/// The port of servers of HTTP/3 (RFC 9114 section 3.2).
const PORT: u16 = 443;
/// Fewer datagrams than this may be anything.
const ENOUGH: usize = 32;
/// The protected bits of a first byte have 32 values, 8 beside loss bits. Among 32 packets, all but
/// one flow of QUIC in 10^4 show so many; protocols with a type there show less.
const VALUES: u32 = 6;

/// Flows that may be such connections.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// By the path from the client.
    by_path: HashMap<Path, Vec<PacketObservation>>,
    /// As they began.
    order: Vec<Path>,
}

impl Flows {
    /// The path of a datagram from the client of its flow, and who sent it. None if it is of no
    /// such flow.
    pub(super) fn of(path: Path) -> Option<(Path, End)> {
        match (path.source.port(), path.destination.port()) {
            (_, PORT) => Some((path, End::Client)),
            (PORT, _) => Some((path.reversed(), End::Server)),
            _ => None,
        }
    }

    /// Notes a datagram of a flow.
    pub(super) fn note(&mut self, path: Path, observation: PacketObservation) {
        let observations = self.by_path.entry(path).or_insert_with(|| {
            self.order.push(path);
            Vec::new()
        });
        observations.push(observation);
    }

    /// The connections among the flows, and the captured packets of what is none.
    pub(super) fn finish(mut self) -> (Vec<ObservedConnection>, Vec<u64>) {
        let (mut connections, mut others) = (Vec::new(), Vec::new());
        for path in self.order {
            let observations = self.by_path.remove(&path).unwrap_or_default();
            if !looks_like_quic(&observations) {
                others.extend(observations.iter().map(|it| u64::from(it.frame)));
                continue;
            }
            connections.push(ObservedConnection {
                protocol: Protocol::Quic(0),
                ends: [path.source, path.destination],
                initial_credit: [None; 2],
                handshake: Handshake::default(),
                wire_image: WireImage::default(),
                tls: None,
                observations,
                frames: Vec::new(),
                ranges: Vec::new(),
            });
        }
        (connections, others)
    }
}

fn looks_like_quic(observations: &[PacketObservation]) -> bool {
    let is_short = |it: &PacketObservation| it.first_byte & 0x80 == 0;
    let bits = observations
        .iter()
        .map(|it| 1_u32 << (it.first_byte & 0x1f));
    let values = bits.fold(0, |seen, value| seen | value).count_ones();
    observations.len() >= ENOUGH && observations.iter().all(is_short) && values >= VALUES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Kind;
    use bentpipe_wire::quic::{Identity, PacketType};

    fn observations(first_bytes: impl Iterator<Item = u8>) -> Vec<PacketObservation> {
        let of = |first_byte| PacketObservation {
            time: 0,
            frame: 1,
            identity: Identity::default(),
            sender: End::Client,
            kind: Kind::Quic(PacketType::OneRtt),
            number: None,
            size: 1200,
            first_byte,
            ip_size: Some(1228),
            fate: None,
            decoded: false,
            frames: 0..0,
        };
        first_bytes.map(of).collect()
    }

    #[test]
    fn what_has_types_in_its_first_byte_is_no_quic() {
        let quic = |at: u8| at.wrapping_mul(37) & 0x7f;
        assert!(looks_like_quic(&observations((0..40).map(quic))));
        assert!(!looks_like_quic(&observations((0..31).map(quic))));
        assert!(!looks_like_quic(&observations(
            (0..40).map(|at| quic(at) | 0x80)
        )));
        let dtls = |at: u8| 20 + at % 5;
        assert!(!looks_like_quic(&observations((0..200).map(dtls))));
        let wireguard = |at: u8| 1 + at % 4;
        assert!(!looks_like_quic(&observations((0..200).map(wireguard))));
    }

    #[test]
    fn the_server_is_at_port_443() {
        let path = |source: &str, destination: &str| Path {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        let up = path("192.0.2.1:50000", "198.51.100.1:443");
        assert_eq!(Flows::of(up), Some((up, End::Client)));
        assert_eq!(Flows::of(up.reversed()), Some((up, End::Server)));
        assert_eq!(Flows::of(path("192.0.2.1:1", "192.0.2.2:2")), None);
    }
}
