//! The packets that wait for the frames or bursts of one terminal.

use std::collections::VecDeque;

use bentpipe_units::Time;

use crate::aqm::{Discipline, Queued};
use crate::node::{Step, Transit};

/// A packet that is being sent in parts, each with separate headers.
pub(crate) trait Encapsulation {
    /// A packet of which nothing has been sent.
    fn new(ip_bytes: u32) -> Self;

    /// Puts as much as fits into what is left of a frame; returns the bytes that this takes. 0:
    /// nothing fits.
    fn fill(&mut self, room: u64) -> u64;

    /// Bytes that are still to be sent, without further headers.
    fn left(&self) -> u64;
}

/// A queue, and the packet that is being sent.
pub(crate) struct Backlog<E> {
    queue: Box<dyn Discipline>,
    /// Packets in the queue.
    packets: u64,
    /// The packet of which a part has been sent.
    divided: Option<Divided<E>>,
}

/// A packet that goes on in the next frame.
pub(crate) struct Divided<E> {
    transit: Transit,
    rest: E,
    /// Whether a frame with a part of it was not received.
    is_lost: bool,
}

impl<E: Encapsulation> Backlog<E> {
    pub fn new(queue: Box<dyn Discipline>) -> Self {
        Self {
            queue,
            packets: 0,
            divided: None,
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.divided.is_none() && self.queue.bytes() == 0
    }

    /// The bytes in the queue.
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// The bytes that are to be sent, without headers, and the packets that they belong to.
    pub fn waiting(&self) -> (u64, u64) {
        let (left, divided) = match &self.divided {
            Some(divided) => (divided.rest.left(), 1),
            None => (0, 0),
        };
        (self.queue.bytes() + left, self.packets + divided)
    }

    /// Whether packets of a flow ever leave in another order than that in which they arrived.
    pub fn reorders(&self) -> bool {
        self.queue.reorders()
    }

    /// A packet arrives; it, or others in its place, may be dropped.
    pub fn enqueue(&mut self, now: Time, transit: Transit, dropped: &mut VecDeque<Transit>) {
        let before = dropped.len();
        let queued = Queued {
            transit,
            arrived: now,
        };
        self.queue.enqueue(queued, dropped);
        self.packets += 1;
        self.packets -= (dropped.len() - before) as u64;
    }

    /// Fills a frame that begins now; returns the packets that it completes.
    pub fn fill(
        &mut self,
        now: Time,
        mut room: u64,
        is_lost: bool,
        dropped: &mut VecDeque<Transit>,
    ) -> Vec<Divided<E>> {
        let mut complete = Vec::new();
        while let Some(mut packet) = self.next(now, dropped) {
            let used = packet.rest.fill(room);
            room -= used;
            packet.is_lost |= is_lost && used > 0;
            if packet.rest.left() > 0 {
                self.divided = Some(packet);
                break;
            }
            complete.push(packet);
        }
        complete
    }

    /// Drops all that waits.
    pub fn drop_all(&mut self, now: Time, dropped: &mut VecDeque<Transit>) {
        while let Some(packet) = self.next(now, dropped) {
            dropped.push_back(packet.transit);
        }
    }

    /// The packet that is being sent, or else the next.
    fn next(&mut self, now: Time, dropped: &mut VecDeque<Transit>) -> Option<Divided<E>> {
        if let Some(divided) = self.divided.take() {
            return Some(divided);
        }
        let before = dropped.len();
        let next = self.queue.dequeue(now, dropped);
        self.packets -= (dropped.len() - before) as u64 + u64::from(next.is_some());
        let Queued { transit, .. } = next?;
        Some(Divided {
            rest: E::new(transit.packet.ip_bytes),
            transit,
            is_lost: false,
        })
    }
}

impl<E> Divided<E> {
    /// Its fate, where its last part is sent in a frame that ends then.
    pub fn ends(self, end: Time) -> (Transit, Step) {
        let step = if self.is_lost {
            Step::Lose
        } else {
            Step::Leave { at: end }
        };
        (self.transit, step)
    }
}
