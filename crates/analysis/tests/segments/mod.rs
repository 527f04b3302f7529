//! Captures of TCP segments, crafted.

#![allow(dead_code, reason = "each test uses what it needs")]

use bentpipe_analysis::connection::Connection;
use bentpipe_analysis::{CaptureFile, Captured};
use bentpipe_wire::capture::Input;
use bentpipe_wire::quic::End;
use bentpipe_wire::{KeyLog, Writer};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;
pub const ECE: u8 = 64;
pub const CWR: u8 = 128;
/// In nanoseconds.
pub const MS: i64 = 1_000_000;

const PORTS: [u16; 2] = [50_000, 443];
const ADDRESSES: [[u8; 4]; 2] = [[192, 0, 2, 1], [198, 51, 100, 1]];

/// When a segment left and, unless it was lost, when it arrived, in milliseconds.
#[derive(Clone, Copy)]
pub struct At(pub u32, pub Option<u32>);

#[derive(Clone)]
pub struct Segment {
    sender: End,
    flags: u8,
    sequence: u32,
    acknowledgment: u32,
    window: u16,
    identification: u16,
    options: Vec<u8>,
    length: u16,
    ecn: u8,
    ae: bool,
    /// Client and server.
    ports: [u16; 2],
}

/// A segment with payload.
pub fn data(sender: End, sequence: u32, acknowledgment: u32, length: u16) -> Segment {
    Segment {
        length,
        ..Segment::of(sender, ACK, sequence, acknowledgment)
    }
}

impl Segment {
    pub fn of(sender: End, flags: u8, sequence: u32, acknowledgment: u32) -> Self {
        Self {
            sender,
            flags,
            sequence,
            acknowledgment,
            window: 1024,
            identification: 1,
            options: Vec::new(),
            length: 0,
            ecn: 0,
            ae: false,
            ports: PORTS,
        }
    }

    pub fn window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    pub fn identification(self, identification: u16) -> Self {
        Self {
            identification,
            ..self
        }
    }

    /// Of a connection from this port of the client.
    pub fn client_port(self, port: u16) -> Self {
        let ports = [port, PORTS[1]];
        Self { ports, ..self }
    }

    pub fn flags(mut self, flags: u8) -> Self {
        self.flags |= flags;
        self
    }

    /// The ECN bits of the IP packet.
    pub fn ecn(self, ecn: u8) -> Self {
        Self { ecn, ..self }
    }

    /// With the AE flag.
    pub fn ae(self) -> Self {
        Self { ae: true, ..self }
    }

    /// Adds options, a multiple of four bytes.
    pub fn options(self, options: &[u8]) -> Self {
        Self {
            options: options.to_vec(),
            ..self
        }
    }

    /// The IP packet.
    pub fn bytes(&self) -> Vec<u8> {
        let header = u8::try_from(20 + self.options.len()).unwrap();
        let total = 20 + u16::from(header) + self.length;
        let (from, to) = (self.sender as usize, self.sender.other() as usize);
        let mut packet = vec![0x45, self.ecn];
        packet.extend(total.to_be_bytes());
        packet.extend(self.identification.to_be_bytes());
        packet.extend([0x40, 0, 64, 6, 0, 0]);
        packet.extend(ADDRESSES[from]);
        packet.extend(ADDRESSES[to]);
        packet.extend(self.ports[from].to_be_bytes());
        packet.extend(self.ports[to].to_be_bytes());
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.acknowledgment.to_be_bytes());
        packet.extend([header << 2 | u8::from(self.ae), self.flags]);
        packet.extend(self.window.to_be_bytes());
        packet.extend([0; 4]);
        packet.extend(&self.options);
        packet.resize(usize::from(total), 0);
        packet
    }
}

/// The captures of two sides.
#[derive(Default)]
pub struct Trace {
    seen: Vec<(&'static str, u32, Vec<u8>)>,
}

impl Trace {
    pub fn passes(&mut self, segment: &Segment, At(sent, received): At) {
        let sides = match segment.sender {
            End::Client => ["client", "server"],
            End::Server => ["server", "client"],
        };
        self.only(sides[0], segment, sent);
        if let Some(received) = received {
            self.only(sides[1], segment, received);
        }
    }

    /// Seen at one side.
    pub fn only(&mut self, side: &'static str, segment: &Segment, time: u32) {
        self.seen.push((side, time, segment.bytes()));
    }

    pub fn connections(&self, sides: &[&str]) -> Vec<Connection> {
        let mut seen = self.seen.clone();
        seen.sort_by_key(|(_, time, _)| *time);
        let files: Vec<_> = sides
            .iter()
            .map(|side| {
                let mut writer = Writer::new(Vec::new(), "test").unwrap();
                let interface = writer.interface(side).unwrap();
                for (_, time, packet) in seen.iter().filter(|(at, ..)| at == side) {
                    let time = u64::from(*time) * MS.unsigned_abs();
                    writer.packet(interface, time, packet, None).unwrap();
                }
                writer.finish().unwrap()
            })
            .collect();
        let files: Vec<_> = sides
            .iter()
            .copied()
            .zip(files.iter().map(Vec::as_slice))
            .collect();
        read(&files)
    }

    pub fn only_connection(&self) -> Connection {
        only(self.connections(&["client", "server"]))
    }

    pub fn only_connection_of(&self, side: &str) -> Connection {
        only(self.connections(&[side]))
    }
}

fn only(mut connections: Vec<Connection>) -> Connection {
    assert_eq!(connections.len(), 1);
    connections.remove(0)
}

/// The connections in captures; everything in them must be understood.
pub fn read(files: &[(&str, &[u8])]) -> Vec<Connection> {
    let files: Vec<_> = files
        .iter()
        .map(|(name, bytes)| {
            let input = Input::Memory((*bytes).into());
            CaptureFile { name, input }
        })
        .collect();
    let captured = Captured::read(&files, KeyLog::default(), &|_| {});
    assert!(
        captured.undecodable.is_empty(),
        "{:?}",
        captured.undecodable
    );
    assert!(captured.errors.iter().all(Option::is_none));
    captured.connections
}
