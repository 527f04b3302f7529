//! How a connection came about: what tests of handshakes, resumption and early data ask for, read
//! off the wire.
//!
//! Source: RFC 9000 section 17.2 (packet types) and 17.2.3 (0-RTT), RFC 8446 section 2.2
//! (resumption) and 4.2.10 (early data). What lies in Initial packets everybody can read; the rest
//! needs secrets.

use serde::Serialize;

use crate::connection::{Connection, Frame, Kind, Packet, Protocol};
use crate::ledger::LedgerEntry;
use crate::metrics::Milestones;
use bentpipe_wire::quic::{End, PacketType};

/// The beginning of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Establishment {
    /// Whether the client completed the handshake.
    pub complete: bool,
    /// Whether the server asked for the address to be validated, by a Retry packet.
    pub retry: bool,
    /// The number of times that the client sent its `ClientHello`: the most times that any byte of
    /// it was sent; of TCP, that it sent its SYN. 0: not seen.
    pub client_hellos: u64,
    /// Whether the server took a ticket of the client: `pre_shared_key` in its `ServerHello`. None:
    /// not seen.
    pub resumed: Option<bool>,
    /// Whether the server sent a Certificate. None: not seen, or not decrypted.
    pub certificate: Option<bool>,
    /// Bytes of stream data in 0-RTT packets of the client; of TCP, in records of early data. None:
    /// some of these could not be decrypted.
    pub zero_rtt_bytes: Option<u64>,
    /// Whether the server took the 0-RTT packets with stream data: it acknowledged one of them, or
    /// said in its handshake that it takes them. None: there are no such packets, or they could not
    /// be decrypted. Of TCP, it is the word of the handshake alone.
    pub zero_rtt_accepted: Option<bool>,
}

impl Establishment {
    /// Whether a capture has something of a connection's beginning. Of TCP, it is that of TLS.
    #[must_use]
    pub fn is_seen(connection: &Connection) -> bool {
        match connection.protocol {
            Protocol::Tcp => connection.tls.is_some(),
            Protocol::Quic(_) => {
                let mut packets = connection.packets.iter();
                packets.any(|it| it.kind != Kind::Quic(PacketType::OneRtt))
            }
        }
    }

    /// The establishment of `connection`, whose [ledger](Connection::ledger) is `entries`.
    #[must_use]
    pub fn of(connection: &Connection, entries: &[LedgerEntry]) -> Self {
        let early = Early::of(connection, entries);
        let mut packets = connection.packets.iter();
        Self {
            complete: Milestones::handshake_complete(connection).is_some(),
            retry: packets.any(|it| it.kind == Kind::Quic(PacketType::Retry)),
            client_hellos: match connection.protocol {
                Protocol::Quic(_) => client_hellos(connection),
                Protocol::Tcp => syns(connection),
            },
            resumed: connection.handshake.took_ticket,
            certificate: connection.handshake.certificate,
            zero_rtt_bytes: early.bytes,
            zero_rtt_accepted: early.accepted,
        }
    }
}

/// The data that a client sent in 0-RTT packets, and whether the server accepted it.
struct Early {
    bytes: Option<u64>,
    accepted: Option<bool>,
}

impl Early {
    /// Early data over TCP; without TLS there are none.
    fn of_records(connection: &Connection) -> Self {
        let bytes = match &connection.tls {
            None => Some(0),
            Some(tls) => tls.readable.then_some(tls.early_bytes),
        };
        let accepted = connection.handshake.early_data;
        Self {
            bytes,
            accepted: accepted.filter(|_| bytes > Some(0)),
        }
    }

    fn of(connection: &Connection, entries: &[LedgerEntry]) -> Self {
        if connection.protocol == Protocol::Tcp {
            return Self::of_records(connection);
        }
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
        // RFC 9001 section 4.6.2. An acknowledgement may be lost, or not be sent before the
        // connection ends.
        let accepted = if with_data().any(|(_, entry)| entry.acked.is_some()) {
            Some(true)
        } else {
            connection.handshake.early_data
        };
        let bytes = early.iter().map(|(_, it)| u64::from(it.stream_bytes));
        Self {
            bytes: Some(bytes.sum()),
            accepted: accepted.filter(|_| with_data().next().is_some()),
        }
    }
}

/// How often a client of TCP asked for a connection.
fn syns(connection: &Connection) -> u64 {
    let own = connection.packets.iter();
    let own = own.filter(|it| it.sender == End::Client && !it.copy);
    let asks = own.filter(|it| connection.frames(it).iter().any(|it| it.name() == "SYN"));
    asks.count() as u64
}

/// The most times that a byte of the CRYPTO stream in the client's Initial packets was sent:
/// nothing but its `ClientHello` is in it.
fn client_hellos(connection: &Connection) -> u64 {
    let packets = connection.packets.iter();
    let own = packets.filter(|it| it.sender == End::Client && !it.copy);
    let initial = own.filter(|it| it.kind == Kind::Quic(PacketType::Initial));
    let frames = initial.flat_map(|packet| connection.frames(packet));
    // Where a piece begins, one more is there; where it ends, one less. Ends come before beginnings
    // at the same place.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Fate, Vantage, WireImage};
    use bentpipe_wire::quic::Handshake;

    /// Packets of the client: type, number, frames, and whether they arrived.
    type Sent<'a> = (PacketType, u64, &'a [Frame], bool);

    /// A connection of packets of the client, a millisecond apart, and one of the server that
    /// acknowledges number `acked`.
    fn connection(sent: &[Sent<'_>], acked: Option<u64>) -> Connection {
        let mut connection = Connection {
            protocol: Protocol::Quic(1),
            ends: ["192.0.2.1:50000", "198.51.100.1:443"].map(|end| end.parse().unwrap()),
            initial_credit: [None; 2],
            handshake: Handshake::default(),
            wire_image: WireImage::default(),
            tls: None,
            subflow: None,
            vantage: Vantage::Both,
            start: 0,
            clock_ahead: 0,
            packets: Vec::new(),
            frames: Vec::new(),
            ranges: acked.map(|number| (number, number)).into_iter().collect(),
        };
        let ack = Frame::Ack {
            path_id: None,
            ranges: 0..1,
            delay_us: None,
            ecn: None,
        };
        let answer = [ack];
        let answers = acked.map(|_| (End::Server, (PacketType::OneRtt, 0, &answer[..], true)));
        let all = sent.iter().map(|packet| (End::Client, *packet));
        for (at, (sender, (kind, number, frames, arrives))) in (0..).zip(all.chain(answers)) {
            let first = u32::try_from(connection.frames.len()).unwrap();
            connection.frames.extend_from_slice(frames);
            let (left, arrived) = (at * 1_000_000, (at + 300) * 1_000_000);
            let mut seen = [Some(left); 2];
            seen[sender.other() as usize] = arrives.then_some(arrived);
            connection.packets.push(Packet {
                sender,
                kind: Kind::Quic(kind),
                number: Some(number),
                path_id: 0,
                size: 1200,
                first_byte: 0xc0,
                ip_size: Some(1228),
                seen,
                ecn: [None; 2],
                fate: if arrives { Fate::Delivered } else { Fate::Loss },
                copy: false,
                decoded: true,
                frames: first..u32::try_from(connection.frames.len()).unwrap(),
            });
        }
        connection
    }

    fn of(connection: &Connection) -> Establishment {
        Establishment::of(connection, &connection.ledger())
    }

    fn crypto(offset: u64, length: u32) -> Frame {
        Frame::Crypto { offset, length }
    }

    #[test]
    fn a_client_hello_in_pieces_is_one() {
        use PacketType::Initial;
        let (first, second) = ([crypto(600, 700), crypto(0, 100)], [crypto(100, 500)]);
        let mut sent: Vec<Sent<'_>> = vec![
            (Initial, 0, &first, true),
            (Initial, 1, &second, true),
            (Initial, 2, &[], true),
        ];
        assert_eq!(of(&connection(&sent, None)).client_hellos, 1);
        sent.push((Initial, 3, &second, true));
        assert_eq!(of(&connection(&sent, None)).client_hellos, 2);
        assert_eq!(of(&connection(&[], None)).client_hellos, 0);
    }

    #[test]
    fn early_data_is_taken_if_it_is_acknowledged_or_the_server_says_so() {
        let data = [Frame::Stream {
            id: 0,
            offset: 0,
            length: 9,
            fin: true,
        }];
        let early = |arrives, acked, says| {
            let sent = [(PacketType::ZeroRtt, 0, &data[..], arrives)];
            let mut connection = connection(&sent, acked);
            connection.handshake.early_data = says;
            let found = of(&connection);
            (found.zero_rtt_bytes, found.zero_rtt_accepted)
        };
        assert_eq!(early(true, Some(0), None), (Some(9), Some(true)));
        // An acknowledgement that did not come says little: it may be lost. The server's word
        // counts then.
        for (arrives, acked) in [(true, None), (true, Some(1)), (false, None)] {
            for says in [Some(true), Some(false), None] {
                assert_eq!(early(arrives, acked, says), (Some(9), says));
            }
        }
    }

    #[test]
    fn what_is_sealed_or_not_there_says_nothing_of_early_data() {
        let found = of(&connection(&[], None));
        assert_eq!(
            (found.zero_rtt_bytes, found.zero_rtt_accepted),
            (Some(0), None)
        );
        let mut sealed = connection(&[(PacketType::ZeroRtt, 0, &[], true)], None);
        sealed.packets[0].decoded = false;
        let found = of(&sealed);
        assert_eq!(
            (found.zero_rtt_bytes, found.zero_rtt_accepted),
            (None, None)
        );
    }
}
