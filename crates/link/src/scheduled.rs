//! The transmitter of a link whose queue decides when packets leave.

use std::collections::VecDeque;

use bentpipe_units::{Size, Span, Time};

use crate::aqm::{Discipline, Queued, discipline};
use crate::capacity::Capacity;
use crate::node::{Node, Step, Transit};
use crate::random::{LinkSeed, Use};
use crate::rate_over_time::RateOverTime;
use crate::scenario::DirectionConfig;
use crate::transmitter::end_of_frame;

/// A transmitter with a queue discipline: it holds packets until their transmission starts.
pub(crate) struct ScheduledTransmitter {
    capacity: Capacity,
    queue: Box<dyn Discipline>,
    frame: Option<Span>,
    /// Dropped, and not yet reported.
    dropped: VecDeque<Transit>,
    /// When the last packet arrived.
    last_arrival: Time,
    max_queue_bytes: u64,
}

impl ScheduledTransmitter {
    /// The transmitter of a link; None if it has no rate, so that nothing ever waits, or if its
    /// queue decides at arrival.
    pub fn new(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Option<Self> {
        let rate = config.rate.as_ref()?;
        let dice = seed.stream(Use::Queue);
        let queue = discipline(&config.queue, rate.nominal(), bdp, dice)?;
        Some(Self {
            capacity: Capacity::new(RateOverTime::new(rate, seed.stream(Use::Rate))),
            queue,
            frame: config.frame,
            dropped: VecDeque::new(),
            last_arrival: Time::ZERO,
            max_queue_bytes: 0,
        })
    }

    /// When the next transmission starts; NEVER if nothing waits. What waited before the last
    /// arrival and could be sent then has been released.
    fn next_start(&self) -> Time {
        match self.queue.bytes() {
            0 => Time::NEVER,
            _ => self.capacity.start(self.last_arrival),
        }
    }
}

impl Node for ScheduledTransmitter {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        self.last_arrival = now;
        let queued = Queued {
            transit: *transit,
            arrived: now,
        };
        self.queue.enqueue(queued, &mut self.dropped);
        if self.capacity.start(now) > now {
            self.max_queue_bytes = self.max_queue_bytes.max(self.queue.bytes());
            self.capacity.wait(now, self.queue.bytes());
        }
        Step::Hold
    }

    fn holds(&self) -> bool {
        true
    }

    fn next_event(&self) -> Time {
        self.next_start()
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        loop {
            if let Some(transit) = self.dropped.pop_front() {
                return Some((transit, Step::Drop));
            }
            let start = self.next_start();
            if start > until || start == Time::NEVER {
                return None;
            }
            // It may drop all that waits.
            let Some(next) = self.queue.dequeue(start, &mut self.dropped) else {
                continue;
            };
            let ip_bytes = next.transit.packet.ip_bytes;
            let sent = self.capacity.send(next.arrived, ip_bytes);
            let at = end_of_frame(self.frame, sent);
            return Some((next.transit, Step::Leave { at }));
        }
    }

    fn queue_bytes(&self, _: Time) -> u64 {
        self.queue.bytes()
    }

    fn max_queue_bytes(&self) -> u64 {
        self.max_queue_bytes
    }
}
