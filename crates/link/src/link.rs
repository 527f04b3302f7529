//! One direction of one segment.

use bentpipe_units::{Size, Span, Time};

use crate::capacity::Capacity;
use crate::delay::Delays;
use crate::loss::Losses;
use crate::random::{LinkSeed, Use};
use crate::rate::LinkRate;
use crate::rate_over_time::RateOverTime;
use crate::scenario::DirectionConfig;
use crate::waiting::Waiting;

/// The fate of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It comes out at the other end.
    Delivered {
        /// When its last bit is there.
        at: Time,
    },
    /// The queue does not take it.
    QueueDrop,
    /// It is lost on the way, after it has used the capacity.
    Loss,
}

/// The counters of a link. `packets = delivered + queue_drops + losses`, at any time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came in.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that went out, or will.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets dropped by a queue.
    pub queue_drops: u64,
    /// Packets lost.
    pub losses: u64,
    /// The most bytes that ever waited for a link's capacity.
    pub max_queue_bytes: u64,
}

/// A link, one direction of one segment: capacity, queue, loss, delay.
pub struct Link {
    /// None: no limit, so nothing ever waits.
    capacity: Option<(Capacity, Waiting)>,
    frame: Option<Span>,
    losses: Losses,
    delays: Delays,
    now: Time,
    counters: Counters,
}

impl Link {
    /// A link that nothing has passed yet. `bdp` is what a queue size in BDP refers to:
    /// the link's rate times the path's round-trip time.
    #[must_use]
    pub fn new(config: &DirectionConfig, bdp: Size, seed: LinkSeed) -> Self {
        let limited = |rate: &LinkRate| {
            let dice = seed.stream(Use::Queue);
            let waiting = Waiting::new(&config.queue, rate.nominal(), bdp, dice);
            let rate = RateOverTime::new(rate, seed.stream(Use::Rate));
            (Capacity::new(rate), waiting)
        };
        Self {
            capacity: config.rate.as_ref().map(limited),
            frame: config.frame,
            losses: Losses::new(config.loss, seed.stream(Use::Loss)),
            delays: Delays::new(config.delay.clone(), seed.stream(Use::Delay)),
            now: Time::ZERO,
            counters: Counters::default(),
        }
    }

    /// Decides the fate of a packet that arrives now. Times must not go back.
    pub fn admit(&mut self, now: Time, ip_bytes: u32) -> Fate {
        assert!(
            now >= self.now,
            "a packet arrives at {now}, after one at {}",
            self.now
        );
        self.now = now;
        let fate = self.decide(now, ip_bytes);
        self.counters.count(fate, ip_bytes);
        fate
    }

    fn decide(&mut self, now: Time, ip_bytes: u32) -> Fate {
        let sent = match &mut self.capacity {
            None => now,
            Some((capacity, waiting)) => {
                let start = capacity.start(now);
                if !waiting.admit(now, start, ip_bytes) {
                    return Fate::QueueDrop;
                }
                self.counters.max_queue_bytes = self.counters.max_queue_bytes.max(waiting.bytes());
                if start > now {
                    capacity.wait(now, waiting.bytes());
                }
                capacity.send(now, ip_bytes)
            }
        };
        let departure = self.end_of_frame(sent);
        let lost = self.losses.next(departure);
        let at = self.delays.arrival(departure, lost);
        if lost {
            Fate::Loss
        } else {
            Fate::Delivered { at }
        }
    }

    /// The first end of a frame that is not before a time; the time itself without frames.
    fn end_of_frame(&self, time: Time) -> Time {
        let Some(frame) = self.frame else {
            return time;
        };
        let past = time.as_nanos() % frame.as_nanos();
        let left = frame.as_nanos() - past;
        time + Span::from_nanos(if past == 0 { 0 } else { left })
    }

    /// The bytes that wait for the capacity at a time not before the last packet's arrival.
    #[must_use]
    pub fn queue_bytes(&self, now: Time) -> u64 {
        let capacity = self.capacity.as_ref();
        capacity.map_or(0, |(_, waiting)| waiting.bytes_at(now))
    }

    /// The packets' fates so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Counters {
    /// Counts a packet of so many bytes that met with a fate.
    pub fn count(&mut self, fate: Fate, ip_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
        match fate {
            Fate::Delivered { .. } => {
                self.delivered += 1;
                self.delivered_bytes += u64::from(ip_bytes);
            }
            Fate::QueueDrop => self.queue_drops += 1,
            Fate::Loss => self.losses += 1,
        }
    }
}
