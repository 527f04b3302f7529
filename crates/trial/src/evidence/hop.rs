//! Observations of a flow on one hop of its path.

use bentpipe_analysis::connection::Protocol;
use bentpipe_analysis::findings::{self, Findings, View};
use bentpipe_analysis::metrics::{Measured, arrivals};
use bentpipe_analysis::{DecodingGap, LinkFacts, Metrics};
use bentpipe_units::Time;
use bentpipe_wire::quic::End;

use super::DecodedConnection;
use crate::job::TestCaseFacts;

/// The observation of a flow on one hop.
#[derive(Debug, Default)]
pub struct HopObservation {
    /// The connections that could be made out.
    pub connections: Vec<DecodedConnection>,
    /// Whether the secrets are known that their streams are read with.
    pub is_readable: bool,
}

impl HopObservation {
    /// Whether a handshake was completed.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connections.iter().any(|it| it.establishment.complete)
    }

    /// The packets of these connections that could not be decoded although their secrets are known.
    /// None: the secrets are not.
    pub(crate) fn gap(&self, of: &[&DecodedConnection]) -> Option<DecodingGap> {
        let gap = || DecodingGap::of(of.iter().map(|it| &it.connection));
        self.is_readable.then(gap)
    }

    /// Whether the streams of these connections can be read, and nothing is missing that would
    /// mislead.
    pub(crate) fn can_read(&self, of: &[&DecodedConnection]) -> bool {
        self.gap(of).is_some_and(|gap| !gap.misleads())
    }

    /// The connections that completed a handshake; None if there is none at all, complete or not.
    pub(crate) fn completed(&self) -> Option<Vec<&DecodedConnection>> {
        let complete = self
            .connections
            .iter()
            .filter(|it| it.establishment.complete);
        (!self.connections.is_empty()).then(|| complete.collect())
    }

    /// The connections that a client is measured by: those that carry its files; where the test
    /// case has two, the second, of TCP all behind the first.
    pub(crate) fn measured(&self, facts: TestCaseFacts) -> Vec<&DecodedConnection> {
        if facts.has_two_connections() {
            return self.carried_later();
        }
        self.carrying()
    }

    /// The connections of an earlier visit or transfer, and those behind them. The former began
    /// before anything had come: a browser may open several, of which one carries its reply.
    pub(crate) fn earlier_and_later(&self) -> (Vec<&DecodedConnection>, Vec<&DecodedConnection>) {
        let all = self.connections.iter();
        match all.clone().filter_map(first_arrival).min() {
            Some(at) => all.partition(|it| it.connection.start.cast_signed() < at),
            None if self.can_read(&all.clone().collect::<Vec<_>>()) => (all.collect(), Vec::new()),
            // nothing came
            None => (all.clone().take(1).collect(), all.skip(1).collect()),
        }
    }

    /// The later connections that were completed: of TCP all, else one. Those that carry nothing,
    /// which a browser may have opened and not used, come last.
    pub(crate) fn carried_later(&self) -> Vec<&DecodedConnection> {
        let (_, mut later) = self.earlier_and_later();
        later.retain(|it| it.establishment.complete);
        later.sort_by_key(|it| first_arrival(it).is_none());
        let most = if are_tcp(&later) { usize::MAX } else { 1 };
        later.truncate(most);
        later
    }

    /// The connections of a hop between proxies: TCP's are the client's, one for one; how many of
    /// QUIC a proxy has is its own affair.
    pub(crate) fn of_hop(&self, facts: TestCaseFacts) -> Vec<&DecodedConnection> {
        if are_tcp(&self.completed().unwrap_or_default()) {
            return self.measured(facts);
        }
        self.carrying()
    }

    /// The connections that carry files: of TCP all that were completed, else the one with most
    /// packets.
    pub(crate) fn carrying(&self) -> Vec<&DecodedConnection> {
        let complete = self.completed().unwrap_or_default();
        if complete.len() > 1 && are_tcp(&complete) {
            return complete;
        }
        busiest(self.connections.iter()).into_iter().collect()
    }

    /// Whether any byte of streams is known to have arrived.
    pub(crate) fn has_arrivals(&self, facts: TestCaseFacts) -> bool {
        let mut all = self.connections.iter();
        let has_some =
            |it: &DecodedConnection| !arrivals(&it.connection, facts.sending_end()).is_empty();
        self.is_readable && all.any(has_some)
    }

    /// The arrivals of new bytes of streams, each with its time and number of bytes, in order. None
    /// if they cannot be read, or not most of them.
    pub(crate) fn arrivals(&self, facts: TestCaseFacts) -> Option<Vec<(Time, u64)>> {
        if !self.can_read(&self.connections.iter().collect::<Vec<_>>()) {
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

/// When the first byte of streams came to the client.
fn first_arrival(of: &DecodedConnection) -> Option<i64> {
    let came = arrivals(&of.connection, End::Server);
    came.first()
        .map(|(at, _)| of.connection.start.cast_signed() + at)
}

/// The metrics of connections that are measured together, and the rules that found a flaw in the
/// one with most packets. None if there are none.
pub fn on_wire(
    all: &[&DecodedConnection],
    facts: &LinkFacts,
) -> Option<(Metrics, Vec<&'static str>)> {
    let seen = busiest(all.iter().copied())?;
    let own_facts = LinkFacts {
        // How much of the files each has is not known.
        size_bytes: facts.size_bytes.filter(|_| all.len() == 1),
        ..facts.clone()
    };
    let found = Findings::of(&View {
        connection: &seen.connection,
        ledger: &seen.entries,
        link: &own_facts,
        windows: [None, None],
    });
    let wrong = found
        .all
        .into_iter()
        .filter(|finding| finding.verdict == findings::Verdict::Yes);
    let measured: Vec<Measured<'_>> = all
        .iter()
        .map(|it| Measured {
            connection: &it.connection,
            entries: &it.entries,
        })
        .collect();
    let metrics = Metrics::of_all(&measured, facts);
    Some((metrics, wrong.map(|finding| finding.rule).collect()))
}

fn are_tcp(all: &[&DecodedConnection]) -> bool {
    let mut all = all.iter();
    all.all(|it| it.connection.protocol == Protocol::Tcp)
}

/// The connection with most packets.
fn busiest<'a>(all: impl Iterator<Item = &'a DecodedConnection>) -> Option<&'a DecodedConnection> {
    all.max_by_key(|it| it.connection.packets.len())
}
