//! The requests for what is missing: each symbol is asked for as soon as it is missed, and again if
//! it does not come.

use std::collections::BTreeMap;
use std::time::Duration;

/// The round trip of the hop, as long as none was measured.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(700);
/// An answer may come so much later than round trips and a quarter: timers of hosts are not exact.
const SLACK: Duration = Duration::from_millis(20);
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
    first: Duration,
    latest: Duration,
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
                first: now,
                latest: now,
                tries: 0,
            });
            let is_due = request.tries == 0 || now >= request.latest + patience;
            if is_due && request.tries < MOST_TRIES {
                request.latest = now;
                request.tries += 1;
                due.push(esi);
            }
        }
        due
    }

    /// A symbol is no longer missing. If it was sent again, that is a sample of the round trip:
    /// from the first request on, so that patience that is too short grows.
    pub fn came(&mut self, now: Duration, esi: u64, was_sent_again: bool) {
        let Some(request) = self.open.remove(&esi).filter(|_| was_sent_again) else {
            return;
        };
        let sample = now.saturating_sub(request.first);
        let before = self.round_trip.unwrap_or(sample);
        self.round_trip = Some((before * 7 + sample) / 8);
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
        waiting.map(|it| it.latest + self.patience()).min()
    }

    /// For so long an answer is waited for.
    fn patience(&self) -> Duration {
        self.round_trip.unwrap_or(FIRST_ROUND_TRIP) * 5 / 4 + SLACK
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
        requests.came(ms(600), 3, true);
        assert_eq!(requests.next_timeout(), Some(ms(770)));
        assert_eq!(requests.due(ms(769), [4].into_iter()), [0; 0]);
        assert_eq!(requests.due(ms(770), [4].into_iter()), [4]);
        assert_eq!(requests.due(ms(1540), [4].into_iter()), [4]);
        assert_eq!(requests.next_timeout(), None);
        assert_eq!(requests.due(ms(9000), [4].into_iter()), [0; 0]);
        // Which request the answer belongs to is not known: patience may be too short.
        requests.came(ms(2000), 4, true);
        assert_eq!(requests.round_trip, Some(ms(775)));
        // A repair is no answer.
        assert_eq!(requests.due(ms(3000), [5].into_iter()), [5]);
        requests.came(ms(3001), 5, false);
        assert_eq!(requests.round_trip, Some(ms(775)));
    }
}
