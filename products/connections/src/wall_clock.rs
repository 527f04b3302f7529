//! The program's time as the library wants it.

use std::time::SystemTime;

use bentpipe_endpoint::Clock;
use noq_proto::TimeSource;

/// The program's time, in which a token's age is counted.
#[derive(Debug)]
pub struct WallClock(pub Clock);

impl TimeSource for WallClock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.0.unix()
    }
}
