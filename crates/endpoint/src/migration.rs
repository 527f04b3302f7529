//! The migration of a client from the first path of a scenario to the second (RFC 9000, section 9).
//!
//! A device that leaves one network for another is told so by its operating system, and tells its
//! QUIC library. Here the option `migrate` says when.

use std::time::Duration;

use crate::error::EndpointError;
use crate::options::Options;
use crate::setup::{MIGRATE, PathEnds, Role, Setup};
use crate::stack::Stack;

/// The latest time at which a client may be asked to migrate.
const LATEST: Duration = Duration::from_secs(3600);

/// A migration that is to come, or was.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// The time since the start of the program.
    at: Duration,
    to: PathEnds,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    /// The time has come, but the stack cannot yet.
    Due,
    Done,
}

impl Migration {
    /// Takes `migrate` out of the options of a client whose stack can; of others it is left, and so
    /// refused as unknown.
    pub fn take<S: Stack>(
        setup: &Setup,
        options: &mut Options,
    ) -> Result<Option<Self>, EndpointError> {
        if !S::MIGRATES || setup.role != Role::Client {
            return Ok(None);
        }
        let Some(text) = options.take(MIGRATE) else {
            return Ok(None);
        };
        let Some(at) = parse_time(&text) else {
            let problem = "write a time since the start up to an hour, such as 2s or 1500ms";
            return Err(EndpointError::option(MIGRATE, &text, problem));
        };
        let Some(&to) = setup.paths.get(1) else {
            let problem = "there is one path; choose a scenario with several, such as \
                           terrestrial-leo";
            return Err(EndpointError::option(MIGRATE, &text, problem));
        };
        let progress = Progress::Waiting;
        Ok(Some(Self { at, to, progress }))
    }

    /// When it is due; `None` once the stack was asked, which is asked again after each event.
    #[must_use]
    pub fn next_wake(&self) -> Option<Duration> {
        (self.progress == Progress::Waiting).then_some(self.at)
    }

    /// Has the stack migrate if that is due.
    pub fn act(&mut self, stack: &mut impl Stack, now: Duration) {
        if self.progress == Progress::Done || now < self.at {
            return;
        }
        self.progress = if stack.migrate(now, self.to) {
            Progress::Done
        } else {
            Progress::Due
        };
    }
}

fn parse_time(text: &str) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, Duration::from_millis(1)),
        None => (text.strip_suffix('s')?, Duration::from_secs(1)),
    };
    let count: u32 = number.parse().ok()?;
    unit.checked_mul(count).filter(|it| *it <= LATEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_and_are_at_most_an_hour() {
        assert_eq!(parse_time("2s"), Some(Duration::from_secs(2)));
        assert_eq!(parse_time("1500ms"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_time("3600s"), Some(LATEST));
        for text in ["", "s", "2", "3601s", "-1s", "1.5s", "2 s", "99999999999ms"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
