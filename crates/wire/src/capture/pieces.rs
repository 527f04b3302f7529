//! A capture file, read in pieces of whole packets, and unpacked as it is read.
//!
//! A piece is small enough to stay in a core's cache while it is decoded, and its memory is used
//! again: reading takes no more of it for a large file than for a small one.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use bentpipe_unpack::{UnpackError, Unpacked};

use super::{CaptureError, Interface, Item, Reader};
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

    /// Reads it from its beginning. The error is that of opening it.
    pub fn pieces(&self) -> io::Result<Pieces<'_>> {
        let source: Box<dyn Read> = match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Memory(bytes) => Box::new(&bytes[..]),
        };
        Ok(Pieces {
            input: Unpacked::new(source)?,
            reader: PieceReader::default(),
            rest: Vec::new(),
            failure: None,
            has_ended: false,
        })
    }

    /// Whether secrets stand before the first packet. The format wants them before the packets that
    /// need them, so if some do, all are taken to. The error is that of opening it.
    pub fn begins_with_secrets(&self) -> io::Result<bool> {
        let mut first = None;
        self.pieces()?.next(&mut Piece::default(), |item| {
            first.get_or_insert(matches!(item, Item::TlsSecrets(_)));
        });
        Ok(first == Some(true))
    }

    /// Adds the secrets that stand in it, wherever that is. The error is that of opening it; others
    /// are met again when packets are read.
    pub fn add_secrets(&self, secrets: &mut KeyLog) -> io::Result<()> {
        let (mut pieces, mut piece) = (self.pieces()?, Piece::default());
        let mut look = |item: Item<'_>| {
            if let Item::TlsSecrets(text) = item {
                secrets.add(text);
            }
        };
        while pieces.next(&mut piece, &mut look) {}
        Ok(())
    }
}

/// A part of a file.
#[derive(Debug, Default)]
pub struct Piece {
    buffer: Vec<u8>,
    length: usize,
}

impl Piece {
    /// Its bytes: those of whole packets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

/// The pieces of an input, one after the other.
#[expect(missing_debug_implementations, reason = "what it reads from has none")]
pub struct Pieces<'i> {
    input: Unpacked<Box<dyn Read + 'i>>,
    reader: PieceReader,
    /// The beginning of a packet whose end is in the next piece.
    rest: Vec<u8>,
    failure: Option<ReadError>,
    has_ended: bool,
}

impl Pieces<'_> {
    /// Reads the next piece and shows `look` what is in it. False if there is none.
    pub fn next(&mut self, piece: &mut Piece, mut look: impl FnMut(Item<'_>)) -> bool {
        if self.has_ended {
            return false;
        }
        let filled = self.fill(&mut piece.buffer);
        if filled == 0 && self.failure.is_some() {
            return false;
        }
        let (whole, error) = self
            .reader
            .read(&piece.buffer[..filled], |_, item| look(item));
        piece.length = whole;
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

    /// The interfaces that were described so far.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        self.reader.reader.as_ref().map_or(&[], Reader::interfaces)
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

/// A reader that goes from piece to piece.
#[derive(Debug, Default)]
pub struct PieceReader {
    reader: Option<Reader<'static>>,
}

impl PieceReader {
    /// Shows `look` every item of the next piece, with the interfaces that are known by then. Tells
    /// how many bytes of it were read, and why no more.
    pub fn read<'a>(
        &mut self,
        piece: &'a [u8],
        mut look: impl FnMut(&[Interface], Item<'a>),
    ) -> (usize, Option<CaptureError>) {
        let start = self.reader.as_ref().map_or(0, Reader::position);
        let mut reader = match self.reader.take() {
            Some(reader) => reader.resume(piece),
            None => match Reader::new(piece) {
                Ok(reader) => reader,
                Err(error) => return (0, Some(error)),
            },
        };
        let mut error = None;
        while let Some(item) = reader.next() {
            match item {
                Ok(item) => look(reader.interfaces(), item),
                Err(reason) => error = Some(reason),
            }
        }
        let read = reader.position() - start;
        self.reader = Some(reader.resume(&[]));
        (read, error)
    }
}
