//! Connections of QUIC whose beginning was not captured, and of which there are no secrets.
//!
//! A packet with a short header tells neither its version nor its connection (RFC 9000 section
//! 17.3.1). A flow of UDP is taken for QUIC if it goes to or from port 443, where HTTP/3 lives, and
//! every one of its datagrams begins as a short header does, with the QUIC bit (RFC 9312 section
//! 2.4 asks for more than a single datagram). What it carries stays unknown; its datagrams can be
//! measured. A flow of QUIC on another port, or one whose ends grease the QUIC bit (RFC 9287), is
//! not found.

use std::collections::HashMap;

use bentpipe_wire::Path;
use bentpipe_wire::quic::End;

use super::recorder::{ObservedConnection, PacketObservation};
use super::{Protocol, WireImage};

/// The port of servers of HTTP/3 (RFC 9114 section 3.2).
const PORT: u16 = 443;
/// Fewer datagrams than this may be anything: by chance, this many begin with the right two bits
/// once in 10^9 flows.
const ENOUGH: usize = 16;

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
            let is_short = |it: &PacketObservation| it.first_byte & 0xc0 == 0x40;
            if observations.len() < ENOUGH || !observations.iter().all(is_short) {
                others.extend(observations.iter().map(|it| u64::from(it.frame)));
                continue;
            }
            connections.push(ObservedConnection {
                protocol: Protocol::Quic(0),
                ends: [path.source, path.destination],
                initial_credit: [None; 2],
                handshake: Default::default(),
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
