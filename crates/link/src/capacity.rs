//! A fixed rate as an exact virtual clock.

use bentpipe_units::{Rate, Time};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// When the transmitter will be free: a whole nanosecond and a fraction of `part / rate` of one more.
pub(crate) struct Capacity {
    bps: u64,
    free: u64,
    part: u64,
}

impl Capacity {
    pub fn new(rate: Rate) -> Self {
        assert!(rate.bps() > 0, "a rate of 0 lets nothing through");
        Self {
            bps: rate.bps(),
            free: 0,
            part: 0,
        }
    }

    /// The first whole nanosecond at which a packet that arrives now can be in transmission.
    pub fn start(&self, now: Time) -> Time {
        now.max(self.free_at())
    }

    /// Sends a packet that arrives now after all that came before; returns when its last bit has
    /// left, rounded up.
    pub fn send(&mut self, now: Time, ip_bytes: u32) -> Time {
        if self.free_at() <= now {
            (self.free, self.part) = (now.as_nanos(), 0);
        }
        let bit_nanos = u128::from(ip_bytes) * 8 * NANOS_PER_SECOND + u128::from(self.part);
        let bps = u128::from(self.bps);
        let nanos = u64::try_from(bit_nanos / bps).unwrap_or(u64::MAX);
        self.free = self.free.saturating_add(nanos);
        self.part = u64::try_from(bit_nanos % bps).expect("a remainder is below its divisor");
        self.free_at()
    }

    fn free_at(&self) -> Time {
        Time::from_nanos(self.free.saturating_add(u64::from(self.part > 0)))
    }
}
