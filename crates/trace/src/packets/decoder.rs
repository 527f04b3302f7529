//! Threads that decode: each watches some of the interfaces of a capture, and writes down the
//! packets that it sees.
//!
//! All of them go through every piece of the capture, and each decodes what is its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use bentpipe_wire::capture::{CapturedPacket, Interface, Item, Piece, PieceReader};
use bentpipe_wire::quic::{Observer, Packet, Undecoded};
use bentpipe_wire::{Datagram, KeyLog};

use super::json::{self, Seen};
use crate::summary::Summary;

/// A piece of a capture, and the lines of one decoder's packets in it.
#[derive(Debug, Default)]
pub struct DecodedPiece {
    /// The piece.
    pub piece: Arc<Piece>,
    /// The lines.
    pub text: Vec<u8>,
    /// The captured packets that have lines, each with where in `text` its lines end.
    pub ends: Vec<(usize, usize)>,
}

/// The interfaces of a decoder: one in `of`, from `first` on.
#[derive(Debug, Clone, Copy)]
pub struct InterfaceShare {
    pub first: usize,
    pub of: usize,
}

/// Decodes pieces, until no more come, and sums up.
#[derive(Debug)]
pub struct Decoder<'k> {
    share: InterfaceShare,
    secrets: &'k KeyLog,
    /// The prefix of an interface's name, to tell those of several files apart.
    prefix: String,
    /// Secrets that stood in the capture so far.
    found: Vec<u8>,
    /// The number of the last captured packet.
    frame: usize,
    /// The interfaces that are known; None for those of others.
    interfaces: Vec<Option<InterfaceDecoder<'k>>>,
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
    pub fn new(secrets: &'k KeyLog, share: InterfaceShare, prefix: String) -> Self {
        Self {
            share,
            secrets,
            prefix,
            found: Vec::new(),
            frame: 0,
            interfaces: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// Decodes what is `todo` until nothing more will be, or nobody wants it any more.
    pub fn run(mut self, todo: &Receiver<DecodedPiece>, done: &Sender<DecodedPiece>) -> Summary {
        let mut reader = PieceReader::default();
        for mut work in todo {
            let DecodedPiece { piece, text, ends } = &mut work;
            reader.read(piece.bytes(), |interfaces, item| match item {
                Item::Packet(packet) => {
                    self.frame += 1;
                    let start = text.len();
                    self.add_interfaces(interfaces);
                    self.packet(&packet, text);
                    if start < text.len() {
                        ends.push((self.frame, text.len()));
                    }
                }
                Item::TlsSecrets(secrets) => self.secrets(secrets),
            });
            if done.send(work).is_err() {
                break;
            }
        }
        // Whatever waits cannot be decoded any more, so no line is lost.
        let mut lines = Vec::new();
        for place in self.interfaces.iter_mut().flatten() {
            place.finish(&mut self.summary, &mut lines);
        }
        self.summary
    }

    /// Gives interfaces that are new an observer and a name: their own, or their number.
    fn add_interfaces(&mut self, interfaces: &[Interface]) {
        for (number, interface) in interfaces.iter().enumerate().skip(self.interfaces.len()) {
            let name = interface.name.clone();
            let name = name.unwrap_or_else(|| number.to_string());
            let name = format!("{}{name}", self.prefix);
            let place = (number % self.share.of == self.share.first).then(|| {
                let mut observer = Observer::new(self.secrets);
                observer.add_secrets(&self.found);
                InterfaceDecoder {
                    interface: json::interface(&name),
                    name,
                    observer,
                    datagrams: 0,
                    waiting: HashMap::new(),
                }
            });
            self.interfaces.push(place);
        }
    }

    fn secrets(&mut self, text: &[u8]) {
        for place in self.interfaces.iter_mut().flatten() {
            place.observer.add_secrets(text);
        }
        self.found.extend_from_slice(text);
        self.found.push(b'\n');
    }

    fn packet(&mut self, captured: &CapturedPacket<'_>, text: &mut Vec<u8>) {
        let Some(place) = &mut self.interfaces[captured.interface] else {
            return;
        };
        let frame = self.frame;
        let datagram = match Datagram::of(captured) {
            Ok(datagram) => datagram,
            Err(reason) => return self.summary.no_datagram(frame, reason),
        };
        place.see(&datagram, (frame, captured.time), &mut self.summary, text);
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
