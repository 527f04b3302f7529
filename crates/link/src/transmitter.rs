//! The transmitter of a link: its capacity, and the drop-tail queue of what waits for it.

use bentpipe_units::{Size, Span, Time};

use crate::capacity::Capacity;
use crate::events::RequestWait;
use crate::node::{Node, Step, Transit};
use crate::outages::Outages;
use crate::random::{LinkSeed, Purpose};
use crate::rate_over_time::RateOverTime;
use crate::scenario::DirectionConfig;
use crate::waiting::Waiting;

/// A transmitter with a drop-tail queue. Nothing that comes later changes what becomes of a packet,
/// so it decides at arrival.
pub(crate) struct Transmitter {
    /// None: no limit, so nothing ever waits.
    capacity: Option<(Capacity, Waiting)>,
    /// Outages that empty the queue.
    flushes: Option<Outages>,
    frame: Option<Span>,
    max_queue_bytes: u64,
}

impl Transmitter {
    /// The transmitter of a link; None if it has neither a rate nor frames.
    pub fn new(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Option<Self> {
        let capacity = config.rate.as_ref().and_then(|rate| {
            let dice = seed.stream(Purpose::Queue);
            let waiting = Waiting::new(&config.queue, rate.nominal(), bdp, dice);
            let rate = RateOverTime::of_link(config, seed)?;
            Some((Capacity::new(rate), waiting))
        });
        let is_there = capacity.is_some() || config.frame.is_some();
        is_there.then_some(Self {
            capacity,
            flushes: config.outages.clone().filter(|it| it.flush),
            frame: config.frame,
            max_queue_bytes: 0,
        })
    }
}

/// The first end of a frame that is not before a time; the time itself without frames.
pub(crate) fn end_of_frame(frame: Option<Span>, time: Time) -> Time {
    let Some(frame) = frame else {
        return time;
    };
    let past = time.as_nanos() % frame.as_nanos();
    let left = frame.as_nanos() - past;
    time + Span::from_nanos(if past == 0 { 0 } else { left })
}

/// Whether there is an outage that empties the queue at a time, and if not, when one begins.
pub(crate) fn flush_after(flushes: Option<&Outages>, time: Time) -> (bool, Time) {
    flushes.map_or((false, Time::NEVER), |outages| outages.at(time))
}

impl Node for Transmitter {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        let ip_bytes = transit.packet.ip_bytes;
        let (is_out, end) = flush_after(self.flushes.as_ref(), now);
        if is_out {
            return Step::Drop;
        }
        let sent = match &mut self.capacity {
            None => now,
            Some((capacity, waiting)) => {
                let start = capacity.start(now);
                if !waiting.admit(now, start, ip_bytes) {
                    return Step::Drop;
                }
                self.max_queue_bytes = self.max_queue_bytes.max(waiting.bytes());
                if start > now {
                    capacity.wait(now, waiting.bytes());
                }
                match capacity.send_before(now, ip_bytes, end) {
                    Some(sent) => sent,
                    None => return Step::Drop,
                }
            }
        };
        Step::Leave {
            at: end_of_frame(self.frame, sent),
        }
    }

    fn queue_bytes(&self, now: Time) -> u64 {
        let capacity = self.capacity.as_ref();
        capacity.map_or(0, |(_, waiting)| waiting.bytes_at(now))
    }

    fn max_queue_bytes(&self) -> u64 {
        self.max_queue_bytes
    }

    fn answered_requests(&self) -> &[RequestWait] {
        self.capacity
            .as_ref()
            .map_or(&[], |(capacity, _)| capacity.requests())
    }
}
