//! Datagrams that leave together: those of one size to one address are one call to the kernel.

use std::net::SocketAddr;

use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{EndpointError, Transmit};

/// The most that UDP over IPv4 carries, and so the most that one call can send.
const MOST_BYTES: usize = 65_507;

/// Datagrams of one size, of which the last may be shorter.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// The size of all but the last.
    size: usize,
    count: usize,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Datagrams that wait.
    pub fn count(&self) -> u64 {
        self.count as u64
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Drops all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Adds a datagram if it can leave with the others, of which there may be `most`.
    pub fn add(&mut self, payload: &[u8], most: usize) -> bool {
        if self.count > 0 {
            let is_next = self.bytes.len() == self.size * self.count
                && (1..=self.size).contains(&payload.len())
                && self.count < most
                && self.bytes.len() + payload.len() <= MOST_BYTES;
            if !is_next {
                return false;
            }
        } else {
            self.size = payload.len();
        }
        self.bytes.extend_from_slice(payload);
        self.count += 1;
        true
    }

    /// Sends all; `false`: the socket takes no more, and they are lost, as in any full queue. They
    /// have no ECN bits (RFC 9298, section 6.2).
    pub fn send(&mut self, port: &mut Port, to: SocketAddr) -> Result<bool, EndpointError> {
        let segment = (self.count > 1).then_some(self.size);
        let transmit = Transmit {
            segment_size: segment,
            ..Transmit::to(to, None)
        };
        let sent = port.send(&transmit, &self.bytes);
        self.clear();
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_one_size_leave_together_and_a_shorter_one_ends_them() {
        let mut batch = Batch::default();
        assert!(batch.add(&[1; 100], 64) && batch.add(&[2; 100], 64));
        assert!(!batch.add(&[3; 101], 64), "a longer one");
        assert!(batch.add(&[3; 99], 64));
        assert!(!batch.add(&[4; 99], 64), "what follows a shorter one");
        let mut empty = Batch::default();
        assert!(empty.add(&[], 64) && !empty.add(&[], 64));
        let mut large = Batch::default();
        let half = vec![0; 40_000];
        assert!(large.add(&half, 64) && !large.add(&half, 64));
        let mut few = Batch::default();
        assert!(few.add(&[0; 10], 2) && few.add(&[0; 10], 2) && !few.add(&[0; 10], 2));
    }
}
