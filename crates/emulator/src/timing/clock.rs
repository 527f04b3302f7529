//! The only place that reads clocks.
//!
//! The time of a trial is the monotonic clock since its start. The kernel stamps packets by the
//! clock of the wall, which may be set or slewed meanwhile: so a stamp is understood by its age, at
//! each look at a port anew.

use bentpipe_units::{Span, Time};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Tells the time of a trial.
pub(crate) trait Clock {
    /// The time now.
    fn now(&self) -> Time;

    /// The same instant by this clock and by the kernel's, for converting time stamps of packets.
    fn stamps(&self) -> Stamps;
}

/// The same instant by two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    /// The time of the trial.
    pub now: Time,
    /// Nanoseconds since the Unix epoch.
    pub unix: u64,
}

impl Stamps {
    /// The time of the trial at which a packet was stamped. It may have come since; but what is
    /// stamped much later than now was stamped before the wall's clock was set back, and arrives
    /// now.
    pub fn time(self, stamp: u64) -> Time {
        const RECENT: u64 = 1_000_000;
        match stamp.checked_sub(self.unix) {
            Some(since @ ..=RECENT) => self.now + Span::from_nanos(since),
            Some(_) => self.now,
            None => self.now - Span::from_nanos(self.unix - stamp),
        }
    }
}

/// The clock of one trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrialClock {
    monotonic: u64,
    unix: u64,
}

impl TrialClock {
    /// A trial that starts now.
    pub fn start() -> Self {
        let (monotonic, unix) = both_clocks();
        Self { monotonic, unix }
    }

    /// The start of the trial, in nanoseconds since the Unix epoch.
    pub fn unix(&self) -> u64 {
        self.unix
    }

    /// A time of the trial, by the monotonic clock.
    pub fn monotonic(&self, time: Time) -> Timespec {
        let nanos = self.monotonic.saturating_add(time.as_nanos());
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Timespec {
            tv_sec: nanos / 1_000_000_000,
            tv_nsec: nanos % 1_000_000_000,
        }
    }
}

impl Clock for TrialClock {
    fn now(&self) -> Time {
        Time::from_nanos(nanos(ClockId::Monotonic).saturating_sub(self.monotonic))
    }

    fn stamps(&self) -> Stamps {
        let (monotonic, unix) = both_clocks();
        Stamps {
            now: Time::from_nanos(monotonic.saturating_sub(self.monotonic)),
            unix,
        }
    }
}

/// Sleeps until the later of two times.
pub(crate) fn sleep_until(one: Time, other: Time, clock: &TrialClock) {
    let until = clock.monotonic(one.max(other));
    // A signal may end it early; whoever sleeps looks at the clock again.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}

/// The processor time that this thread has used.
pub(crate) fn thread_cpu_time() -> Span {
    Span::from_nanos(nanos(ClockId::ThreadCPUTime))
}

/// The monotonic clock and the wall's at the same instant. A thread may be put to sleep between two
/// looks: of a few attempts the quickest counts.
fn both_clocks() -> (u64, u64) {
    const QUICK: u64 = 1_000;
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..5 {
        let before = nanos(ClockId::Monotonic);
        let unix = nanos(ClockId::Realtime);
        let took = nanos(ClockId::Monotonic) - before;
        best = best.min((took, before + took / 2, unix));
        if took < QUICK {
            break;
        }
    }
    (best.1, best.2)
}

#[expect(
    clippy::disallowed_methods,
    reason = "real time is what the emulator is for"
)]
fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let nanos = time.tv_sec * 1_000_000_000 + time.tv_nsec;
    u64::try_from(nanos).expect("these clocks are past their epochs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_understood_by_its_age() {
        let stamps = Stamps {
            now: Time::from_nanos(1_000),
            unix: 50_000,
        };
        assert_eq!(stamps.time(49_400), Time::from_nanos(400));
        assert_eq!(stamps.time(50_000), Time::from_nanos(1_000));
        assert_eq!(
            stamps.time(50_300),
            Time::from_nanos(1_300),
            "has just come"
        );
        assert_eq!(stamps.time(9_000_000), Time::from_nanos(1_000), "set back");
        assert_eq!(stamps.time(1), Time::ZERO, "before the trial");
    }

    #[test]
    fn time_starts_at_zero_and_goes_on() {
        let clock = TrialClock::start();
        let (first, second) = (clock.now(), clock.stamps());
        assert!(first <= second.now);
        assert!(second.now < Time::from_nanos(60_000_000_000));
        assert!(second.unix >= clock.unix() || second.unix + 1_000_000_000 > clock.unix());
    }
}
