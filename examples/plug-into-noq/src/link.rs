//! One direction of a path: a rate, a queue that drops what does not fit, and a delay.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::BytesMut;

pub struct Link {
    /// Bytes per second.
    rate: u64,
    /// One way.
    delay: Duration,
    /// How long a datagram may wait.
    longest: Duration,
    /// When the last datagram will have left.
    free: Instant,
    on_their_way: VecDeque<(Instant, BytesMut)>,
    pub dropped: u64,
}

impl Link {
    /// `rate` in bytes per second; the queue holds what is sent in `longest`.
    pub fn new(rate: u64, delay: Duration, longest: Duration, now: Instant) -> Self {
        Self {
            rate,
            delay,
            longest,
            free: now,
            on_their_way: VecDeque::new(),
            dropped: 0,
        }
    }

    pub fn send(&mut self, now: Instant, datagram: BytesMut) {
        let begins = self.free.max(now);
        if begins - now > self.longest {
            self.dropped += 1;
            return;
        }
        let nanos = datagram.len() as u64 * 1_000_000_000 / self.rate;
        self.free = begins + Duration::from_nanos(nanos);
        self.on_their_way
            .push_back((self.free + self.delay, datagram));
    }

    /// When the next datagram arrives.
    pub fn next(&self) -> Option<Instant> {
        self.on_their_way.front().map(|(at, _)| *at)
    }

    pub fn receive(&mut self, now: Instant) -> Option<BytesMut> {
        self.next().filter(|at| *at <= now)?;
        self.on_their_way.pop_front().map(|(_, datagram)| datagram)
    }
}
