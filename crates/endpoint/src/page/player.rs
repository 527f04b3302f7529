//! A player of a live stream: which segment it asks for next, at which rate, and when.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Delivery, LiveStream, Plan};

/// The most that a segment's rate may be of the recent throughput, in percent; the default of
/// dash.js 4.
const SAFE_PERCENT: u64 = 90;
/// The number of segments that the recent throughput is the mean of; the default of dash.js 4.
const LATELY: usize = 3;
/// The least duration of a download in a rate: of one that arrives at once.
const SHORTEST: Duration = Duration::from_millis(1);

/// A player of a live stream. It asks for one segment at a time.
#[derive(Debug)]
pub struct Player {
    stream: LiveStream,
    segments: u64,
    /// The next one, from 0.
    next: u64,
    began: Duration,
    is_under_way: bool,
    /// The throughputs of the latest segments, in bits per second.
    throughputs: VecDeque<u64>,
    /// A segment that did not come ends the stream.
    is_broken: bool,
}

impl Player {
    /// A player that has requested nothing yet, of `requests` requests.
    #[must_use]
    pub fn new(stream: LiveStream, requests: usize) -> Self {
        let segments = (requests / stream.rates_bps.len()) as u64;
        Self {
            stream,
            segments,
            next: 0,
            began: Duration::ZERO,
            is_under_way: false,
            throughputs: VecDeque::new(),
            is_broken: false,
        }
    }

    /// When the next request is to be made, if none is under way; it may be past.
    fn due(&self) -> Option<Duration> {
        let is_next = !self.is_done() && !self.is_under_way;
        is_next.then(|| self.began + self.stream.made(self.next))
    }

    /// The number of the rate for the next segment: the highest that what came lately allows.
    fn rate(&self) -> usize {
        let count = self.throughputs.len() as u128;
        if count == 0 {
            return 0;
        }
        let sum: u128 = self.throughputs.iter().map(|it| u128::from(*it)).sum();
        let safe = sum / count * u128::from(SAFE_PERCENT) / 100;
        let rates = &self.stream.rates_bps;
        rates
            .iter()
            .rposition(|it| u128::from(*it) <= safe)
            .unwrap_or(0)
    }
}

impl Plan for Player {
    fn start(&mut self, now: Duration) {
        self.began = now;
    }

    fn ask(&mut self, now: Duration) -> Option<usize> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        let rates = &self.stream.rates_bps;
        let number = usize::try_from(self.next).expect("there are as many requests");
        let number = number * rates.len() + self.rate();
        self.next += 1;
        self.is_under_way = true;
        Some(number)
    }

    fn ready(&mut self, now: Duration) -> usize {
        usize::from(self.due().is_some_and(|due| due <= now))
    }

    fn under_way(&self) -> usize {
        usize::from(self.is_under_way)
    }

    fn ended(&mut self, _: Duration, _: usize, came: Option<Delivery>) {
        self.is_under_way = false;
        let Some(came) = came else {
            self.is_broken = true;
            return;
        };
        let nanos = came.took.max(SHORTEST).as_nanos();
        let throughput = u128::from(came.bytes) * 8 * 1_000_000_000 / nanos;
        if self.throughputs.len() == LATELY {
            self.throughputs.pop_front();
        }
        let throughput = u64::try_from(throughput).unwrap_or(u64::MAX);
        self.throughputs.push_back(throughput);
    }

    fn arrived(&mut self, _: Duration, _: usize, _: u64) {}

    fn next_wake(&self, now: Duration) -> Option<Duration> {
        self.due().filter(|due| *due > now)
    }

    fn is_done(&self) -> bool {
        !self.is_under_way && (self.is_broken || self.next == self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [u64; 3] = [1_000_000, 2_000_000, 4_000_000];

    fn player(segments: usize) -> Player {
        let stream = LiveStream {
            segment_ms: 2000,
            initial_segments: 2,
            rates_bps: RATES.to_vec(),
        };
        Player::new(stream, segments * RATES.len())
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Lets a segment come, which took `ms`.
    fn comes(player: &mut Player, number: usize, ms: u64) {
        let bytes = RATES[number % RATES.len()] * 2 / 8;
        let came = Delivery {
            took: at(ms),
            bytes,
        };
        player.ended(at(0), number, Some(came));
    }

    #[test]
    fn one_segment_is_asked_for_at_a_time_and_when_it_is_there() {
        let mut player = player(4);
        player.start(at(100));
        assert_eq!((player.ask(at(99)), player.ask(at(100))), (None, Some(0)));
        assert_eq!((player.ask(at(5000)), player.under_way()), (None, 1));
        comes(&mut player, 0, 2000); // 1 Mbit/s: 0.9 is less than any rate
        assert_eq!(player.ask(at(2100)), Some(3));
        comes(&mut player, 3, 500); // 4 Mbit/s, 2.5 on average
        assert_eq!(
            player.due(),
            Some(at(100 + 2000)),
            "of the third, a segment later"
        );
        assert_eq!(player.ask(at(2600)), Some(7));
        comes(&mut player, 7, 100);
        assert_eq!((player.ask(at(4099)), player.due()), (None, Some(at(4100))));
        assert_eq!((player.ready(at(4099)), player.ready(at(4100))), (0, 1));
        assert_eq!(player.ask(at(4100)), Some(11));
        assert!(!player.is_done());
        comes(&mut player, 11, 0);
        assert!(player.is_done() && player.due().is_none());
    }

    #[test]
    fn the_rate_goes_by_the_last_three_alone() {
        let mut player = player(6);
        player.start(at(0));
        let mut rates = Vec::new();
        for (ms, now) in [
            (100, 0),
            (100, 2000),
            (8000, 4000),
            (8000, 12_000),
            (8000, 20_000),
        ] {
            let number = player.ask(at(now)).expect("it is there");
            rates.push(number % RATES.len());
            comes(&mut player, number, ms);
        }
        rates.push(player.ask(at(28_000)).expect("it is there") % RATES.len());
        assert_eq!(rates, [0, 2, 2, 2, 2, 0]);
    }

    #[test]
    fn a_segment_that_does_not_come_ends_it() {
        let mut player = player(4);
        player.start(at(0));
        assert_eq!(player.ask(at(0)), Some(0));
        player.ended(at(10), 0, None);
        assert!(player.is_done() && player.ask(at(9999)).is_none());
    }
}
