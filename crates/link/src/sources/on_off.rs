//! Packets at a constant rate in periods, between which there are none.

use bentpipe_units::{Ratio, Span, Time};

use super::config::{Periods, Stream};
use super::draws::exponential;
use super::{Emission, Generator};
use crate::random::Dice;

/// One flow that is on and off by turns, each for an exponentially distributed time. At the start
/// it is on with the probability that it has at any time.
pub(super) struct OnOff {
    stream: Stream,
    periods: Periods,
    stop: Time,
    dice: Dice,
    flow: u64,
    /// When the current period on began, and when it ends.
    on: (Time, Time),
    /// Packets sent in it.
    sent: u64,
}

impl OnOff {
    pub fn new(
        stream: Stream,
        periods: Periods,
        (start, stop): (Time, Time),
        (flow, mut dice): (u64, Dice),
    ) -> Self {
        let Periods { on, off } = periods;
        let both = u128::from(on.as_nanos()) + u128::from(off.as_nanos());
        let ppb = u128::from(on.as_nanos()) * u128::from(Ratio::ONE.ppb()) / both;
        let is_on = dice.chance(Ratio::from_ppb(u64::try_from(ppb).expect("at most 1")));
        let wait = if is_on {
            Span::ZERO
        } else {
            exponential(off, &mut dice)
        };
        let from = start + wait;
        let until = from + exponential(on, &mut dice);
        Self {
            stream,
            periods,
            stop,
            dice,
            flow,
            on: (from, until),
            sent: 0,
        }
    }
}

impl Generator for OnOff {
    fn next(&mut self) -> Option<Emission> {
        loop {
            let (from, until) = self.on;
            // From the middle of an interval on, so that the mean rate is kept.
            let at = from + self.stream.time_of_half(2 * self.sent + 1);
            if at < until {
                self.sent += 1;
                return Some(Emission {
                    at,
                    ip_bytes: self.stream.ip_bytes,
                    flow: self.flow,
                    is_udp: true,
                    terminal: 0,
                });
            }
            let from = until + exponential(self.periods.off, &mut self.dice);
            if from >= self.stop {
                return None;
            }
            self.on = (from, from + exponential(self.periods.on, &mut self.dice));
            self.sent = 0;
        }
    }
}
