//! Step marking: every packet that has waited for longer than a threshold is marked.
//!
//! Source: the ramp of RFC 9332 (appendix A) drawn together to a step, as DCTCP has it in RFC 8257
//! (section 3.1), by time in place of bytes. Packets that cannot be marked pass as they are.

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::StepMarking;
use super::{Discipline, Fifo, Queued};
use crate::node::Transit;
use crate::waiting::Limit;

/// A queue that marks above a threshold, and drops at its tail.
pub(crate) struct StepQueue {
    config: StepMarking,
    limit: Limit,
    fifo: Fifo,
}

impl StepQueue {
    pub fn new(config: StepMarking, limit: Limit) -> Self {
        Self {
            config,
            limit,
            fifo: Fifo::default(),
        }
    }
}

impl Discipline for StepQueue {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        self.fifo.push_or_drop(queued, self.limit, dropped);
    }

    fn dequeue(&mut self, now: Time, _: &mut VecDeque<Transit>) -> Option<Queued> {
        let mut queued = self.fifo.pop()?;
        if now - queued.arrived > self.config.mark_above {
            queued.mark();
        }
        Some(queued)
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}
