//! What a connection learns of its path for the next one: the Observe Phase of Careful Resume.
//!
//! Source: RFC 9959, sections 3.1 and 4.1. What is saved is the volume of data that is acknowledged in a round trip: the highest delivery rate
//! of the last ten round trips, over the smallest round-trip time. Unlike the congestion window it does not know of slow start's
//! overshoot: what the path does not carry is not acknowledged.

use crate::acks::Acks;
use crate::path::Path;
use crate::saved::SavedPath;

/// Round trips after which a rate is forgotten.
const ROUNDS: u64 = 10;

/// Initial windows that a path must have carried in a round trip to be worth remembering (section 3.1).
const LEAST_WINDOWS: u64 = 4;

/// Watches the delivery rate.
#[derive(Debug, Clone, Default)]
pub struct Observer {
    /// Rounds, and the highest rate in each of them in bytes per second.
    rates: Vec<(u64, u64)>,
}

impl Observer {
    /// Packets were acknowledged.
    pub fn on_acks(&mut self, path: &Path, acks: &Acks<'_>) {
        let Some(sample) = acks.rate else { return };
        let rate = sample.per_second();
        // A sender that ran dry shows what it sent, not what the path carries.
        if sample.limited && rate <= self.highest() {
            return;
        }
        self.rates.retain(|(round, _)| round + ROUNDS > path.round);
        match self.rates.last_mut() {
            Some((round, highest)) if *round == path.round => *highest = rate.max(*highest),
            _ => self.rates.push((path.round, rate)),
        }
    }

    fn highest(&self) -> u64 {
        let rates = self.rates.iter().map(|(_, rate)| *rate);
        rates.max().unwrap_or(0)
    }

    /// What is worth to be remembered.
    pub fn observed(&self, path: &Path) -> Option<SavedPath> {
        let rtt = path.rtt.min;
        let window = Path::bytes_in(self.highest(), rtt);
        let enough = window >= LEAST_WINDOWS * path.initial_window;
        enough.then_some(SavedPath { window, rtt })
    }
}
