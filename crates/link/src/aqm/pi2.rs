//! Proportional Integral Improved with a Square (PI2): drops or marks packets as they leave, with
//! the square of a probability that a controller sets by the queueing delay.
//!
//! Source: the Classic AQM of RFC 9332, appendix A, by itself; De Schepper et al., PI2: A
//! Linearized AQM for both Classic and Scalable TCP, ACM `CoNEXT` 2016, section 5. ECT(1) is
//! treated as ECT(0) is (RFC 3168, section 5): only `DualPI2` couples the two. Packets are dropped
//! that could be marked where the probability of that is 25 % or more, as for the RFC's k = 2.

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::pi_controller::{PiController, Recurrence};
use super::{Discipline, Fifo, Pi2Config, Queued};
use crate::node::Transit;
use crate::waiting::Limit;

/// `k` of the RFC, which here only tells where overload begins: at 1 / k^2.
const COUPLING: u64 = 2;

/// A queue under PI2, which drops at its tail where it is full.
pub(crate) struct Pi2 {
    config: Pi2Config,
    limit: Limit,
    fifo: Fifo,
    controller: PiController,
    count: Recurrence,
}

impl Pi2 {
    pub fn new(config: Pi2Config, limit: Limit) -> Self {
        Self {
            config,
            limit,
            fifo: Fifo::default(),
            controller: PiController::new(config.pi, COUPLING),
            count: Recurrence::default(),
        }
    }
}

impl Discipline for Pi2 {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        let now = queued.arrived;
        self.controller.update_until(now, self.fifo.oldest());
        self.fifo.push_or_drop(queued, self.limit, dropped);
    }

    fn dequeue(&mut self, now: Time, dropped: &mut VecDeque<Transit>) -> Option<Queued> {
        self.controller.update_until(now, self.fifo.oldest());
        while let Some(mut packet) = self.fifo.pop() {
            let (count, ecn) = (&mut self.count, self.config.ecn);
            if self.controller.lets_pass(count, &mut packet, ecn) {
                return Some(packet);
            }
            dropped.push_back(packet.transit);
        }
        None
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}
