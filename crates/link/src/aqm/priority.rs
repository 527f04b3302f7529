//! Strict priority of UDP over the rest, or of the rest over UDP.
//!
//! Two queues in the order of arrival share the buffer: a packet is dropped at the tail where both
//! together are full, whichever it belongs to.

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::{Discipline, Fifo, Queued};
use crate::node::Transit;
use crate::udp::Priority;
use crate::waiting::Limit;

/// A queue of two classes.
pub(crate) struct StrictPriority {
    udp: Priority,
    limit: Limit,
    first: Fifo,
    second: Fifo,
}

impl StrictPriority {
    pub fn new(udp: Priority, limit: Limit) -> Self {
        Self {
            udp,
            limit,
            first: Fifo::default(),
            second: Fifo::default(),
        }
    }
}

impl Discipline for StrictPriority {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        let packets = (self.first.packets.len() + self.second.packets.len()) as u64 + 1;
        // One packet always fits.
        if packets > 1
            && self
                .limit
                .is_exceeded_by(packets, self.bytes() + queued.bytes())
        {
            dropped.push_back(queued.transit);
            return;
        }
        let is_first = queued.transit.packet.is_udp == (self.udp == Priority::High);
        let fifo = if is_first {
            &mut self.first
        } else {
            &mut self.second
        };
        fifo.push(queued);
    }

    fn dequeue(&mut self, _: Time, _: &mut VecDeque<Transit>) -> Option<Queued> {
        self.first.pop().or_else(|| self.second.pop())
    }

    fn bytes(&self) -> u64 {
        self.first.bytes + self.second.bytes
    }
}
