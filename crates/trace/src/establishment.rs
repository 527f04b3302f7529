//! How a connection came about: what tests of handshakes, resumption and early data ask for, read off the wire.
//!
//! Source: RFC 9000 section 17.2 (packet types) and 17.2.3 (0-RTT), RFC 8446 section 2.2 (resumption) and 4.2.10 (early
//! data). What lies in Initial packets everybody can read; the rest needs secrets.

use serde::Serialize;

use crate::connection::{Connection, Fate, Frame, Kind, Packet, Protocol};
use crate::ledger::Entry;
use crate::metrics::Milestones;
use crate::quic::{End, PacketType};

/// The beginning of a QUIC connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Establishment {
    /// Whether the client completed the handshake.
    pub complete: bool,
    /// Whether the server asked for the address to be validated, by a Retry packet.
    pub retry: bool,
    /// How often the client sent its `ClientHello`: the most times that any byte of it was sent. 0: not seen.
    pub client_hellos: u64,
    /// Whether the server took a ticket of the client: `pre_shared_key` in its `ServerHello`. None: not seen.
    pub resumed: Option<bool>,
    /// Whether the server sent a Certificate. None: not seen, or not decrypted.
    pub certificate: Option<bool>,
    /// Bytes of stream data in 0-RTT packets of the client. None: some of these could not be decrypted.
    pub zero_rtt_bytes: Option<u64>,
    /// Whether the server took the 0-RTT packets with stream data: it acknowledged one of them; where none is known to have
    /// arrived, it said in its handshake that it would. None: there are no such packets, or they could not be decrypted.
    pub zero_rtt_accepted: Option<bool>,
}

impl Establishment {
    /// Of `connection`, whose [ledger](Connection::ledger) is `entries`. None if it is not of QUIC.
    #[must_use]
    pub fn of(connection: &Connection, entries: &[Entry]) -> Option<Self> {
        if connection.protocol == Protocol::Tcp {
            return None;
        }
        let early = Early::of(connection, entries);
        let mut packets = connection.packets.iter();
        Some(Self {
            complete: Milestones::handshake_complete(connection).is_some(),
            retry: packets.any(|it| it.kind == Kind::Quic(PacketType::Retry)),
            client_hellos: client_hellos(connection),
            resumed: connection.handshake.took_ticket,
            certificate: connection.handshake.certificate,
            zero_rtt_bytes: early.bytes,
            zero_rtt_accepted: early.accepted,
        })
    }
}

/// What a client sent in 0-RTT packets, and what became of it.
struct Early {
    bytes: Option<u64>,
    accepted: Option<bool>,
}

impl Early {
    fn of(connection: &Connection, entries: &[Entry]) -> Self {
        let of_kind = |packet: &Packet| packet.kind == Kind::Quic(PacketType::ZeroRtt);
        let all = connection.packets.iter().zip(entries);
        let early: Vec<_> = all.filter(|(it, _)| of_kind(it) && !it.copy).collect();
        if early.iter().any(|(packet, _)| !packet.decoded) {
            return Self {
                bytes: None,
                accepted: None,
            };
        }
        let with_data = || early.iter().filter(|(_, entry)| entry.stream_bytes > 0);
        let was_lost = |packet: &Packet| {
            matches!(
                packet.fate,
                Fate::QueueDrop | Fate::Loss | Fate::NotReceived
            )
        };
        let accepted = if with_data().any(|(_, entry)| entry.acked.is_some()) {
            Some(true)
        } else if with_data().all(|(packet, _)| was_lost(packet)) {
            connection.handshake.early_data
        } else {
            Some(false)
        };
        let bytes = early.iter().map(|(_, it)| u64::from(it.stream_bytes));
        Self {
            bytes: Some(bytes.sum()),
            accepted: accepted.filter(|_| with_data().next().is_some()),
        }
    }
}

/// The most times that a byte of the CRYPTO stream in the client's Initial packets was sent: nothing but its `ClientHello`
/// is in it.
fn client_hellos(connection: &Connection) -> u64 {
    let packets = connection.packets.iter();
    let own = packets.filter(|it| it.sender == End::Client && !it.copy);
    let initial = own.filter(|it| it.kind == Kind::Quic(PacketType::Initial));
    let frames = initial.flat_map(|packet| connection.frames(packet));
    // Where a piece begins, one more is there; where it ends, one less. Ends come before beginnings at the same place.
    let mut steps: Vec<(u64, i64)> = Vec::new();
    for frame in frames {
        if let Frame::Crypto { offset, length } = frame {
            steps.push((*offset, 1));
            steps.push((offset.saturating_add(u64::from(*length)), -1));
        }
    }
    steps.sort_unstable();
    let depths = steps.iter().scan(0, |depth, (_, step)| {
        *depth += step;
        Some(*depth)
    });
    depths
        .max()
        .map_or(0, |most| u64::try_from(most).unwrap_or(0))
}
