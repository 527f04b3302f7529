//! Queue disciplines that act when a packet leaves: a file for each algorithm.

mod codel;
mod codel_state;
mod config;
mod drop_tail;
mod dualpi2;
mod fair_queue;
mod head_drop;
mod keys;
mod pi2;
mod pi_config;
mod pi_controller;
mod pie;
mod priority;
mod red;
mod step;

use std::collections::VecDeque;

use bentpipe_units::{Rate, Size, Time};

use crate::node::Transit;
use crate::queue::Queue;
use crate::random::Dice;
use crate::udp::Priority;
use crate::waiting::Limit;

pub(crate) use codel_state::CoDelState;
pub use config::{Aqm, CoDelConfig, FairQueueing, PieConfig, RedConfig, StepMarking};
pub use pi_config::{DualPi2Config, Pi2Config, PiConfig};

/// Congestion Experienced, in the two ECN bits (RFC 3168, section 5).
const CE: u8 = 3;

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub transit: Transit,
    pub arrived: Time,
}

/// A queue discipline: which packet is sent next, and which are dropped or marked.
pub(crate) trait Discipline: Send {
    /// A packet arrives; it, or others in its place, may be dropped.
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>);

    /// The packet whose transmission starts now; None if none is left.
    fn dequeue(&mut self, now: Time, dropped: &mut VecDeque<Transit>) -> Option<Queued>;

    /// The bytes that wait.
    fn bytes(&self) -> u64;

    /// Nothing waits, and the link has sent all that it took: as if it had asked for a packet.
    fn fall_idle(&mut self, _now: Time) {}

    /// Whether packets of a flow ever leave in another order than that in which they arrived.
    fn reorders(&self) -> bool {
        false
    }
}

/// The discipline that a queue asks for, or the priority of UDP in a drop-tail one; None:
/// drop-tail, which decides at arrival.
pub(crate) fn discipline(
    queue: &Queue,
    udp: Option<Priority>,
    rate: Rate,
    bdp: Size,
    mut dice: Dice,
) -> Option<Box<dyn Discipline>> {
    let limit_of = |size| Limit::new(size, rate, bdp);
    let limit = limit_of(queue.size);
    if let Some(udp) = udp {
        return Some(Box::new(priority::StrictPriority::new(udp, limit)));
    }
    Some(match queue.aqm? {
        Aqm::HeadDrop => Box::new(head_drop::HeadDrop::new(limit)),
        Aqm::Step(config) => Box::new(step::StepQueue::new(config, limit)),
        Aqm::Red(config) => {
            let thresholds = [config.min, config.max].map(limit_of);
            Box::new(red::Red::new(config, limit, thresholds, dice))
        }
        Aqm::Pie(config) => Box::new(pie::Pie::new(config, limit, dice)),
        Aqm::Pi2(config) => Box::new(pi2::Pi2::new(config, limit)),
        Aqm::DualPi2(config) => Box::new(dualpi2::DualPi2::new(config, limit)),
        Aqm::CoDel(config) => Box::new(codel::CoDel::new(config, limit)),
        Aqm::FairQueue(config) => Box::new(fair_queue::FairQueue::new(config, limit, &mut dice)),
    })
}

/// The discipline that a queue asks for; drop-tail, too, decides when a transmission starts.
pub(crate) fn discipline_of_any(
    queue: &Queue,
    rate: Rate,
    bdp: Size,
    dice: Dice,
) -> Box<dyn Discipline> {
    let limit = |size| Limit::new(size, rate, bdp);
    if queue.aqm.is_none() {
        let random = queue.random_drop.map(|it| (limit(it.above), it.ratio));
        return Box::new(drop_tail::DropTail::new(limit(queue.size), random, dice));
    }
    discipline(queue, None, rate, bdp, dice).expect("it has a discipline")
}

impl Queued {
    /// Marks it if its sender can handle that; says whether it did (RFC 3168, section 5).
    fn mark(&mut self) -> bool {
        let ecn = &mut self.transit.packet.ecn;
        if *ecn == 0 {
            return false;
        }
        self.transit.is_marked |= *ecn != CE;
        *ecn = CE;
        true
    }

    fn bytes(&self) -> u64 {
        u64::from(self.transit.packet.ip_bytes)
    }
}

/// Packets in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<Queued>,
    bytes: u64,
}

impl Fifo {
    fn push(&mut self, queued: Queued) {
        self.bytes += queued.bytes();
        self.packets.push_back(queued);
    }

    /// Takes a packet in at the tail, or drops it if the queue is full.
    fn push_or_drop(&mut self, queued: Queued, limit: Limit, dropped: &mut VecDeque<Transit>) {
        if self.is_full_for(&queued, limit) {
            dropped.push_back(queued.transit);
        } else {
            self.push(queued);
        }
    }

    fn pop(&mut self) -> Option<Queued> {
        let queued = self.packets.pop_front()?;
        self.bytes -= queued.bytes();
        Some(queued)
    }

    /// When the packet arrived that waits longest; None: none waits.
    fn oldest(&self) -> Option<Time> {
        self.packets.front().map(|queued| queued.arrived)
    }

    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Whether a packet more would be too much. One packet always fits.
    fn is_full_for(&self, queued: &Queued, limit: Limit) -> bool {
        !self.is_empty()
            && limit.is_exceeded_by(self.packets.len() as u64 + 1, self.bytes + queued.bytes())
    }
}

#[cfg(test)]
impl Queued {
    /// A packet for tests: of that identity, ECN field and size.
    pub(crate) fn arriving(id: u64, ecn: u8, ip_bytes: u32, arrived: Time) -> Self {
        let packet = crate::PacketMeta {
            id,
            ip_bytes,
            ecn,
            is_udp: true,
            flow: 0,
        };
        let transit = Transit {
            packet,
            number: id,
            is_lost: false,
            is_marked: false,
            is_copy: false,
            leaves_before: None,
            terminal: 0,
        };
        Self { transit, arrived }
    }
}
