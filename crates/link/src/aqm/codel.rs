//! CoDel over a queue that all flows share (RFC 8289).

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::CoDelConfig;
use super::{CoDelState, Discipline, Fifo, Queued};
use crate::node::Transit;
use crate::waiting::Limit;

/// A queue under CoDel, which drops at its tail where it is full.
pub(crate) struct CoDel {
    config: CoDelConfig,
    limit: Limit,
    fifo: Fifo,
    state: CoDelState,
}

impl CoDel {
    pub fn new(config: CoDelConfig, limit: Limit) -> Self {
        Self {
            config,
            limit,
            fifo: Fifo::default(),
            state: CoDelState::default(),
        }
    }
}

impl Discipline for CoDel {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        self.fifo.push_or_drop(queued, self.limit, dropped);
    }

    fn dequeue(&mut self, now: Time, dropped: &mut VecDeque<Transit>) -> Option<Queued> {
        let (fifo, config) = (&mut self.fifo, &self.config);
        self.state.dequeue(now, fifo, 0, config, dropped)
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}
