//! The times by which a transfer is measured.

use crate::DecodingGap;
use crate::connection::{Connection, Frame, Kind, Nanos, Packet, Protocol};
use crate::ledger::LedgerEntry;
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::{End, PacketType};

use super::reply::{Reply, earliest, latest_of_both};

/// The times of a connection's milestones, in nanoseconds since its first packet was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Milestones {
    /// The client's first packet. None if that was not seen: the capture began later.
    pub start: Option<Nanos>,
    /// The handshake is complete for the client (RFC 9001 section 4.1.1): it sends its first
    /// Handshake packet with CRYPTO, which holds its Finished, or its first 1-RTT packet, where the
    /// former was not seen or is not decrypted. Of TCP, it is the segment with the Finished of TLS,
    /// and without TLS, or its secrets, the first that answers one of the server.
    pub handshake_complete: Option<Nanos>,
    /// The first packet with data of the reply; in an upload, of the files, at the server.
    pub first_byte: Option<Nanos>,
    /// The last byte of the reply that had been missing, if the reply is complete; in an upload,
    /// that of the files.
    pub last_byte: Option<Nanos>,
    /// The client has all that it waited for: the last byte of the reply; in an upload, the end of
    /// the last answer to it.
    pub complete: Option<Nanos>,
}

impl Milestones {
    /// The milestones of `connection`, whose [ledger](Connection::ledger) is `entries`.
    #[must_use]
    pub fn of(connection: &Connection, entries: &[LedgerEntry], facts: &LinkFacts) -> Self {
        let sender = facts.files_sender();
        Self::between(
            connection,
            &Reply::both(connection, entries, sender),
            sender,
        )
    }

    /// By what arrived of the client's and the server's streams.
    pub(super) fn between(connection: &Connection, sent: &[Reply; 2], sender: End) -> Self {
        let [upload, reply] = sent;
        let files = &sent[sender as usize];
        let of_handshake = Self {
            start: start(connection),
            handshake_complete: Self::handshake_complete(connection),
            ..Self::default()
        };
        if DecodingGap::of([connection]).misleads() {
            return of_handshake; // the first byte that is there may not be the first that came
        }
        Self {
            first_byte: files.first,
            last_byte: files.last,
            complete: match sender {
                End::Server => reply.last,
                End::Client => upload.last.and(reply.ended),
            },
            ..of_handshake
        }
    }

    /// The same on an axis that began `offset` earlier.
    pub(super) fn later(self, offset: Nanos) -> Self {
        let later = |time: Option<Nanos>| Some(time? + offset);
        Self {
            start: later(self.start),
            handshake_complete: later(self.handshake_complete),
            first_byte: later(self.first_byte),
            last_byte: later(self.last_byte),
            complete: later(self.complete),
        }
    }

    /// The same without a handshake.
    pub(super) fn without_handshake(self) -> Self {
        Self {
            handshake_complete: None,
            ..self
        }
    }

    /// With those of another connection: the first handshake, the first byte, the last one of all.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            start: self
                .start
                .zip(other.start)
                .map(|(one, other)| one.min(other)),
            handshake_complete: earliest(self.handshake_complete, other.handshake_complete),
            first_byte: earliest(self.first_byte, other.first_byte),
            last_byte: latest_of_both(self.last_byte, other.last_byte),
            complete: latest_of_both(self.complete, other.complete),
        }
    }

    /// The time at which the client's handshake was complete, see the field.
    pub(crate) fn handshake_complete(connection: &Connection) -> Option<Nanos> {
        let mut of_client = passing(connection, End::Client);
        if let Some(finished) = connection.tls.as_ref().and_then(|it| it.client_finished) {
            let has_it = |frame: &Frame| match frame {
                Frame::Crypto { offset, length } => {
                    (*offset..offset + u64::from(*length)).contains(&(finished - 1))
                }
                _ => false,
            };
            let sends_it = |packet: &Packet| connection.frames(packet).iter().any(has_it);
            if let Some((time, _)) = passing(connection, End::Client).find(|(_, it)| sends_it(it)) {
                return Some(time);
            }
        }
        if connection.protocol == Protocol::Tcp {
            let (answered, _) = passing(connection, End::Server).next()?;
            let refuses = |packet: &Packet| {
                let mut frames = connection.frames(packet).iter();
                frames.any(|frame| frame.name() == "RST")
            };
            let takes_it =
                |(time, packet): &(Nanos, &Packet)| *time >= answered && !refuses(packet);
            return of_client.find(takes_it).map(|(time, _)| time);
        }
        let has_crypto = |packet: &Packet| {
            let mut frames = connection.frames(packet).iter();
            frames.any(|frame| matches!(frame, Frame::Crypto { .. }))
        };
        let ends = |packet: &Packet| match packet.kind {
            Kind::Quic(PacketType::Handshake) => has_crypto(packet),
            Kind::Quic(PacketType::OneRtt) => true,
            _ => false,
        };
        Some(of_client.find(|(_, packet)| ends(packet))?.0)
    }

    /// First and last byte of files that are there as a whole.
    pub(super) fn transfer(&self) -> Option<(Nanos, Nanos)> {
        self.first_byte.zip(self.last_byte)
    }
}

/// Packets of an end, with the times at which they passed, in the order in which they were sent.
fn passing(connection: &Connection, end: End) -> impl Iterator<Item = (Nanos, &Packet)> {
    let own = connection.packets.iter().filter(move |it| it.sender == end);
    own.filter_map(|packet| Some((connection.seen_at(packet, End::Client)?, packet)))
}

fn start(connection: &Connection) -> Option<Nanos> {
    let (time, packet) = passing(connection, End::Client).next()?;
    let begins = match packet.kind {
        Kind::Tcp => connection
            .frames(packet)
            .iter()
            .any(|it| it.name() == "SYN"),
        // Its 0-RTT packets may overtake its Initial.
        Kind::Quic(kind) => matches!(kind, PacketType::Initial | PacketType::ZeroRtt),
    };
    begins.then_some(time)
}
