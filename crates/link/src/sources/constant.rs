//! Packets of one size at a constant rate.

use bentpipe_units::{Span, Time};

use super::config::Stream;
use super::{Emission, Generator};
use crate::random::Dice;

/// One flow at a constant bit rate. Its first packet is somewhere within the first interval, drawn
/// from the seed, so that flows do not send in step.
pub(super) struct ConstantRate {
    stream: Stream,
    first: Time,
    sent: u64,
    flow: u64,
}

impl ConstantRate {
    pub fn new(stream: Stream, start: Time, flow: u64, dice: &mut Dice) -> Self {
        let interval = stream.time_of(1).as_nanos();
        Self {
            stream,
            first: start + Span::from_nanos(dice.up_to(interval.saturating_sub(1))),
            sent: 0,
            flow,
        }
    }
}

impl Generator for ConstantRate {
    fn next(&mut self) -> Option<Emission> {
        let at = self.first + self.stream.time_of(self.sent);
        self.sent += 1;
        Some(Emission {
            at,
            ip_bytes: self.stream.ip_bytes,
            flow: self.flow,
            is_udp: true,
            terminal: 0,
        })
    }
}
