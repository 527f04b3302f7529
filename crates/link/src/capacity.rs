//! A rate as an exact virtual clock.
//!
//! In each nanosecond a link of `bps` bit/s has a capacity of `bps` billionths of a bit. Packets
//! take that capacity one after the other, so a rate may change at any nanosecond, also in the
//! middle of a packet, and nothing is rounded on the way.

use bentpipe_units::Time;

use crate::events::RequestWait;
use crate::rate_over_time::RateOverTime;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The time at which the transmitter will be free: `part` of the capacity of the nanosecond that
/// begins at `free` is used.
pub(crate) struct Capacity {
    rate: RateOverTime,
    /// The rate that holds at `free`, and until when.
    bps: u64,
    until: u64,
    free: u64,
    part: u64,
}

impl Capacity {
    pub fn new(rate: RateOverTime) -> Self {
        Self {
            rate,
            bps: 0,
            until: 0,
            free: 0,
            part: 0,
        }
    }

    /// The first whole nanosecond at which a packet that arrives now can be in transmission.
    pub fn start(&self, now: Time) -> Time {
        now.max(self.free_at())
    }

    /// The requests for more of it.
    pub fn requests(&self) -> &[RequestWait] {
        self.rate.requests()
    }

    /// Takes note of the bytes that wait now: a rate on demand may rise.
    pub fn wait(&mut self, now: Time, waiting_bytes: u64) {
        if let Some(allocation) = self.rate.allocation()
            && let Some(from) = allocation.wait(now, waiting_bytes)
        {
            self.until = self.until.min(from.max(self.free_at()).as_nanos());
        }
    }

    /// Sends a packet that arrives now after all that came before; returns when its last bit has
    /// left, rounded up. None: that is not by `end`, up to which the capacity is used now.
    pub fn send_before(&mut self, now: Time, ip_bytes: u32, end: Time) -> Option<Time> {
        let free_at = self.free_at();
        if free_at <= now {
            if let Some(allocation) = self.rate.allocation() {
                allocation.rest(now, now - free_at);
                self.until = 0;
            }
            (self.free, self.part) = (now.as_nanos(), 0);
        }
        let is_sent = self.take(u128::from(ip_bytes) * 8 * NANOS_PER_SECOND, end.as_nanos());
        (is_sent || end == Time::NEVER).then(|| self.free_at())
    }

    /// Takes capacity for `bit_nanos` billionths of a bit, up to a time; says whether there was
    /// enough. At the end of time there is nothing left to take.
    fn take(&mut self, bit_nanos: u128, end: u64) -> bool {
        let mut needed = bit_nanos + u128::from(self.part);
        while self.free < end {
            if self.free >= self.until {
                let (bps, until) = self.rate.at(Time::from_nanos(self.free));
                (self.bps, self.until) = (bps, until.as_nanos());
            }
            let bps = u128::from(self.bps);
            let until = self.until.min(end);
            let room = bps * u128::from(until - self.free);
            if bps > 0 && (needed <= room || until == u64::MAX) {
                let nanos = u64::try_from(needed / bps).unwrap_or(u64::MAX);
                self.free = self.free.saturating_add(nanos);
                self.part = u64::try_from(needed % bps).expect("a remainder is below its divisor");
                return true;
            }
            needed -= room;
            (self.free, self.part) = (until, 0);
        }
        false
    }

    fn free_at(&self) -> Time {
        Time::from_nanos(self.free.saturating_add(u64::from(self.part > 0)))
    }
}
