//! How both ends used ECN, in numbers ([`crate::marks`]).

use bentpipe_wire::quic::End;
use serde::Serialize;

use super::float;
use crate::connection::{Codepoint, Connection};
use crate::ledger::LedgerEntry;
use crate::marks::{CodepointCounts, MarkedRound, Marks};

/// The use of ECN in one direction: the sender's codepoints, the marks that the receiver got and
/// reported, and the sender's answers. None: cannot be told from where it was
/// captured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct EcnUse {
    /// The codepoint that most of the sender's packets with one had (RFC 3168 section 5): "ECT(0)"
    /// or "ECT(1)"; "none" if no packet had one. Packets of the handshake do not count.
    pub codepoint: Option<&'static str>,
    /// The share of its packets with stream data that had one.
    pub capable_share: Option<f64>,
    /// Packets that arrived with CE.
    pub ce_arrived: Option<u64>,
    /// The marks that the receiver reported: QUIC's largest CE counts (RFC 9000 section 19.3.2),
    /// TCP's episodes of ECN-Echo (RFC 3168 section 6.1.3).
    pub ce_echoed: Option<u64>,
    /// The round trips in which marks were reported to the sender, with new data to send to their
    /// end.
    pub ce_rounds: Option<u64>,
    /// Rounds among them in which it slowed down: TCP by its CWR (RFC 3168 section 6.1.2), QUIC by
    /// its bytes in flight.
    pub ce_answered: Option<u64>,
}

impl EcnUse {
    /// Without what needs the frames of all packets.
    pub(super) fn without_content(self) -> Self {
        Self {
            capable_share: None,
            ce_echoed: None,
            ce_rounds: None,
            ce_answered: None,
            ..self
        }
    }
}

/// Counts of ECN, of one connection or several.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EcnCounts {
    set: Option<CodepointCounts>,
    arrived: Option<u64>,
    echoed: Option<u64>,
    rounds: Option<u64>,
    answered: Option<u64>,
}

impl EcnCounts {
    pub(super) fn of(connection: &Connection, entries: &[LedgerEntry], sender: End) -> Self {
        let marks = Marks::of(connection, entries, sender);
        let rounds = marks.rounds.as_deref();
        let count = |is: fn(&MarkedRound) -> bool| {
            rounds.map(|all| all.iter().filter(|it| is(it)).count() as u64)
        };
        Self {
            set: marks.set,
            arrived: marks.arrived,
            echoed: marks.echo.ce,
            rounds: count(|it| it.answered.is_some()),
            answered: count(|it| it.answered == Some(true)),
        }
    }

    /// With those of another connection.
    pub(super) fn joined(self, other: Self) -> Self {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Self {
            set: (self.set.zip(other.set)).map(|(one, other)| one.joined(other)),
            arrived: sum(self.arrived, other.arrived),
            echoed: sum(self.echoed, other.echoed),
            rounds: sum(self.rounds, other.rounds),
            answered: sum(self.answered, other.answered),
        }
    }

    pub(super) fn measured(self) -> EcnUse {
        let set = self.set;
        let share = |it: CodepointCounts| float(it.capable_data) / float(it.data);
        EcnUse {
            codepoint: set.map(|it| it.codepoint().map_or("none", Codepoint::name)),
            capable_share: set.filter(|it| it.data > 0).map(share),
            ce_arrived: self.arrived,
            ce_echoed: self.echoed,
            ce_rounds: self.rounds,
            ce_answered: self.answered,
        }
    }
}
