//! Flow queueing: a queue for each flow, served in turn by deficit round robin, with CoDel over
//! each (FQ-CoDel, RFC 8290) or without.
//!
//! A flow that has just begun is served before those that have used a quantum (section 4.2). Where
//! all queues together are too long, the longest one loses packets from its head, half of them but
//! at most 64, as Linux's `fq_codel` does it in place of one (section 4.1).

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::FairQueueing;
use super::{CoDelState, Discipline, Fifo, Queued};
use crate::node::Transit;
use crate::random::Dice;
use crate::waiting::Limit;

/// The most packets that an overload drops at once.
const DROP_BATCH: u64 = 64;

/// Queues of flows.
pub(crate) struct FairQueue {
    config: FairQueueing,
    limit: Limit,
    /// The seed of the hash of flows, so that no two of them collide in all trials.
    perturbation: u64,
    queues: Vec<FlowQueue>,
    /// Numbers of queues that are served: of flows that have just begun, and of others.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: u64,
    bytes: u64,
}

/// The queue of the flows that hash to it.
#[derive(Default)]
struct FlowQueue {
    fifo: Fifo,
    codel: CoDelState,
    /// Bytes that it may still send in its turn.
    credit: i64,
    /// Whether it is in one of the two lists.
    is_active: bool,
}

impl FairQueue {
    pub fn new(config: FairQueueing, limit: Limit, dice: &mut Dice) -> Self {
        let count = usize::try_from(config.flows).expect("checked when it was read");
        Self {
            config,
            limit,
            perturbation: dice.up_to(u64::MAX),
            queues: (0..count).map(|_| FlowQueue::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// The number of a flow's queue: Fibonacci hashing of its number.
    fn queue_of(&self, flow: u64) -> usize {
        let hash = (flow ^ self.perturbation).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let scaled = (u128::from(hash) * self.queues.len() as u128) >> 64;
        usize::try_from(scaled).expect("below the number of queues")
    }

    fn quantum(&self) -> i64 {
        i64::try_from(self.config.quantum.bytes()).expect("checked when it was read")
    }

    /// Drops from the head of the longest queue.
    fn drop_from_longest(&mut self, dropped: &mut VecDeque<Transit>) {
        // Of several, the first.
        let longest = self.queues.iter_mut().rev().max_by_key(|it| it.fifo.bytes);
        let longest = longest.expect("there is a queue");
        let half = longest.fifo.bytes / 2;
        let (mut freed, mut drops) = (0, 0);
        while drops < DROP_BATCH
            && let Some(packet) = longest.fifo.pop()
        {
            drops += 1;
            freed += packet.bytes();
            dropped.push_back(packet.transit);
            if freed >= half {
                break;
            }
        }
        longest.codel.overflow(drops);
        self.packets -= drops;
        self.bytes -= freed;
    }

    /// The queue whose turn it is, and whether it has just begun.
    fn current(&mut self) -> Option<(usize, bool)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            if self.queues[number].credit > 0 {
                return Some((number, is_new));
            }
            list.pop_front();
            let quantum = self.quantum();
            self.queues[number].credit += quantum;
            self.old.push_back(number);
        }
    }

    /// A queue has nothing to send: a new one becomes an old one, so that it cannot begin anew
    /// within a turn; an old one is not served any more.
    fn retire(&mut self, number: usize, is_new: bool) {
        if is_new {
            self.new.pop_front();
            if !self.old.is_empty() {
                self.old.push_back(number);
                return;
            }
        } else {
            self.old.pop_front();
        }
        self.queues[number].is_active = false;
    }
}

impl Discipline for FairQueue {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        let number = self.queue_of(queued.transit.packet.flow);
        let quantum = self.quantum();
        let queue = &mut self.queues[number];
        self.packets += 1;
        self.bytes += queued.bytes();
        queue.fifo.push(queued);
        if !queue.is_active {
            queue.is_active = true;
            queue.credit = quantum;
            self.new.push_back(number);
        }
        while self.packets > 1 && self.limit.is_exceeded_by(self.packets, self.bytes) {
            self.drop_from_longest(dropped);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut VecDeque<Transit>) -> Option<Queued> {
        loop {
            let (number, is_new) = self.current()?;
            let queue = &mut self.queues[number];
            let before = (queue.fifo.packets.len() as u64, queue.fifo.bytes);
            let (fifo, beside) = (&mut queue.fifo, self.bytes - before.1);
            let next = match &self.config.codel {
                Some(codel) => queue.codel.dequeue(now, fifo, beside, codel, dropped),
                None => fifo.pop(),
            };
            self.packets -= before.0 - queue.fifo.packets.len() as u64;
            self.bytes -= before.1 - queue.fifo.bytes;
            if let Some(packet) = next {
                queue.credit -= i64::from(packet.transit.packet.ip_bytes);
                return Some(packet);
            }
            self.retire(number, is_new);
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All queues are retired: the next packet of each flow begins anew.
    fn fall_idle(&mut self, now: Time) {
        let next = self.dequeue(now, &mut VecDeque::new());
        assert!(next.is_none(), "nothing waits");
    }
}
