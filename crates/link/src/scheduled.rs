//! The transmitter of a link whose queue decides when packets leave.

use std::collections::VecDeque;

use bentpipe_units::{Size, Span, Time};

use crate::aqm::{Discipline, Queued, discipline};
use crate::capacity::Capacity;
use crate::events::RequestWait;
use crate::node::{Node, Step, Transit};
use crate::outages::Outages;
use crate::random::{LinkSeed, Purpose};
use crate::rate_over_time::RateOverTime;
use crate::scenario::DirectionConfig;
use crate::transmitter::{end_of_frame, flush_after};

/// A transmitter with a queue discipline: it holds packets until their transmission starts.
pub(crate) struct ScheduledTransmitter {
    capacity: Capacity,
    queue: Box<dyn Discipline>,
    frame: Option<Span>,
    /// Outages that empty the queue.
    flushes: Option<Outages>,
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
        let dice = seed.stream(Purpose::Queue);
        let priority = config.udp.and_then(|it| it.priority);
        let queue = discipline(&config.queue, priority, rate.nominal(), bdp, dice)?;
        Some(Self {
            capacity: Capacity::new(RateOverTime::of_link(config, seed)?),
            queue,
            frame: config.frame,
            flushes: config.outages.clone().filter(|it| it.flush),
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

    /// The start of the next outage that empties the queue. What waits has arrived after the one
    /// before.
    fn next_flush(&self) -> Time {
        flush_after(self.flushes.as_ref(), self.last_arrival).1
    }

    /// Drops all that waits at a time.
    fn flush(&mut self, at: Time) {
        while let Some(next) = self.queue.dequeue(at, &mut self.dropped) {
            self.dropped.push_back(next.transit);
        }
    }
}

impl Node for ScheduledTransmitter {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        self.last_arrival = now;
        let (is_out, _) = flush_after(self.flushes.as_ref(), now);
        if is_out {
            return Step::Drop;
        }
        if self.queue.bytes() == 0 && self.capacity.start(now) == now {
            self.queue.fall_idle(now);
        }
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

    fn reorders(&self) -> bool {
        self.queue.reorders()
    }

    fn holds(&self) -> bool {
        true
    }

    fn next_event(&self) -> Time {
        match self.next_start() {
            Time::NEVER => Time::NEVER,
            start => start.min(self.next_flush()),
        }
    }

    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        loop {
            if let Some(transit) = self.dropped.pop_front() {
                return Some((transit, Step::Drop));
            }
            let start = self.next_start();
            let end = self.next_flush();
            if start.min(end) > until || start == Time::NEVER {
                return None;
            }
            if start >= end {
                self.flush(end);
                continue;
            }
            // It may drop all that waits.
            let Some(next) = self.queue.dequeue(start, &mut self.dropped) else {
                continue;
            };
            let ip_bytes = next.transit.packet.ip_bytes;
            let sent = self.capacity.send_before(next.arrived, ip_bytes, end);
            let step = sent.map_or(Step::Drop, |sent| Step::Leave {
                at: end_of_frame(self.frame, sent),
            });
            return Some((next.transit, step));
        }
    }

    fn queue_bytes(&self, _: Time) -> u64 {
        self.queue.bytes()
    }

    fn max_queue_bytes(&self) -> u64 {
        self.max_queue_bytes
    }

    fn answered_requests(&self) -> &[RequestWait] {
        self.capacity.requests()
    }
}
