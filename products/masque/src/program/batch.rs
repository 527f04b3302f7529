//! Datagrams that wait to leave together.

use std::net::SocketAddr;

use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{EndpointError, Transmit};
use bentpipe_masque::Segments;

/// Datagrams of one size, of which the last may be shorter, with the same ECN bits.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    segments: Segments,
    ecn: u8,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.segments.count() == 0
    }

    /// Datagrams that wait.
    pub fn count(&self) -> u64 {
        self.segments.count() as u64
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.segments = Segments::default();
    }

    /// Adds a datagram if it can leave with the others, of which there may be `most`.
    pub fn add(&mut self, ecn: u8, payload: &[u8], most: usize) -> bool {
        let is_alike = self.is_empty() || self.ecn == ecn;
        let is_added = is_alike && self.segments.add(payload.len(), most);
        if is_added {
            self.ecn = ecn;
            self.bytes.extend_from_slice(payload);
        }
        is_added
    }

    /// Sends all; `false`: the socket takes no more, and they are lost, as in any full queue.
    pub fn send(&mut self, port: &mut Port, to: SocketAddr) -> Result<bool, EndpointError> {
        let transmit = Transmit {
            ecn: self.ecn,
            segment_size: self.segments.size(),
            ..Transmit::to(to, None)
        };
        let sent = port.send(&transmit, &self.bytes);
        self.clear();
        sent
    }
}
