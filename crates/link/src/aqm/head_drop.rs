//! Head drop: where a packet more would be too much, the oldest one goes.
//!
//! The sender learns of the loss earlier than with drop-tail, by the time that the queue takes.

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::{Discipline, Fifo, Queued};
use crate::node::Transit;
use crate::waiting::Limit;

/// A queue that drops from its head.
pub(crate) struct HeadDrop {
    limit: Limit,
    fifo: Fifo,
}

impl HeadDrop {
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            fifo: Fifo::default(),
        }
    }
}

impl Discipline for HeadDrop {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        while self.fifo.is_full_for(&queued, self.limit) {
            let oldest = self.fifo.pop().expect("it is not empty");
            dropped.push_back(oldest.transit);
        }
        self.fifo.push(queued);
    }

    fn dequeue(&mut self, _: Time, _: &mut VecDeque<Transit>) -> Option<Queued> {
        self.fifo.pop()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}
