//! Names the flaws that the literature shows in its figures, in the trace of one connection.
//!
//! A [`View`] is what is known of a connection. Every rule looks at it and answers: yes, with the evidence; no, with the
//! number that rules it out; or not sure, with what is missing. A rule never guesses: what a capture cannot tell (a
//! side that was not captured, a link whose rate nobody gave) leads to "not sure". Rules speak of the data sender, the
//! end that sent more stream bytes.
//!
//! Sources: S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite Networks, master's thesis,
//! 2022, section 5.6 (offset plots, figures 5.7 to 5.20); the WPI report on SEARCH in QUIC, 2024, figure 1 (slow start
//! exits); Kosek et al., Proxying QUIC over satellites, 2022, section III; RFC 9000, 9002 and 9406. Each rule names its
//! own. `docs/findings.md` lists them all.

mod copies;
mod credit;
mod deliveries;
mod pauses;
mod rounds;
mod rules;
mod say;
mod signals;
mod slow_start;

use serde::Serialize;

use crate::connection::{Connection, Nanos};
use crate::ledger::Entry;
use crate::link_facts::LinkFacts;

use signals::Signals;

/// What is known of a connection.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Its packets.
    pub connection: &'a Connection,
    /// What [`Connection::ledger`] gave.
    pub ledger: &'a [Entry],
    /// What is known of its path.
    pub link: &'a LinkFacts,
    /// What the data sender itself logged of its congestion control, if it did.
    pub congestion: Option<Congestion<'a>>,
}

/// The data sender's own word on its congestion control, out of its qlog.
#[derive(Debug, Clone, Copy)]
pub struct Congestion<'a> {
    /// The congestion window in bytes, with the times at which it changed, on the connection's clock.
    pub window: &'a [(Nanos, u64)],
}

/// What a rule says of a connection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, as in `docs/findings.md`.
    pub rule: &'static str,
    /// Whether the flaw is there.
    pub verdict: Verdict,
    /// The name of the flaw, for people.
    pub title: &'static str,
    /// One plain sentence.
    pub text: String,
    /// The numbers behind it.
    pub evidence: Vec<Evidence>,
    /// Where to see it.
    pub plot: Option<PlotPlace>,
}

/// Whether a flaw is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Yes,
    /// It is not.
    No,
    /// The trace does not tell; the text says what is missing.
    NotSure,
}

/// A number, and when it was so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evidence {
    /// What the number is.
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

/// A part of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlotPlace {
    /// Which plot: "offset", "number", "size", "rate", "`in_flight`", "rtt" or "acks".
    pub kind: &'static str,
    /// Seconds since the connection's first packet.
    pub from_s: f64,
    /// Likewise.
    pub to_s: f64,
}

/// What all rules say of a connection, a finding per rule.
#[must_use]
pub fn findings(view: &View<'_>) -> Vec<Finding> {
    let signals = Signals::of(view);
    let rules = rules::ALL.iter();
    rules.map(|rule| rule.finding(&signals)).collect()
}

/// When the data sender left slow start, if it did and the trace tells: see rule `slow_start_left_early`.
#[must_use]
pub fn slow_start_end(view: &View<'_>) -> Option<Nanos> {
    let signals = Signals::of(view);
    Some(signals.slow_start.as_ref().ok()?.exit()?.at)
}
