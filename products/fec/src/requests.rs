//! The requests for what is missing: each symbol is asked for as soon as it is missed, and again if
//! it does not come.

use std::collections::BTreeMap;
use std::time::Duration;

/// The round trip of the hop, as long as none was measured.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(700);
/// A symbol is asked for at most so often.
const MOST_TRIES: u32 = 3;
/// The most symbols that one packet asks for.
pub const MOST_ASKED: usize = 256;

/// The symbols that were asked for.
#[derive(Debug, Default)]
pub struct Requests {
    open: BTreeMap<u64, Request>,
    /// Smoothed, of what came after one request.
    round_trip: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    at: Duration,
    tries: u32,
}

impl Requests {
    /// The symbols to ask for now, of those that are missing.
    pub fn due(&mut self, now: Duration, missed: impl Iterator<Item = u64>) -> Vec<u64> {
        let patience = self.patience();
        let mut due = Vec::new();
        for esi in missed {
            if due.len() == MOST_ASKED {
                break;
            }
            let request = self.open.entry(esi).or_insert(Request {
                at: Duration::ZERO,
                tries: 0,
            });
            let is_due = request.tries == 0 || now >= request.at + patience;
            if is_due && request.tries < MOST_TRIES {
                request.at = now;
                request.tries += 1;
                due.push(esi);
            }
        }
        due
    }

    /// A symbol has come; it counts as an answer if it was asked for once.
    pub fn came(&mut self, now: Duration, esi: u64) {
        if let Some(Request { at, tries: 1 }) = self.open.remove(&esi) {
            let sample = now.saturating_sub(at);
            let before = self.round_trip.unwrap_or(sample);
            self.round_trip = Some((before * 7 + sample) / 8);
        }
    }

    /// Drops what nobody waits for any more.
    pub fn forget(&mut self, oldest: u64) {
        self.open = self.open.split_off(&oldest);
    }

    /// The earliest time at which something is to be asked for again.
    pub fn next_timeout(&self) -> Option<Duration> {
        let waiting = self
            .open
            .values()
            .filter(|it| (1..MOST_TRIES).contains(&it.tries));
        waiting.map(|it| it.at + self.patience()).min()
    }

    /// For so long an answer is waited for.
    fn patience(&self) -> Duration {
        self.round_trip.unwrap_or(FIRST_ROUND_TRIP) * 5 / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_is_asked_for_again_after_a_round_trip_and_a_quarter() {
        let ms = Duration::from_millis;
        let mut requests = Requests::default();
        assert_eq!(requests.due(ms(0), [3, 4].into_iter()), [3, 4]);
        assert_eq!(requests.due(ms(100), [3, 4].into_iter()), [0; 0]);
        requests.came(ms(600), 3);
        assert_eq!(requests.next_timeout(), Some(ms(750)));
        assert_eq!(requests.due(ms(749), [4].into_iter()), [0; 0]);
        assert_eq!(requests.due(ms(750), [4].into_iter()), [4]);
        assert_eq!(requests.due(ms(1500), [4].into_iter()), [4]);
        assert_eq!(requests.next_timeout(), None);
        assert_eq!(requests.due(ms(9000), [4].into_iter()), [0; 0]);
        // Which request the answer belongs to is not known.
        requests.came(ms(9600), 4);
        assert_eq!(requests.round_trip, Some(ms(600)));
    }
}
