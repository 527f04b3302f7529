//! How the ends of a connection used ECN: the codepoints that a sender set, the marks that arrived,
//! those that the receiver reported, and the sender's answer.
//!
//! Source: RFC 3168 section 6.1 (TCP), RFC 9000 section 13.4 (QUIC), RFC 9002 section 7.1 (QUIC's
//! answer). All of it is of one direction: marks travel with the sender's packets, reports with the
//! receiver's.

mod echo;
mod rounds;

use bentpipe_wire::quic::{End, Space};

use crate::connection::{Codepoint, Connection, Packet, Vantage};
use crate::ledger::LedgerEntry;

pub(crate) use echo::Echo;
pub(crate) use rounds::MarkedRound;

/// The marks of one direction of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    /// The codepoints that the sender set. None: its side was not captured, and links may have
    /// changed them.
    pub set: Option<CodepointCounts>,
    /// Packets that arrived with CE. None: the receiver's side was not captured.
    pub arrived: Option<u64>,
    /// The receiver's reports.
    pub echo: Echo,
    /// The round trips in which marks were reported to the sender. None: its side was not captured,
    /// or reports are counts that are not read (accurate ECN of TCP).
    pub rounds: Option<Vec<MarkedRound>>,
}

/// Packets by their ECN codepoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CodepointCounts {
    /// Packets of the application's packet number space with ECT(0), and with ECT(1).
    pub capable: [u64; 2],
    /// Packets with stream data.
    pub data: u64,
    /// Packets among them with either codepoint.
    pub capable_data: u64,
}

impl Marks {
    /// The marks of what `sender` sends. `entries` is the connection's ledger.
    pub(crate) fn of(connection: &Connection, entries: &[LedgerEntry], sender: End) -> Self {
        let sees = |end: End| match connection.vantage {
            Vantage::Both => true,
            Vantage::At(side) => side == end,
            Vantage::Between => false,
        };
        let echo = Echo::of(connection, sender.other());
        let is_read = sees(sender) && echo.ce.is_some();
        let own = || {
            let packets = connection.packets.iter().zip(entries);
            packets.filter(move |(packet, _)| packet.sender == sender && !packet.copy)
        };
        Self {
            set: sees(sender).then(|| CodepointCounts::of(own())),
            arrived: sees(sender.other()).then(|| {
                let came = own().filter(|(it, _)| it.received_ecn() == Some(Codepoint::Ce));
                came.count() as u64
            }),
            echo,
            rounds: is_read.then(|| rounds::of(connection, entries, sender)),
        }
    }
}

impl CodepointCounts {
    fn of<'a>(own: impl Iterator<Item = (&'a Packet, &'a LedgerEntry)>) -> Self {
        let mut counts = Self::default();
        for (packet, entry) in own.filter(|(it, _)| it.space() == Some(Space::Application)) {
            let has_data = entry.stream_bytes > 0;
            counts.data += u64::from(has_data);
            let kind = match packet.sent_ecn() {
                Some(Codepoint::Ect0) => 0,
                Some(Codepoint::Ect1) => 1,
                _ => continue,
            };
            counts.capable[kind] += 1;
            counts.capable_data += u64::from(has_data);
        }
        counts
    }

    /// Both together.
    pub(crate) fn joined(self, other: Self) -> Self {
        let [ect0, ect1] = self.capable;
        Self {
            capable: [ect0 + other.capable[0], ect1 + other.capable[1]],
            data: self.data + other.data,
            capable_data: self.capable_data + other.capable_data,
        }
    }

    /// The codepoint that most of the packets with one have. None: no packet has one.
    pub(crate) fn codepoint(self) -> Option<Codepoint> {
        match self.capable {
            [0, 0] => None,
            [ect0, ect1] if ect0 >= ect1 => Some(Codepoint::Ect0),
            _ => Some(Codepoint::Ect1),
        }
    }
}
