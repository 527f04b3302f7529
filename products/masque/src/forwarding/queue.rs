//! Forwarded packets that wait for their socket.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

use bentpipe_endpoint::Transmit;
use bytes::Bytes;

use crate::counts::Statistics;
use crate::segments::Segments;

/// Bytes that wait at most: as many as sockets hold that are read before this one is written.
const MOST_BYTES: usize = 8 << 20;

/// Forwarded packets that wait for their socket, with where each goes, and from which of this
/// host's addresses.
#[derive(Default)]
pub struct ForwardQueue {
    waiting: VecDeque<(Transmit, Bytes)>,
    bytes: usize,
}

impl ForwardQueue {
    /// Adds a packet, or drops it if too much waits.
    pub fn push(&mut self, path: Transmit, packet: Bytes, counts: &mut Statistics) {
        if self.bytes + packet.len() > MOST_BYTES {
            counts.queue_full_datagrams_total += 1;
            return;
        }
        counts.forwarded_packets_total += 1;
        counts.forwarded_bytes_total += packet.len() as u64;
        self.bytes += packet.len();
        self.waiting.push_back((path, packet));
    }

    /// Puts the next ones that can leave together into `buffer`, which is empty.
    pub fn poll(&mut self, most: NonZeroUsize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        debug_assert!(buffer.is_empty());
        let path = self.waiting.front()?.0;
        let mut segments = Segments::default();
        while let Some((_, packet)) = self
            .waiting
            .pop_front_if(|(to, packet)| *to == path && segments.add(packet.len(), most.get()))
        {
            self.bytes -= packet.len();
            buffer.extend_from_slice(&packet);
        }
        Some(Transmit {
            segment_size: segments.size(),
            ..path
        })
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn packets_of_one_size_to_one_place_leave_together_and_a_full_queue_takes_no_more() {
        let place = |port| Transmit::to(SocketAddr::from(([192, 0, 2, 1], port)), None);
        let mut queue = ForwardQueue::default();
        let mut counts = Statistics::default();
        for (port, size) in [(1, 5), (1, 5), (1, 3), (1, 5), (2, 5), (2, 6)] {
            queue.push(place(port), vec![0; size].into(), &mut counts);
        }
        queue.push(place(1), vec![0; MOST_BYTES].into(), &mut counts);
        assert_eq!(counts.forwarded_packets_total, 6);
        assert_eq!(counts.queue_full_datagrams_total, 1);
        let mut taken = Vec::new();
        let mut buffer = Vec::new();
        while let Some(transmit) = queue.poll(NonZeroUsize::new(9).unwrap(), &mut buffer) {
            taken.push((buffer.len(), transmit.segment_size));
            buffer.clear();
        }
        assert_eq!(taken, [(13, Some(5)), (5, None), (5, None), (6, None)]);
    }

    #[test]
    fn no_more_leave_together_than_udp_carries() {
        let path = Transmit::to(SocketAddr::from(([192, 0, 2, 1], 1)), None);
        let mut queue = ForwardQueue::default();
        for _ in 0..64 {
            queue.push(path, vec![0; 1400].into(), &mut Statistics::default());
        }
        let mut buffer = Vec::new();
        queue.poll(NonZeroUsize::new(64).unwrap(), &mut buffer);
        assert_eq!(buffer.len(), 46 * 1400);
    }
}
