//! A connection with all that is known of it.

use crate::connection::{Connection, Nanos, Packet};
use crate::ledger::LedgerEntry;
use crate::link_facts::LinkFacts;

/// The facts of a connection that rules look at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Its packets.
    pub connection: &'a Connection,
    /// The result of [`Connection::ledger`].
    pub ledger: &'a [LedgerEntry],
    /// The facts of its path that are known.
    pub link: &'a LinkFacts,
    /// The congestion windows in bytes that the client and the server logged (qlog), if they did,
    /// with the times at which they changed.
    pub windows: [Option<&'a [(Nanos, u64)]>; 2],
}

impl<'a> View<'a> {
    /// Its packets with their entries, by time. A copy of a packet is none of its own: the network
    /// or the capture made it.
    pub(super) fn packets(&self) -> impl Iterator<Item = (&'a Packet, &'a LedgerEntry)> + use<'a> {
        let all = self.connection.packets.iter().zip(self.ledger);
        all.filter(|(packet, _)| !packet.copy)
    }
}
