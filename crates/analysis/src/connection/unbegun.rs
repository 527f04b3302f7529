//! Connections of QUIC whose first packet was not captured, or not as a whole, and of which there
//! are no secrets.
//!
//! A long header tells its version in the clear (RFC 8999 section 5.1), so one of a version that is
//! known tells that a flow of UDP is QUIC. A short one tells nothing (RFC 9000 section 17.3.1), and
//! RFC 9312 section 2.4 warns of classifiers. A flow that has none but these is taken for QUIC if
//! it goes to or from port 443, where HTTP/3 lives, every one of its datagrams begins with a bit
//! that is 0, and its first bytes end in many different ways: header protection makes them look
//! random (RFC 9001 section 5.4), while DTLS, `WireGuard`, `OpenVPN` and STUN have a handful of
//! types there. The QUIC bit is not asked for, as ends may grease it (RFC 9287). A flow in which a
//! version was seen that is not known, as of gQUIC, is none. What such a connection carries stays
//! unknown; its datagrams can be measured.

use std::collections::{HashMap, HashSet};

use bentpipe_wire::Path;
use bentpipe_wire::quic::{End, Handshake};

use super::observed::{ObservedConnection, PacketObservation};
use super::{Protocol, WireImage};

/// The port of servers of HTTP/3 (RFC 9114 section 3.2).
const PORT: u16 = 443;
/// Fewer datagrams than this may be anything.
const ENOUGH: usize = 32;
/// The protected bits of a first byte have 32 values, 8 beside loss bits. Among 32 packets, all but
/// one flow of QUIC in 10^4 show this many; protocols with a type there show less.
const VALUES: u32 = 6;

/// Flows that may be such connections.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// By the path from the client.
    by_path: HashMap<Path, Flow>,
    /// As they began.
    order: Vec<Path>,
}

#[derive(Debug, Default)]
struct Flow {
    observations: Vec<PacketObservation>,
    /// The version in its long headers.
    version: Option<u32>,
    /// A packet has another version.
    refused: bool,
}

impl Flows {
    /// The path from the client of a flow, and who sent the datagram: known, or by the ports. Of
    /// two that are not 443, the lower one is the server's. `is_quic` says that a long header tells
    /// that it is QUIC; without, other ports than 443 are no flow of ours.
    pub(super) fn of(&self, path: Path, is_quic: bool) -> Option<(Path, End)> {
        let back = path.reversed();
        if self.by_path.contains_key(&path) {
            return Some((path, End::Client));
        }
        if self.by_path.contains_key(&back) {
            return Some((back, End::Server));
        }
        match (path.source.port(), path.destination.port()) {
            (_, PORT) => Some((path, End::Client)),
            (PORT, _) => Some((back, End::Server)),
            (source, destination) if is_quic && source < destination => Some((back, End::Server)),
            _ => is_quic.then_some((path, End::Client)),
        }
    }

    /// Notes a datagram of a flow, and the version in it, if it has a long header.
    pub(super) fn note(
        &mut self,
        path: Path,
        observation: PacketObservation,
        version: Option<u32>,
    ) {
        let flow = self.flow(path);
        flow.version = flow.version.or(version);
        flow.observations.push(observation);
    }

    /// Notes that a flow speaks a version that is not known.
    pub(super) fn refuse(&mut self, path: Path) {
        self.flow(path).refused = true;
    }

    fn flow(&mut self, path: Path) -> &mut Flow {
        self.by_path.entry(path).or_insert_with(|| {
            self.order.push(path);
            Flow::default()
        })
    }

    /// The connections among the flows, and the captured packets of what is none. `known` are those
    /// that were seen to begin.
    pub(super) fn finish(
        mut self,
        known: &[ObservedConnection],
    ) -> (Vec<ObservedConnection>, Vec<u64>) {
        let known: HashSet<_> = known.iter().map(|it| it.ends).collect();
        let (mut connections, mut others) = (Vec::new(), Vec::new());
        for path in self.order {
            let flow = self.by_path.remove(&path).unwrap_or_default();
            let ends = [path.source, path.destination];
            if known.contains(&ends) || !flow.is_quic() {
                let frames = flow.observations.iter().map(|it| u64::from(it.frame));
                others.extend(frames);
                continue;
            }
            connections.push(ObservedConnection {
                protocol: Protocol::Quic(flow.version.unwrap_or(0)),
                ends,
                initial_credit: [None; 2],
                handshake: Handshake::default(),
                wire_image: WireImage::default(),
                tls: None,
                subflow: None,
                observations: flow.observations,
                frames: Vec::new(),
                ranges: Vec::new(),
            });
        }
        (connections, others)
    }
}

impl Flow {
    fn is_quic(&self) -> bool {
        let told = self.version.is_some() && !self.observations.is_empty();
        !self.refused && (told || looks_like_quic(&self.observations))
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
    use crate::connection::{Codepoint, Kind};
    use bentpipe_wire::quic::{Identity, PacketType};

    fn observations(first_bytes: impl Iterator<Item = u8>) -> Vec<PacketObservation> {
        let of = |first_byte| PacketObservation {
            time: 0,
            frame: 1,
            identity: Identity::default(),
            sender: End::Client,
            kind: Kind::Quic(PacketType::OneRtt),
            number: crate::Optional::default(),
            path_id: 0,
            size: 1200,
            first_byte,
            ip_size: Some(1228),
            ecn: Codepoint::NotEct,
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
        let (flows, mut seen) = (Flows::default(), Flows::default());
        let path = |source: &str, destination: &str| Path {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        };
        let up = path("192.0.2.1:50000", "198.51.100.1:443");
        assert_eq!(flows.of(up, false), Some((up, End::Client)));
        assert_eq!(flows.of(up.reversed(), false), Some((up, End::Server)));
        let other = path("192.0.2.1:5000", "192.0.2.2:4433");
        assert_eq!(flows.of(other, false), None);
        assert_eq!(flows.of(other, true), Some((other, End::Client)));
        assert_eq!(flows.of(other.reversed(), true), Some((other, End::Server)));
        // Once seen, it stays: also where both have this port.
        let both = path("192.0.2.1:443", "192.0.2.2:443");
        seen.refuse(both);
        assert_eq!(seen.of(both.reversed(), false), Some((both, End::Server)));
    }

    #[test]
    fn a_long_header_tells_a_flow_and_another_version_refuses_it() {
        let path = Path {
            source: "192.0.2.1:5000".parse().unwrap(),
            destination: "192.0.2.2:4433".parse().unwrap(),
        };
        let found = |refused: bool, known: &[ObservedConnection]| {
            let mut flows = Flows::default();
            for observation in observations([0xc0, 0x40].into_iter()) {
                let version = (observation.first_byte & 0x80 != 0).then_some(1);
                flows.note(path, observation, version);
            }
            if refused {
                flows.refuse(path);
            }
            flows.finish(known)
        };
        let (connections, others) = found(false, &[]);
        assert_eq!((connections.len(), others.len()), (1, 0));
        assert_eq!(connections[0].protocol, Protocol::Quic(1));
        // A connection that was seen to begin between the same ends has these packets, or none has.
        for (connections, others) in [found(true, &[]), found(false, &connections)] {
            assert_eq!((connections.len(), others.len()), (0, 2));
        }
    }
}
