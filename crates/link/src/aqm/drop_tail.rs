//! Drop-tail, where a packet's transmission is decided when it starts: where a packet more would be
//! too much, it goes.

use std::collections::VecDeque;

use bentpipe_units::{Ratio, Time};

use super::{Discipline, Fifo, Queued};
use crate::node::Transit;
use crate::random::Dice;
use crate::waiting::Limit;

/// A drop-tail queue, with random drops above a threshold if asked for.
pub(crate) struct DropTail {
    limit: Limit,
    random_drop: Option<(Limit, Ratio)>,
    dice: Dice,
    fifo: Fifo,
}

impl DropTail {
    pub fn new(limit: Limit, random_drop: Option<(Limit, Ratio)>, dice: Dice) -> Self {
        Self {
            limit,
            random_drop,
            dice,
            fifo: Fifo::default(),
        }
    }
}

impl Discipline for DropTail {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        let is_unlucky = self.random_drop.is_some_and(|(above, ratio)| {
            self.fifo.is_full_for(&queued, above) && self.dice.chance(ratio)
        });
        if is_unlucky {
            dropped.push_back(queued.transit);
        } else {
            self.fifo.push_or_drop(queued, self.limit, dropped);
        }
    }

    fn dequeue(&mut self, _: Time, _: &mut VecDeque<Transit>) -> Option<Queued> {
        self.fifo.pop()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes
    }
}
