//! The host's clock: nanoseconds since the Unix epoch.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Now. Stamps of captures are of the same clock.
#[expect(
    clippy::disallowed_methods,
    reason = "hosts of real links have nothing but their clocks"
)]
pub fn now_unix_ns() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Now, by a clock that nobody sets.
#[expect(
    clippy::disallowed_methods,
    reason = "real processes are waited for in real time"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Lets time pass.
#[expect(
    clippy::disallowed_methods,
    reason = "real processes are given real time"
)]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
