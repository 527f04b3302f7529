//! The wire image of a connection (RFC 8546): all that is readable on the path beside the times and
//! sizes of its packets.

use std::net::SocketAddr;

use bentpipe_wire::quic::{ClientHello, ConnectionId, End};

/// The wire image of a connection (RFC 8546): what it shows without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WireImage {
    /// The names that the client said in the clear.
    pub client_hello: ClientHello,
    /// The connection IDs of packets to the client and to the server, as they became known. Those
    /// that ends issue later are encrypted.
    pub connection_ids: [Vec<ConnectionId>; 2],
    /// The addresses from which an end sent beside its first one, in order: it migrated, or a NAT
    /// gave it another one (RFC 9000 section 9).
    pub later_addresses: Vec<LaterAddress>,
}

/// An address that an end came to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaterAddress {
    /// The end that came to use it.
    pub end: End,
    /// The address.
    pub address: SocketAddr,
    /// The time at which a packet from it was first seen, in nanoseconds since the Unix epoch.
    pub since: u64,
}

impl WireImage {
    /// The wire image at one place, completed by that at another.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        let [client, server] = self.connection_ids;
        let [other_client, other_server] = other.connection_ids;
        Self {
            client_hello: self.client_hello.or(other.client_hello),
            connection_ids: [fuller(client, other_client), fuller(server, other_server)],
            later_addresses: fuller(self.later_addresses, other.later_addresses),
        }
    }

    /// Notes the address that a packet of `end` came from; `first` is that of its first packets.
    pub(super) fn note_address(&mut self, end: End, first: SocketAddr, seen: LaterAddress) {
        let known = self.later_addresses.iter().filter(|it| it.end == end);
        let mut known = known.map(|it| it.address).chain([first]);
        if !known.any(|address| address == seen.address) {
            self.later_addresses.push(seen);
        }
    }
}

/// The longer list; of equals, the first.
fn fuller<T>(one: Vec<T>, other: Vec<T>) -> Vec<T> {
    if other.len() > one.len() { other } else { one }
}
