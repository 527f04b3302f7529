//! The time that a stack and its TLS library use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

/// So often two clocks are looked at, to see what both show at one moment.
const ATTEMPTS: usize = 5;

/// Time since the start of the trial, set by the driver, and what it means as an [`Instant`] and as
/// wall-clock time.
///
/// Clones show the same time.
#[derive(Debug, Clone)]
pub struct Clock {
    /// An arbitrary origin: only differences of instants count. What all clocks show at time 0, if
    /// they show this one.
    origin: Instant,
    epoch_unix: Duration,
    now_ns: Arc<AtomicU64>,
}

impl Clock {
    /// A clock of virtual time, at time 0, which is `epoch_unix` after 1970.
    ///
    /// With the feature `interposed-clock` all clocks of the process show what this one shows.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "std has no other way to make an Instant"
    )]
    pub fn new(epoch_unix: Duration) -> Self {
        let now_ns = Arc::default();
        #[cfg(feature = "interposed-clock")]
        crate::interposed_clock::show(epoch_unix, Arc::clone(&now_ns));
        Self {
            origin: Instant::now(),
            epoch_unix,
            now_ns,
        }
    }

    /// A clock whose time 0 is this moment, for the driver of real sockets.
    ///
    /// A process may be put to sleep between its looks at two clocks, and would be late by that
    /// against the others of a trial: of a few attempts the quickest counts.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the sockets' driver owns real time"
    )]
    pub fn start_now() -> Self {
        let attempts = (0..ATTEMPTS).map(|_| {
            let origin = Instant::now();
            let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            (origin.elapsed(), origin, unix.unwrap_or_default())
        });
        let quickest = attempts.min_by_key(|(took, ..)| *took);
        let (_, origin, epoch_unix) = quickest.expect("there is an attempt");
        Self {
            origin,
            epoch_unix,
            now_ns: Arc::default(),
        }
    }

    /// Real time since the origin.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the sockets' driver owns real time"
    )]
    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }

    /// Sets the time since the start of the trial.
    pub fn set(&self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).expect("a trial ends within 584 years");
        self.now_ns.store(nanos, Ordering::Relaxed);
    }

    /// `now` in the form that sans-IO libraries want.
    #[must_use]
    pub fn instant(&self, now: Duration) -> Instant {
        self.origin + now
    }

    /// The time since the start of the trial at `instant`.
    #[must_use]
    pub fn since_start(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.origin)
    }

    /// The wall-clock time of the start of the trial, since 1970.
    #[must_use]
    pub fn start_unix(&self) -> Duration {
        self.epoch_unix
    }

    /// The wall-clock time, since 1970.
    #[must_use]
    pub fn unix(&self) -> Duration {
        self.epoch_unix + Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.unix()))
    }
}
