//! A token bucket: a burst at once, then a rate.
//!
//! The bucket is that of a single rate (RFC 2697, section 3, with an excess burst of 0): it is full
//! at the beginning, tokens come in at the rate until it is full again, and a packet that passes
//! takes one for each of its bytes. Deviation: tokens come in all the time and not one by one. They
//! are counted in billionths of a bit, of which a rate of n bit/s gives n in each nanosecond, so
//! nothing is rounded.

use bentpipe_units::{Rate, Size, Span, Time};
use serde::Serialize;

use crate::fields::{Fields, Problem};
use crate::rate::above_zero;

/// A token bucket as scenario files describe it: `rate = "10 Mbit/s", burst = "64 kB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TokenBucketConfig {
    /// The rate in the long run.
    pub rate: Rate,
    /// The bytes that pass at once after a pause; 1500 or more.
    pub burst: Size,
}

/// The largest IP packet of Ethernet: a smaller burst would never let it pass.
const LEAST_BURST: Size = Size::from_bytes(1500);
const BIT_NANOS_PER_BYTE: u128 = 8 * 1_000_000_000;

impl TokenBucketConfig {
    pub(crate) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let rate = fields.required("rate", "\"10 Mbit/s\"")?;
        let burst = fields.required("burst", "\"64 kB\"")?;
        let config = Self {
            rate: above_zero(&rate, "\"10 Mbit/s\"")?,
            burst: burst.parse()?,
        };
        if config.burst < LEAST_BURST {
            return Err(burst.problem(
                "lets no full-sized packet through; write 1500 B or more, as in \"64 kB\"",
            ));
        }
        Ok(config)
    }

    fn full(&self) -> u128 {
        u128::from(self.burst.bytes()) * BIT_NANOS_PER_BYTE
    }

    /// The least time in which `bit_nanos` billionths of a bit pass, rounded up.
    pub(crate) fn least_time_for(&self, bit_nanos: u128) -> Span {
        let beyond = bit_nanos.saturating_sub(self.full());
        let nanos = beyond.div_ceil(u128::from(self.rate.bps()));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The most billionths of a bit that pass in a time.
    pub(crate) fn most_in(&self, span: Span) -> u128 {
        let filled = u128::from(self.rate.bps()) * u128::from(span.as_nanos());
        self.full().saturating_add(filled)
    }
}

/// The tokens of one bucket.
pub(crate) struct TokenBucket {
    bps: u128,
    /// Tokens of a full bucket, in billionths of a bit.
    full: u128,
    /// The tokens that are in it at `at`.
    tokens: u128,
    at: Time,
}

impl TokenBucket {
    pub fn new(config: TokenBucketConfig) -> Self {
        Self {
            bps: config.rate.bps().into(),
            full: config.full(),
            tokens: config.full(),
            at: Time::ZERO,
        }
    }

    /// The first nanosecond, from the last that took tokens and from `now` on, at which it has
    /// tokens for a packet; NEVER if it cannot hold that many.
    pub fn ready(&self, now: Time, ip_bytes: u32) -> Time {
        let needed = u128::from(ip_bytes) * BIT_NANOS_PER_BYTE;
        if needed > self.full {
            return Time::NEVER;
        }
        let missing = needed.saturating_sub(self.tokens);
        let nanos = u64::try_from(missing.div_ceil(self.bps)).unwrap_or(u64::MAX);
        let enough = self.at.as_nanos().saturating_add(nanos);
        now.max(Time::from_nanos(enough))
    }

    /// Takes the tokens for a packet now if it has them; says whether it had. What takes tokens so
    /// never takes any in advance.
    pub fn take_now(&mut self, now: Time, ip_bytes: u32) -> bool {
        let has = self.ready(now, ip_bytes) <= now;
        if has {
            self.take(now, ip_bytes);
        }
        has
    }

    /// Takes the tokens for a packet at a time at which it has them.
    pub fn take(&mut self, at: Time, ip_bytes: u32) {
        let filled = self.bps * u128::from((at - self.at).as_nanos());
        self.tokens = self.tokens.saturating_add(filled).min(self.full);
        self.tokens -= u128::from(ip_bytes) * BIT_NANOS_PER_BYTE;
        self.at = at;
    }
}
