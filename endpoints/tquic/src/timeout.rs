//! How long tquic is left alone.
//!
//! Its own client and server wait by `poll`, which knows whole milliseconds, rounded up; the server
//! for one at least. The pacer cannot do with less: it rounds down both the time until it may send
//! a packet and the bytes that it may send by then, and forgets the rest. Woken at the very instant
//! that it asked for, it is a byte short, asks for the time that this byte takes, is given nothing
//! for it, and so on for ever.

use std::time::Duration;

use tquic::TIMER_GRANULARITY;

/// The time that it is left alone when it asks for `timeout`.
pub fn whole_milliseconds(timeout: Duration) -> Duration {
    let ticks = timeout.as_nanos().div_ceil(TIMER_GRANULARITY.as_nanos());
    TIMER_GRANULARITY * u32::try_from(ticks.max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up_and_never_zero() {
        for (asked_ns, given_ms) in [
            (0, 1),
            (1, 1),
            (1_000_000, 1),
            (1_000_001, 2),
            (25_000_000, 25),
        ] {
            let given = whole_milliseconds(Duration::from_nanos(asked_ns));
            assert_eq!(given, Duration::from_millis(given_ms), "{asked_ns} ns");
        }
    }
}
