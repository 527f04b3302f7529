//! The packets on the wire, decoded without going through a file.

use std::net::SocketAddr;

use bentpipe_analysis::connection::{
    self, Arrival, CaptureInfo, Codepoint, Connection, Kind, Protocol, Recorder,
};
use bentpipe_analysis::{DecodingGap, Establishment, LedgerEntry, tcp};
use bentpipe_link::{Direction, Fate};
use bentpipe_units::Time;
use bentpipe_wire::quic::{End, PacketType};
use bentpipe_wire::tcp::Segment;
use bentpipe_wire::{Datagram, KeyLog, Path};

use super::{Packet, PacketLog, Transport};

/// The decoder of a hop's packets: these, and the secrets to read those of one of its flows.
#[derive(Debug)]
pub struct HopDecoder<'a> {
    /// The packets of all flows.
    pub log: &'a PacketLog,
    /// The one that is looked at.
    pub flow: usize,
    /// The TLS secrets, in NSS key log format.
    pub key_log: &'a [u8],
    /// Its addresses at both ends, that towards the client first, of each of its paths.
    pub ends: Vec<[SocketAddr; 2]>,
}

/// A connection of a trial, of QUIC or TCP.
#[derive(Debug)]
pub struct DecodedConnection {
    /// Time zero of the trial, in nanoseconds since the Unix epoch.
    pub epoch_unix_ns: u64,
    /// Its packets.
    pub connection: Connection,
    /// Its ledger.
    pub entries: Vec<LedgerEntry>,
    /// How it was established.
    pub establishment: Establishment,
}

impl DecodedConnection {
    fn of(connection: Connection, epoch_unix_ns: u64) -> Self {
        let entries = connection.ledger();
        let establishment = Establishment::of(&connection, &entries);
        Self {
            epoch_unix_ns,
            connection,
            entries,
            establishment,
        }
    }

    /// Whether it is of TCP without TLS: its bytes can be read by everybody.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        let has_data = self.entries.iter().any(|it| it.stream_bytes > 0);
        self.connection.protocol == Protocol::Tcp && self.connection.tls.is_none() && has_data
    }

    /// Whether its streams can be read, and enough of them that nothing misleads.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        if let Some(tls) = &self.connection.tls {
            return tls.readable;
        }
        if self.connection.protocol == Protocol::Tcp {
            return self.is_clear();
        }
        if DecodingGap::of([&self.connection]).misleads() {
            return false;
        }
        let one_rtt = Kind::Quic(PacketType::OneRtt);
        let mut packets = self.connection.packets.iter();
        packets.any(|it| it.kind == one_rtt && it.sender == End::Server && it.decoded)
    }

    /// The time at which its first packet was sent.
    #[must_use]
    pub fn start(&self) -> Time {
        Time::from_nanos(self.connection.start.saturating_sub(self.epoch_unix_ns))
    }
}

impl HopDecoder<'_> {
    /// The connections that can be told from the packets, as they began.
    ///
    /// Each packet is decoded where it left its sender; what became of it is known.
    pub fn connections(&self) -> Vec<DecodedConnection> {
        let mut secrets = KeyLog::default();
        secrets.add(self.key_log);
        let epoch = self.log.epoch_unix_ns();
        let own = self.log.packets().iter().filter(|it| it.flow == self.flow);
        let mut order: Vec<&Packet> = own.collect();
        order.sort_by_key(|packet| packet.sent);
        let mut recorder = Recorder::new(&secrets);
        let mut of_tcp = tcp::Recorder::new(&secrets);
        for (frame, packet) in (1..).zip(&order) {
            let info = CaptureInfo {
                time: epoch + packet.sent.as_nanos(),
                frame,
                ecn: Codepoint::of_bits(packet.ip.ecn),
                fate: None,
            };
            let path = self.path(packet.direction, packet.path);
            match &packet.ip.transport {
                Transport::Udp(payload) => {
                    let length = payload.len();
                    let datagram = Datagram {
                        path,
                        payload,
                        length,
                    };
                    recorder.datagram(&datagram, info);
                }
                Transport::Tcp(bytes) => {
                    if let Some((segment, payload)) =
                        Segment::parse([path.source.ip(), path.destination.ip()], bytes)
                    {
                        of_tcp.segment(&segment, payload, info);
                    }
                }
                Transport::Other { .. } => {}
            }
        }
        let fate = |captured: u32| {
            let packet = order[captured as usize - 1];
            match packet.fate {
                Fate::Delivered { at } => {
                    let arrival = Arrival {
                        time: epoch + at.as_nanos(),
                        ecn: arriving_ecn(packet),
                    };
                    (connection::Fate::Delivered, Some(arrival))
                }
                Fate::QueueDrop => (connection::Fate::QueueDrop, None),
                Fate::Loss => (connection::Fate::Loss, None),
            }
        };
        let mut recording = recorder.finish();
        of_tcp.finish(&mut recording);
        let found = recording.connections.into_iter();
        let connections = found.map(|it| Connection::of_senders(it, fate));
        let mut connections: Vec<_> = connections
            .map(|it| DecodedConnection::of(it, epoch))
            .collect();
        connections.sort_by_key(|it| it.connection.start); // of one flow both QUIC and TCP
        connections
    }

    fn path(&self, way: Direction, number: usize) -> Path {
        let [source, destination] = self.ends[number];
        let way_back = Path {
            source,
            destination,
        };
        match way {
            Direction::Return => way_back,
            Direction::Forward => way_back.reversed(),
        }
    }
}

/// The ECN codepoint that a packet arrives with: links mark, and change nothing else.
fn arriving_ecn(packet: &Packet) -> Codepoint {
    if packet.marked {
        return Codepoint::Ce;
    }
    Codepoint::of_bits(packet.ip.ecn)
}
