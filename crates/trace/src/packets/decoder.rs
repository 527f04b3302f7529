//! Decodes what passes the interfaces of a capture, and writes down the packets.

use std::collections::HashMap;

use bentpipe_wire::capture::{CapturedPacket, Interface, Item, Piece};
use bentpipe_wire::quic::{Observer, Packet, Scratch, Undecoded};
use bentpipe_wire::{Datagram, KeyLog};

use super::json::{self, Seen};
use crate::summary::Summary;

/// Decodes pieces of a capture, and sums up.
#[derive(Debug)]
pub struct Decoder<'k> {
    secrets: &'k KeyLog,
    /// The prefix of an interface's name, to tell those of several files apart.
    prefix: String,
    /// Secrets that stood in the capture so far.
    found: Vec<u8>,
    /// The number of the last captured packet.
    frame: usize,
    /// The interfaces that are known.
    interfaces: Vec<InterfaceDecoder<'k>>,
    /// The memory that the observers of all interfaces share.
    scratch: Scratch,
    summary: Summary,
}

/// An interface.
#[derive(Debug)]
struct InterfaceDecoder<'k> {
    name: String,
    /// As lines have it.
    interface: String,
    observer: Observer<'k>,
    datagrams: u64,
    /// Number and time of the captured packets with datagrams that packets wait of.
    waiting: HashMap<u64, (usize, Option<u64>)>,
}

impl<'k> Decoder<'k> {
    /// One that has seen nothing.
    pub fn new(secrets: &'k KeyLog, prefix: String) -> Self {
        Self {
            secrets,
            prefix,
            found: Vec::new(),
            frame: 0,
            interfaces: Vec::new(),
            scratch: Scratch::shared(),
            summary: Summary::default(),
        }
    }

    /// Adds the lines of the packets in the next piece to `text`.
    pub fn decode(&mut self, piece: &Piece, text: &mut Vec<u8>) {
        self.add_interfaces(piece.new_interfaces());
        for item in piece.items() {
            match item {
                Item::Packet(packet) => {
                    self.frame += 1;
                    self.packet(&packet, text);
                }
                Item::TlsSecrets(secrets) => self.secrets(secrets),
            }
        }
    }

    /// Sums up when there are no more pieces.
    pub fn finish(mut self) -> Summary {
        // Whatever waits cannot be decoded any more, so no line is lost.
        let mut lines = Vec::new();
        for place in &mut self.interfaces {
            place.finish(&mut self.summary, &mut lines);
        }
        self.summary
    }

    /// Gives interfaces that are new an observer and a name: their own, or their number.
    fn add_interfaces(&mut self, interfaces: &[Interface]) {
        for interface in interfaces {
            let name = interface.name.clone();
            let name = name.unwrap_or_else(|| self.interfaces.len().to_string());
            let name = format!("{}{name}", self.prefix);
            let mut observer = Observer::new(self.secrets);
            observer.add_secrets(&self.found);
            self.interfaces.push(InterfaceDecoder {
                interface: json::interface(&name),
                name,
                observer,
                datagrams: 0,
                waiting: HashMap::new(),
            });
        }
    }

    fn secrets(&mut self, text: &[u8]) {
        for place in &mut self.interfaces {
            place.observer.add_secrets(text);
        }
        self.found.extend_from_slice(text);
        self.found.push(b'\n');
    }

    fn packet(&mut self, captured: &CapturedPacket<'_>, text: &mut Vec<u8>) {
        let place = &mut self.interfaces[captured.interface];
        let frame = self.frame;
        let datagram = match Datagram::of(captured) {
            Ok(datagram) => datagram,
            Err(reason) => return self.summary.no_datagram(frame, reason),
        };
        place.observer.exchange_scratch(&mut self.scratch);
        place.see(&datagram, (frame, captured.time), &mut self.summary, text);
        place.observer.exchange_scratch(&mut self.scratch);
    }
}

impl InterfaceDecoder<'_> {
    fn see(
        &mut self,
        datagram: &Datagram<'_>,
        origin: (usize, Option<u64>),
        summary: &mut Summary,
        text: &mut Vec<u8>,
    ) {
        let mut writer = LineWriter {
            name: &self.name,
            interface: &self.interface,
            waiting: &self.waiting,
            origin,
            summary,
            text,
        };
        self.observer.datagram(datagram, |seen| writer.write(seen));
        if self.observer.waiting().next_back() == Some(self.datagrams) {
            self.waiting.insert(self.datagrams, origin);
        } else if self.observer.waiting().next().is_none() {
            self.waiting.clear();
        }
        self.datagrams += 1;
    }

    /// Tells what waited in vain.
    fn finish(&mut self, summary: &mut Summary, text: &mut Vec<u8>) {
        let mut writer = LineWriter {
            name: &self.name,
            interface: &self.interface,
            waiting: &self.waiting,
            origin: (0, None),
            summary,
            text,
        };
        self.observer.finish(|seen| writer.write(seen));
    }
}

/// Writes down what an observer sees.
struct LineWriter<'a> {
    name: &'a str,
    interface: &'a str,
    waiting: &'a HashMap<u64, (usize, Option<u64>)>,
    /// Number and time of the captured packet.
    origin: (usize, Option<u64>),
    summary: &'a mut Summary,
    text: &'a mut Vec<u8>,
}

impl LineWriter<'_> {
    fn write(&mut self, seen: Result<Packet<'_>, Undecoded>) {
        match seen {
            Ok(packet) => {
                let (frame, time) = self.origin_of(packet.waited_since);
                let seen = Seen {
                    frame,
                    interface: self.interface,
                    time,
                };
                let frames = json::add_line(self.text, &seen, &packet);
                self.summary.packet(frame, packet.kind, frames);
            }
            Err(undecoded) => {
                let (frame, _) = self.origin_of(undecoded.waited_since);
                self.summary.undecoded(frame, self.name, undecoded.reason);
            }
        }
    }

    fn origin_of(&self, waited_since: Option<u64>) -> (usize, Option<u64>) {
        let waited = waited_since.and_then(|since| self.waiting.get(&since));
        // Not among them: it came in this datagram.
        waited.copied().unwrap_or(self.origin)
    }
}
