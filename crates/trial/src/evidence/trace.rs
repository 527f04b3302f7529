//! Writes the packet log of a hop as a trace: both sides, nanosecond times, TLS secrets inside.
//!
//! Packets stand in the order in which they were sent, each followed at once by its arrival on the
//! other side, and by those of its copies. In order of time, arrivals would stand between packets
//! sent hundreds of milliseconds later, and Wireshark, which keeps one key phase per direction,
//! would lose the thread at the first key update.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::path::Path;

use bentpipe_analysis::connection as trace;
use bentpipe_link::{Direction, Fate, HostName};
use bentpipe_wire::{Endpoints, Interface, IpHeader, Writer, encapsulate, mark};

use super::{IpPacket, Packet, PacketLog, Transport};

/// The trace of a hop: what it is made of.
#[derive(Debug)]
pub struct HopTrace<'a> {
    /// The program that writes it.
    pub program: &'static str,
    /// The hosts at both ends of the hop.
    pub hosts: [HostName; 2],
    /// The packets.
    pub log: &'a PacketLog,
    /// The TLS secrets.
    pub key_log: &'a [u8],
    /// Addresses of each flow at both ends, of each of its paths.
    pub ends: Vec<Vec<[SocketAddr; 2]>>,
}

impl HopTrace<'_> {
    /// Writes the trace to `path`.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut writer = Writer::new(
            BufWriter::with_capacity(1 << 20, File::create(path)?),
            self.program,
        )?;
        let client = writer.interface(self.hosts[0].name())?;
        let server = writer.interface(self.hosts[1].name())?;
        if !self.key_log.is_empty() {
            writer.tls_secrets(self.key_log)?;
        }
        let mut bytes = Vec::new();
        for entry in self.entries(client, server) {
            let packet = &self.log.packets()[entry.packet];
            let [client_end, server_end] = self.ends[packet.flow][packet.path];
            let (source, destination) = match packet.direction {
                Direction::Return => (client_end, server_end),
                Direction::Forward => (server_end, client_end),
            };
            let ends = Endpoints {
                source,
                destination,
            };
            // The IPv4 identification ties both entries of a packet together; it wraps, as it does
            // in life.
            let identification = u16::try_from(entry.packet & 0xffff).expect("masked to 16 bits");
            write_packet(&mut bytes, &packet.ip, ends, identification);
            if entry.is_marked {
                mark(&mut bytes);
            }
            writer.packet(
                entry.interface,
                self.log.epoch_unix_ns() + entry.time,
                &bytes,
                entry.comment,
            )?;
        }
        writer.finish()?;
        Ok(())
    }

    /// Every packet where it was seen: by the time of sending, its arrival right behind.
    fn entries(&self, client: Interface, server: Interface) -> Vec<TraceEntry> {
        let packets = self.log.packets();
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|&number| packets[number].sent);
        let mut entries = Vec::with_capacity(2 * order.len());
        for packet in order {
            let Packet {
                direction,
                sent,
                fate,
                marked,
                copies,
                ..
            } = &packets[packet];
            let (from, to) = match direction {
                Direction::Return => (client, server),
                Direction::Forward => (server, client),
            };
            entries.push(TraceEntry {
                time: sent.as_nanos(),
                interface: from,
                comment: match fate {
                    Fate::Delivered { .. } => None,
                    Fate::QueueDrop => Some(trace::Fate::QueueDrop.name()),
                    Fate::Loss => Some(trace::Fate::Loss.name()),
                },
                packet,
                is_marked: false,
            });
            let first = match fate {
                Fate::Delivered { at } => Some((*at, *marked)),
                _ => None,
            };
            let further = copies.iter().map(|it| (it.at, it.marked));
            entries.extend(
                first
                    .into_iter()
                    .chain(further)
                    .map(|(at, is_marked)| TraceEntry {
                        time: at.as_nanos(),
                        interface: to,
                        comment: None,
                        packet,
                        is_marked,
                    }),
            );
        }
        entries
    }
}

/// Writes an IP packet with the headers that it crossed the hop with into `bytes`.
fn write_packet(bytes: &mut Vec<u8>, ip: &IpPacket, ends: Endpoints, identification: u16) {
    match &ip.transport {
        Transport::Udp(payload) => encapsulate(bytes, ends, ip.ecn, identification, payload),
        other => IpHeader {
            source: ends.source.ip(),
            destination: ends.destination.ip(),
            ecn: ip.ecn,
            identification,
            protocol: other.protocol(),
        }
        .write(bytes, other.content()),
    }
}

#[derive(Debug)]
struct TraceEntry {
    time: u64,
    interface: Interface,
    /// The fate of a packet that did not arrive. Wireshark shows it, and analysis needs it.
    comment: Option<&'static str>,
    packet: usize,
    /// Whether it is an arrival with a mark that the packet was sent without.
    is_marked: bool,
}
