//! What was observed of a flow on one hop of its path.

use bentpipe_analysis::findings::{self, Findings, View};
use bentpipe_analysis::metrics::arrivals;
use bentpipe_analysis::{LinkFacts, Metrics};
use bentpipe_units::Time;

use super::DecodedConnection;
use crate::job::TestCaseFacts;

/// The observation of a flow on one hop.
#[derive(Debug, Default)]
pub struct HopObservation {
    /// The connections that could be made out.
    pub connections: Vec<DecodedConnection>,
    /// Whether their streams can be read.
    pub has_secrets: bool,
}

impl HopObservation {
    /// Whether a handshake was completed.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connections.iter().any(|it| it.establishment.complete)
    }

    /// The connections that completed a handshake; None if there is none at all, complete or not.
    pub(crate) fn completed(&self) -> Option<Vec<&DecodedConnection>> {
        let complete = self
            .connections
            .iter()
            .filter(|it| it.establishment.complete);
        (!self.connections.is_empty()).then(|| complete.collect())
    }

    /// The connection that a client is measured by: the second, where the test case has two; else the one with most packets.
    pub(crate) fn measured(&self, facts: TestCaseFacts) -> Option<&DecodedConnection> {
        if facts.has_two_connections() {
            return self.completed()?.get(1).copied();
        }
        self.busiest()
    }

    /// The connection with most packets.
    pub(crate) fn busiest(&self) -> Option<&DecodedConnection> {
        let packets = |it: &&DecodedConnection| it.connection.packets.len();
        self.connections.iter().max_by_key(packets)
    }

    /// When bytes of streams arrived that had not been there before, and how many, in order. None if they cannot be read.
    pub(crate) fn arrivals(&self, facts: TestCaseFacts) -> Option<Vec<(Time, u64)>> {
        if !self.has_secrets {
            return None;
        }
        let of = |seen: &DecodedConnection| {
            let start = seen.start().as_nanos().cast_signed();
            let arrivals = arrivals(&seen.connection, facts.sending_end()).into_iter();
            arrivals.map(move |(at, bytes)| (Time::from_nanos((start + at).cast_unsigned()), bytes))
        };
        let mut all: Vec<(Time, u64)> = self.connections.iter().flat_map(of).collect();
        all.sort_by_key(|(at, _)| *at);
        Some(all)
    }
}

/// What was on the wire, in numbers, and the rules that found something wrong with it.
pub fn on_wire(seen: &DecodedConnection, facts: &LinkFacts) -> (Metrics, Vec<&'static str>) {
    let (connection, entries) = (&seen.connection, &seen.entries);
    let found = Findings::of(&View {
        connection,
        ledger: entries,
        link: facts,
        windows: [None, None],
    });
    let wrong = found
        .all
        .into_iter()
        .filter(|finding| finding.verdict == findings::Verdict::Yes);
    let metrics = Metrics::of(connection, entries, facts);
    (metrics, wrong.map(|finding| finding.rule).collect())
}
