//! Datagrams that wait for the driver, for libraries that write them before they are asked for.

use std::collections::VecDeque;
use std::ops::Range;

use crate::stack::Transmit;

/// The datagrams that wait to be sent, in their order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Where each goes, and which of the bytes are its payload.
    waiting: VecDeque<(Transmit, Range<usize>)>,
    /// One piece of memory for all: an allocation for each datagram would cost more.
    bytes: Vec<u8>,
}

impl Outbox {
    /// The number of datagrams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds one datagram.
    pub fn push(&mut self, transmit: Transmit, payload: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(payload);
        self.waiting.push_back((transmit, start..self.bytes.len()));
    }

    /// Puts up to `most` datagrams of one size, of which the last may be shorter, into the empty
    /// `buffer`, as [`Stack::poll_transmit`](crate::Stack::poll_transmit) does.
    pub fn take(&mut self, most: usize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let (transmit, payload) = self.waiting.pop_front()?;
        let size = payload.len();
        buffer.extend_from_slice(&self.bytes[payload]);
        let mut count = 1;
        while count < most
            && buffer.len() == count * size
            && let Some((next, payload)) = self.waiting.front()
            && *next == transmit
            && payload.len() <= size
        {
            buffer.extend_from_slice(&self.bytes[payload.clone()]);
            self.waiting.pop_front();
            count += 1;
        }
        if self.waiting.is_empty() {
            self.bytes.clear();
        }
        Some(Transmit {
            segment_size: (count > 1).then_some(size),
            ..transmit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_one_size_to_one_place_leave_together() {
        // By twos at most; a shorter one is the last; another place or a longer one has to wait.
        let waiting = [
            (1, "aa"),
            (1, "bb"),
            (1, "cc"),
            (1, "d"),
            (1, "e"),
            (2, "f"),
            (2, "gg"),
        ];
        let expected = [(1, "aabb"), (1, "ccd"), (1, "e"), (2, "f"), (2, "gg")];
        let mut outbox = Outbox::default();
        for (port, payload) in waiting {
            let place = ([192, 0, 2, 1], port).into();
            outbox.push(Transmit::to(place, None), payload.as_bytes());
        }
        for (port, bytes) in expected {
            let mut buffer = Vec::new();
            let transmit = outbox.take(2, &mut buffer).unwrap();
            assert_eq!(
                (transmit.destination.port(), &*buffer),
                (port, bytes.as_bytes())
            );
            assert_eq!(transmit.segment_size, (bytes.len() > 2).then_some(2));
        }
        assert!(outbox.is_empty() && outbox.bytes.is_empty());
    }
}
