//! A capture file, read in pieces of whole packets, and unpacked as it is read.
//!
//! A piece is small enough to stay in a core's cache while it is decoded, and its memory is used
//! again: reading takes no more of it for a large file than for a small one.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use bentpipe_unpack::{UnpackError, Unpacked};

use super::{CaptureError, CapturedPacket, Interface, Item, Reader};
use crate::keylog::KeyLog;

/// Bytes of a piece, unless a single packet is larger.
const PIECE: usize = 256 * 1024;

/// An input that can be read from its beginning more than once.
#[derive(Debug)]
pub enum Input<'p> {
    /// A file.
    File(&'p Path),
    /// Bytes in memory, such as those out of a pipe.
    Memory(Cow<'p, [u8]>),
}

/// The error for which an input was not read to its end.
#[derive(Debug)]
pub enum ReadError {
    /// An error in the capture.
    Capture(CaptureError),
    /// An error in its compression.
    Packed(UnpackError),
    /// The system.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capture(error) => error.fmt(f),
            Self::Packed(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        UnpackError::of(error).map_or_else(Self::Io, Self::Packed)
    }
}

impl<'p> Input<'p> {
    /// Looks what `path` is. The error is that of the system.
    pub fn open(path: &'p Path) -> io::Result<Self> {
        if fs::metadata(path)?.is_file() {
            return Ok(Self::File(path));
        }
        Ok(Self::Memory(fs::read(path)?.into()))
    }

    /// Bytes of it, packed as they are. The error is that of the system.
    pub fn size(&self) -> io::Result<u64> {
        match self {
            Self::File(path) => Ok(fs::metadata(path)?.len()),
            Self::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Reads it from its beginning. The error is that of opening it.
    pub fn pieces(&self) -> io::Result<Pieces<'_>> {
        let source: Box<dyn Read> = match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Memory(bytes) => Box::new(&bytes[..]),
        };
        let taken = Rc::new(Cell::new(0));
        let source = Counted {
            source,
            taken: Rc::clone(&taken),
        };
        Ok(Pieces {
            input: Unpacked::new(source)?,
            taken,
            reader: None,
            rest: Vec::new(),
            failure: None,
            has_ended: false,
        })
    }

    /// Whether secrets stand before the first packet. The format wants them before the packets that
    /// need them, so if some do, all are taken to. The error is that of opening it.
    pub fn begins_with_secrets(&self) -> io::Result<bool> {
        let mut piece = Piece::default();
        self.pieces()?.next(&mut piece);
        let first = piece.items().next();
        Ok(matches!(first, Some(Item::TlsSecrets(_))))
    }

    /// Adds the secrets that stand in it, wherever that is. The error is that of opening it; others
    /// are met again when packets are read.
    pub fn add_secrets(&self, secrets: &mut KeyLog) -> io::Result<()> {
        let (mut pieces, mut piece) = (self.pieces()?, Piece::default());
        while pieces.next(&mut piece) {
            for item in piece.items() {
                if let Item::TlsSecrets(text) = item {
                    secrets.add(text);
                }
            }
        }
        Ok(())
    }
}

/// A part of a file: whole packets.
#[derive(Debug, Default)]
pub struct Piece {
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    interfaces: Vec<Interface>,
}

/// Where in the buffer an item is.
#[derive(Debug)]
enum Entry {
    Packet {
        interface: usize,
        time: Option<u64>,
        link_type: u16,
        bytes: Range<usize>,
        comment: Option<Range<usize>>,
    },
    TlsSecrets(Range<usize>),
}

impl Piece {
    /// The items in it, in order.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        self.entries.iter().map(|entry| match entry {
            Entry::Packet {
                interface,
                time,
                link_type,
                bytes,
                comment,
            } => Item::Packet(CapturedPacket {
                interface: *interface,
                time: *time,
                link_type: *link_type,
                bytes: &self.buffer[bytes.clone()],
                comment: comment.clone().map(|it| &self.buffer[it]),
            }),
            Entry::TlsSecrets(text) => Item::TlsSecrets(&self.buffer[text.clone()]),
        })
    }

    /// The interfaces that are described in it, beyond those in the pieces before.
    #[must_use]
    pub fn new_interfaces(&self) -> &[Interface] {
        &self.interfaces
    }
}

impl Entry {
    /// The entry of an item in `buffer`.
    fn of(item: &Item<'_>, buffer: &[u8]) -> Self {
        let range = |part: &[u8]| {
            let start = part.as_ptr().addr() - buffer.as_ptr().addr();
            start..start + part.len()
        };
        match item {
            Item::Packet(packet) => Self::Packet {
                interface: packet.interface,
                time: packet.time,
                link_type: packet.link_type,
                bytes: range(packet.bytes),
                comment: packet.comment.map(range),
            },
            Item::TlsSecrets(text) => Self::TlsSecrets(range(text)),
        }
    }
}

/// A source that counts what is read of it.
struct Counted<'i> {
    source: Box<dyn Read + 'i>,
    taken: Rc<Cell<u64>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.taken.set(self.taken.get() + count as u64);
        Ok(count)
    }
}

/// The pieces of an input, one after the other.
#[expect(missing_debug_implementations, reason = "what it reads from has none")]
pub struct Pieces<'i> {
    input: Unpacked<Counted<'i>>,
    /// Bytes of the input that were read, packed as they are.
    taken: Rc<Cell<u64>>,
    reader: Option<Reader<'static>>,
    /// The beginning of a packet whose end is in the next piece.
    rest: Vec<u8>,
    failure: Option<ReadError>,
    has_ended: bool,
}

impl Pieces<'_> {
    /// Reads the next piece. False if there is none.
    pub fn next(&mut self, piece: &mut Piece) -> bool {
        piece.entries.clear();
        piece.interfaces.clear();
        if self.has_ended {
            return false;
        }
        let filled = self.fill(&mut piece.buffer);
        if filled == 0 && self.failure.is_some() {
            return false;
        }
        let (whole, error) = self.note_items(piece, filled);
        self.rest.clear();
        match error {
            Some(CaptureError::CutShort { .. }) if !self.has_ended => {
                self.rest.extend_from_slice(&piece.buffer[whole..filled]);
            }
            Some(error) => {
                // A packet has no end because the rest could not be unpacked.
                self.failure.get_or_insert(ReadError::Capture(error));
                self.has_ended = true;
            }
            None => {}
        }
        true
    }

    /// Notes what is in the bytes that were read. Tells how many of them that is, and why no more.
    fn note_items(&mut self, piece: &mut Piece, filled: usize) -> (usize, Option<CaptureError>) {
        let buffer = &piece.buffer[..filled];
        let start = self.reader.as_ref().map_or(0, Reader::position);
        let known = self.interfaces().len();
        let mut reader = match self.reader.take() {
            Some(reader) => reader.resume(buffer),
            None => match Reader::new(buffer) {
                Ok(reader) => reader,
                Err(error) => return (0, Some(error)),
            },
        };
        let mut error = None;
        for item in &mut reader {
            match item {
                Ok(item) => piece.entries.push(Entry::of(&item, buffer)),
                Err(reason) => error = Some(reason),
            }
        }
        piece
            .interfaces
            .extend_from_slice(&reader.interfaces()[known..]);
        let read = reader.position() - start;
        self.reader = Some(reader.resume(&[]));
        (read, error)
    }

    /// The interfaces that were described so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        self.reader.as_ref().map_or(&[], Reader::interfaces)
    }

    /// How many of the input's [`Input::size`] bytes were read.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.taken.get()
    }

    /// The error for which the input could not be read to its end.
    #[must_use]
    pub fn failure(self) -> Option<ReadError> {
        self.failure
    }

    /// Puts what was left and what comes next into `buffer`, and tells how much that is. If it
    /// cannot be read further, what was read before counts.
    fn fill(&mut self, buffer: &mut Vec<u8>) -> usize {
        let size = PIECE.max(2 * self.rest.len());
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        let mut filled = self.rest.len();
        buffer[..filled].copy_from_slice(&self.rest);
        while filled < buffer.len() && !self.has_ended {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => self.has_ended = true,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error.into());
                    self.has_ended = true;
                }
            }
        }
        filled
    }
}
