//! Names the flaws that the literature shows in its figures, in the trace of one connection.
//!
//! A [`View`] is what is known of a connection. Every rule looks at it and answers: yes, with the
//! evidence; no, with the number that rules it out; or not sure, with what is missing. A rule never
//! guesses: what a capture cannot tell (a side that was not captured, a link whose rate nobody
//! gave) leads to "not sure". Rules speak of the data sender, the end that sent more stream bytes.
//!
//! Sources: S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite
//! Networks, master's thesis, 2022, section 5.6 (offset plots, figures 5.7 to 5.20); the WPI report
//! on SEARCH in QUIC, 2024, figure 1 (slow start exits); Kosek et al., Proxying QUIC over
//! satellites, 2022, section III; RFC 9000, 9002 and 9406. Each rule names its own.
//! `docs/reference/findings.md` lists them all.

mod credit;
mod deliveries;
mod pauses;
mod quantities;
mod retransmissions;
mod rounds;
mod rules;
mod signals;
mod slow_start;
mod span;
#[cfg(test)]
mod tests;
mod transfer;
mod transfer_bounds;
mod view;

use serde::Serialize;

use crate::connection::Nanos;

use signals::Signals;
use slow_start::SlowStart;

pub use view::View;

/// The findings of all rules on a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// One per rule.
    pub all: Vec<Finding>,
    /// The time at which the data sender left slow start, if it did and the trace tells.
    pub slow_start_end: Option<Nanos>,
}

/// The answer of one rule on a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, as in `docs/reference/findings.md`.
    pub rule: &'static str,
    /// Whether the flaw is there.
    pub verdict: Verdict,
    /// The name of the flaw, for people.
    pub title: &'static str,
    /// One plain sentence.
    pub text: String,
    /// The numbers behind it.
    pub evidence: Vec<Evidence>,
    /// The part of a plot in which it is seen.
    pub plot: Option<PlotPlace>,
}

/// The verdict of a rule: whether a flaw is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The flaw is there.
    Yes,
    /// The flaw is not there.
    No,
    /// The trace does not tell; the text says what is missing.
    NotSure,
}

/// A number that a verdict rests on, and when it was so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// The meaning of the number.
    pub what: &'static str,
    /// Seconds since the connection's first packet.
    pub at_s: f64,
    /// The end, of what took a while.
    pub until_s: Option<f64>,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
}

/// The part of a plot in which a flaw is seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlotPlace {
    /// The plot: "offset", "number", "size", "rate", "`in_flight`", "rtt", "acks" or "delay".
    pub kind: &'static str,
    /// Its beginning, in seconds since the connection's first packet.
    pub from_s: f64,
    /// Its end, in seconds since the connection's first packet.
    pub to_s: f64,
}

impl Findings {
    /// The findings of a connection.
    #[must_use]
    pub fn of(view: &View<'_>) -> Self {
        let signals = Signals::of(view);
        let slow_start = signals.slow_start.as_ref();
        let told = slow_start
            .ok()
            .filter(|_| signals.transfer.needs_most_packets().is_ok());
        let exit = told.and_then(SlowStart::exit);
        Self {
            all: rules::ALL
                .iter()
                .map(|rule| rule.finding(&signals))
                .collect(),
            slow_start_end: exit.map(|exit| exit.at),
        }
    }
}
