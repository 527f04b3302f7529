//! The observations of a trial, as `bentpipe` collects them.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

/// A trial as it was observed, with all that is known of it. Times are nanoseconds since the Unix
/// epoch, by the clock of the client's host.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// The job, as testbeds get it.
    pub job: Value,
    /// The folder whose folder `0` has what the client left, called as in `FlowSetup`: `downloads`,
    /// `client.keys`, `report.json`.
    pub scratch: PathBuf,
    /// The port of the server.
    pub port: u16,
    /// The client's capture and the server's, if there are any.
    pub captures: Option<[Capture; 2]>,
    /// The corrections that are added to the times of either capture.
    pub stamps_ns: [i64; 2],
    /// The server's clock, by the client's.
    pub server_clock: Clock,
    /// The time at which the client's program was started.
    pub begun_unix_ns: i64,
    /// The time at which it ended, or was ended.
    pub ended_unix_ns: i64,
    /// Whether it ended by itself.
    pub is_done: bool,
    /// The client's program, and the server's.
    pub programs: [Program; 2],
}

/// A capture of an end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    /// The file of the capture.
    pub file: PathBuf,
    /// The exit code of the program that captured; None: a signal ended it.
    pub code: Option<i32>,
}

/// The distance of a clock from another one.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    /// At `at_unix_ns`.
    pub offset_ns: i64,
    /// The growth of that with every second.
    pub drift_ppb: i64,
    /// By the clock that is ahead.
    pub at_unix_ns: i64,
}

/// The end of a program.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The reason why it could not be started, or its breach of the contract; None: there was none.
    pub failure: Option<String>,
    /// Its exit code, if it has one.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The end of what it printed.
    pub said: String,
    /// User and system CPU time.
    pub cpu_s: f64,
    /// The most memory that it had at once.
    pub memory_bytes: u64,
}

impl Clock {
    /// The time of the other clock.
    pub fn corrected(self, at_unix_ns: i64) -> i64 {
        let since = i128::from(at_unix_ns - self.at_unix_ns);
        let drifted = since * i128::from(self.drift_ppb) / 1_000_000_000;
        let drifted = i64::try_from(drifted).unwrap_or_default();
        at_unix_ns - self.offset_ns - drifted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_ahead_and_drift_are_corrected() {
        let clock = Clock {
            offset_ns: 50_000_000,
            drift_ppb: 20_000,
            at_unix_ns: 1_000_000_000,
        };
        assert_eq!(clock.corrected(1_000_000_000), 950_000_000);
        let later = 1_000_000_000 + 100_000_000_000;
        assert_eq!(
            clock.corrected(later),
            later - 52_000_000,
            "20 ppm of 100 s"
        );
    }
}
