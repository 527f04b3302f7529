//! A shaper: what finds no tokens waits for them, in the order of arrival.
//!
//! A packet leaves at the first whole nanosecond at which there are tokens for all of it. What
//! comes later takes none from it, so the shaper decides at arrival.

use bentpipe_units::{Size, Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Problem};
use crate::node::{Node, Step, Transit};
use crate::queue::Queue;
use crate::queue_size::QueueSize;
use crate::random::{LinkSeed, Purpose};
use crate::token_bucket::{TokenBucket, TokenBucketConfig};
use crate::waiting::Waiting;

/// A shaper as scenario files describe it: `{ rate = "10 Mbit/s", burst = "64 kB", queue =
/// "1 BDP" }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaperConfig {
    /// The rate, and what passes at once.
    pub bucket: TokenBucketConfig,
    /// The most that may wait, 1 BDP if left out: the shaper's rate times the path's round-trip
    /// time. A packet that would be too much is dropped.
    pub queue: QueueSize,
}

impl ShaperConfig {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        let mut fields = entry.table()?;
        let bucket = TokenBucketConfig::read(&mut fields)?;
        let queue = fields.optional("queue")?;
        fields.finish()?;
        Ok(Self {
            bucket,
            queue: queue.unwrap_or(Queue::default().size),
        })
    }

    /// The bytes in flight that fill it.
    pub(crate) fn bdp(&self, rtt: Span) -> Size {
        self.bucket.rate.bytes_in(rtt)
    }
}

impl Serialize for ShaperConfig {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("rate", &self.bucket.rate)?;
        map.serialize_entry("burst", &self.bucket.burst)?;
        map.serialize_entry("queue", &self.queue.to_string())?;
        map.end()
    }
}

/// A token bucket with a drop-tail queue.
pub(crate) struct Shaper {
    bucket: TokenBucket,
    waiting: Waiting,
    max_queue_bytes: u64,
}

impl Shaper {
    /// `rtt` is the path's round-trip time.
    pub fn new(config: ShaperConfig, rtt: Span, seed: LinkSeed) -> Self {
        let queue = Queue {
            size: config.queue,
            random_drop: None,
            aqm: None,
        };
        // Nothing is drawn from the stream: it drops at the tail alone.
        let dice = seed.stream(Purpose::Queue);
        Self {
            bucket: TokenBucket::new(config.bucket),
            waiting: Waiting::new(&queue, config.bucket.rate, config.bdp(rtt), dice),
            max_queue_bytes: 0,
        }
    }
}

impl Node for Shaper {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        let ip_bytes = transit.packet.ip_bytes;
        let at = self.bucket.ready(now, ip_bytes);
        if at == Time::NEVER || !self.waiting.admit(now, at, ip_bytes) {
            return Step::Drop;
        }
        self.max_queue_bytes = self.max_queue_bytes.max(self.waiting.bytes());
        self.bucket.take(at, ip_bytes);
        Step::Leave { at }
    }

    fn queue_bytes(&self, now: Time) -> u64 {
        self.waiting.bytes_at(now)
    }

    fn max_queue_bytes(&self) -> u64 {
        self.max_queue_bytes
    }
}
