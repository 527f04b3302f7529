//! Slow start of Hybla: a long path is to be filled as fast as one of 25 ms would be.
//!
//! Source: C. Caini and R. Firrincieli, TCP Hybla: a TCP enhancement for heterogeneous networks
//! (2004): with each segment acknowledged the window grows by 2^ρ − 1 segments, where ρ = max(RTT /
//! 25 ms, 1); the paper adds pacing, and an initial slow start threshold from a measured rate after
//! J. Hoe (1996). At 600 ms ρ is 24, and one ACK would ask for sixteen million segments: a cap is
//! needed too. Departures:
//! - ρ is rounded down to an integer, and 2^ρ − 1 is capped at 7, so that the window grows
//!   eightfold in a round trip at most.
//! - The rate is that at which a flight's ACKs came back, over the whole flight, not between two of
//!   them: a receiver that acknowledges every second packet, late, would make a pair say anything.
//!   It counts when the flight was sent at least twice as fast, so that it was the path that spread
//!   it, and from its eighth packet on. The last such flight decides.
//! - Slow start ends when the window reaches that rate times the least RTT, and not before; jitter
//!   of some milliseconds spoils the measurement of the first flight, which lasts 5 ms at 20
//!   Mbit/s, and slow start then ends early.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, per_second};
use crate::log::{LogEvent, Value};
use crate::pacing::Pacing;
use crate::path::PathState;
use crate::slow_start::{Exit, SlowStart, Step, is_first_flight};

/// The RTT of the path that is the equal of all others.
const RTT0: Span = Span::from_millis(25);
/// Most segments by which the window grows for one that is acknowledged.
const MOST_GROWTH: u64 = 7;
/// Packets that a flight must have for its spread to tell something.
const FLIGHT: u64 = 8;

/// Hybla's slow start, which grows as if the path were short.
#[derive(Debug, Clone, Default)]
pub struct Hybla {
    flight: Option<Flight>,
    /// Bytes per second that the path was seen to carry.
    rate: Option<u64>,
    event: Option<LogEvent>,
}

/// The packets acknowledged in a round trip.
#[derive(Debug, Clone, Copy)]
struct Flight {
    first_ack: Time,
    last_ack: Time,
    first_sent: Time,
    last_sent: Time,
    /// Without those of the first ACK, since the interval begins with it.
    bytes: u64,
    packets: u64,
}

impl Flight {
    fn begin(acks: &Acks<'_>) -> Self {
        let sent = acks.newest().sent;
        Self {
            first_ack: acks.now,
            last_ack: acks.now,
            first_sent: sent,
            last_sent: sent,
            bytes: 0,
            packets: acks.packets.len() as u64,
        }
    }

    fn add(&mut self, acks: &Acks<'_>) {
        self.last_ack = acks.now;
        self.last_sent = self.last_sent.max(acks.newest().sent);
        self.bytes += acks.bytes;
        self.packets += acks.packets.len() as u64;
    }

    /// Bytes per second, if it was the path that spread the flight.
    fn rate(&self) -> Option<u64> {
        let (sending, acking) = (
            self.last_sent - self.first_sent,
            self.last_ack - self.first_ack,
        );
        let spread = acking > Span::ZERO && acking >= sending * 2;
        (spread && self.packets >= FLIGHT).then(|| per_second(self.bytes, acking))
    }
}

/// 2^ρ − 1, capped.
fn growth_factor(path: &PathState) -> u64 {
    let rho = (path.rtt.min.as_nanos() / RTT0.as_nanos()).max(1);
    (1u64 << rho.min(32)).saturating_sub(1).min(MOST_GROWTH)
}

impl Hybla {
    fn measure(&mut self, path: &PathState, acks: &Acks<'_>) {
        match &mut self.flight {
            Some(flight) if !acks.new_round => flight.add(acks),
            _ => {
                let ended = self.flight.replace(Flight::begin(acks));
                self.event = ended.map(|flight| self.flight_event(path, &flight));
            }
        }
        let rate = self.flight.as_ref().and_then(Flight::rate);
        self.rate = rate.or(self.rate);
    }

    fn flight_event(&self, path: &PathState, flight: &Flight) -> LogEvent {
        let mut data = vec![
            ("round", Value::Integer(path.round)),
            ("packets", Value::Integer(flight.packets)),
            (
                "sent_in_ms",
                Value::milliseconds(flight.last_sent - flight.first_sent),
            ),
            (
                "acked_in_ms",
                Value::milliseconds(flight.last_ack - flight.first_ack),
            ),
            ("congestion_window", Value::Integer(path.window)),
        ];
        data.extend(
            self.rate
                .map(|rate| ("rate_bytes_per_second", Value::Integer(rate))),
        );
        data.extend(
            self.ssthresh(path)
                .map(|bytes| ("ssthresh", Value::Integer(bytes))),
        );
        LogEvent {
            now: path.now,
            name: "hybla_round",
            data,
        }
    }

    fn ssthresh(&self, path: &PathState) -> Option<u64> {
        let bytes = PathState::bytes_in(self.rate?, path.rtt.min);
        Some(bytes.max(path.initial_window))
    }
}

impl SlowStart for Hybla {
    fn name(&self) -> &'static str {
        "hybla"
    }

    fn on_acks(&mut self, path: &PathState, acks: &Acks<'_>) -> Step {
        self.measure(path, acks);
        let growth = acks.credit.saturating_mul(growth_factor(path));
        match self.ssthresh(path) {
            Some(ssthresh) if path.window.saturating_add(growth) >= ssthresh => Step::Leave(Exit {
                window: ssthresh,
                ssthresh,
                reason: "ssthresh",
            }),
            _ => Step::Grow(growth),
        }
    }

    fn pacing(&self, path: &PathState) -> Pacing {
        match self.rate {
            Some(rate) => Pacing::Rate(rate),
            None if is_first_flight(path) => Pacing::Unpaced,
            // As fast as the window grows, so that none of it has to wait.
            None => Pacing::Gain(100 * (1 + growth_factor(path))),
        }
    }

    fn take_event(&mut self, _path: &PathState) -> Option<LogEvent> {
        self.event.take()
    }

    fn clone_box(&self) -> Box<dyn SlowStart> {
        Box::new(self.clone())
    }
}
