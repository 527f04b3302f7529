//! Reads capture files: pcapng and classic pcap.
//!
//! A file is read from memory, in place, as a whole or in pieces ([`Pieces`]). The reader is our
//! own, as the writer is: the published crate knows no Decryption Secrets Blocks, without which our
//! traces are of no use. A file that is cut short, or has garbage from some byte on, gives what
//! stands before that, then an error that says where and why reading stopped.

mod pcap;
mod pcapng;
mod pieces;
pub mod writer;

pub use pieces::{Input, Piece, Pieces, ReadError};

/// A packet as it was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Index into [`Reader::interfaces`].
    pub interface: usize,
    /// Nanoseconds since the Unix epoch; none in a Simple Packet Block.
    pub time: Option<u64>,
    /// `LINKTYPE_*` number of what `bytes` begins with.
    pub link_type: u16,
    /// The captured bytes of the packet.
    pub bytes: &'a [u8],
    /// The comment on it: `opt_comment` of pcapng, the first if there are several. Meant to be
    /// UTF-8.
    pub comment: Option<&'a [u8]>,
}

/// An item of a capture, as a reader comes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A packet.
    Packet(CapturedPacket<'a>),
    /// TLS secrets in NSS key log format.
    TlsSecrets(&'a [u8]),
}

/// An interface on which packets were captured. Each is a separate observer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name, if the file gives one.
    pub name: Option<String>,
    link_type: u16,
    clock: Clock,
}

/// The error that ends the reading of a file: why it could not be read further, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CaptureError {
    /// Neither format.
    #[error(
        "not a capture file: it begins with neither the magic number of pcapng nor that of pcap"
    )]
    NotACapture,
    /// The file ends inside a block or a packet.
    #[error("byte {offset}: the file is cut short: {what} begins here and its end is missing")]
    CutShort {
        /// Byte of the file at which the incomplete part begins.
        offset: usize,
        /// The incomplete part.
        what: &'static str,
    },
    /// A part that no capture can have.
    #[error("byte {offset}: garbage: {what}")]
    Garbage {
        /// Byte of the file at which the part begins that makes no sense.
        offset: usize,
        /// The flaw.
        what: &'static str,
    },
}

/// The reader of a capture file from beginning to end. After an error there is nothing more.
///
/// A file need not be in memory as a whole: see [`Reader::resume`].
#[derive(Debug)]
pub struct Reader<'a> {
    format: Format<'a>,
    interfaces: Vec<Interface>,
    has_ended: bool,
}

#[derive(Debug)]
enum Format<'a> {
    Pcapng(pcapng::Blocks<'a>),
    Pcap(pcap::Records<'a>),
}

/// The part of a file that is in memory.
#[derive(Debug, Clone, Copy)]
struct Part<'a> {
    bytes: &'a [u8],
    /// Byte of the file at which `bytes` begins.
    start: usize,
    /// How much of `bytes` was read.
    at: usize,
}

impl<'a> Part<'a> {
    /// The bytes that are not yet read.
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Byte of the file up to which was read.
    fn position(&self) -> usize {
        self.start + self.at
    }

    fn followed_by<'b>(&self, bytes: &'b [u8]) -> Part<'b> {
        Part {
            bytes,
            start: self.position(),
            at: 0,
        }
    }
}

impl<'a> Reader<'a> {
    /// Begins to read a file, whose format its first bytes tell.
    pub fn new(file: &'a [u8]) -> Result<Self, CaptureError> {
        let mut interfaces = Vec::new();
        let part = Part {
            bytes: file,
            start: 0,
            at: 0,
        };
        let format = if file.starts_with(&pcapng::SECTION_HEADER.to_be_bytes()) {
            Format::Pcapng(pcapng::Blocks::new(part))
        } else {
            let (records, interface) = pcap::Records::new(part)?;
            interfaces.push(interface);
            Format::Pcap(records)
        };
        Ok(Self {
            format,
            interfaces,
            has_ended: false,
        })
    }

    /// The interfaces that were described so far, of all sections.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Byte of the file up to which was read. If the file is cut short, what begins here is
    /// incomplete.
    #[must_use]
    pub fn position(&self) -> usize {
        match &self.format {
            Format::Pcapng(blocks) => blocks.part.position(),
            Format::Pcap(records) => records.part.position(),
        }
    }

    /// Reads on in `bytes`, which are those of the file from [`Reader::position`] on.
    ///
    /// So a file is read piece by piece: where a piece ends inside a packet, the reader says that
    /// it is cut short; the next piece begins with that packet.
    #[must_use]
    pub fn resume(self, bytes: &[u8]) -> Reader<'_> {
        Reader {
            format: match self.format {
                Format::Pcapng(blocks) => Format::Pcapng(blocks.resume(bytes)),
                Format::Pcap(records) => Format::Pcap(records.resume(bytes)),
            },
            interfaces: self.interfaces,
            has_ended: false,
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Item<'a>, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let next = match &mut self.format {
            Format::Pcapng(blocks) => blocks.next_item(&mut self.interfaces),
            Format::Pcap(records) => records.next_item(&self.interfaces[0]),
        };
        self.has_ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// The byte order that a file was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteOrder {
    Big,
    Little,
}

impl ByteOrder {
    /// The field of 16 bits at `at`, which must be inside.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = [bytes[at], bytes[at + 1]];
        match self {
            Self::Big => u16::from_be_bytes(field),
            Self::Little => u16::from_le_bytes(field),
        }
    }

    /// The field of 32 bits at `at`, which must be inside.
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Big => u32::from_be_bytes(field),
            Self::Little => u32::from_le_bytes(field),
        }
    }

    /// The field of 32 bits at `at` as a length.
    fn length(self, bytes: &[u8], at: usize) -> usize {
        usize::try_from(self.u32(bytes, at)).unwrap_or(usize::MAX)
    }
}

/// The unit and the origin of an interface's time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clock {
    ticks_per_second: u128,
    offset_seconds: i64,
}

impl Clock {
    const MICROSECONDS: Self = Self::decimal(1_000_000);
    const NANOSECONDS: Self = Self::decimal(1_000_000_000);

    const fn decimal(ticks_per_second: u128) -> Self {
        Self {
            ticks_per_second,
            offset_seconds: 0,
        }
    }

    /// Nanoseconds since the Unix epoch, cut off where the clock is finer. None outside the years
    /// 1970 to 2554.
    fn nanoseconds(self, ticks: u64) -> Option<u64> {
        const SECOND: u64 = 1_000_000_000;
        if self == Self::NANOSECONDS {
            return Some(ticks);
        }
        let since = u128::from(ticks) * u128::from(SECOND) / self.ticks_per_second;
        let offset = i128::from(self.offset_seconds) * i128::from(SECOND);
        u64::try_from(i128::try_from(since).ok()? + offset).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_powers_of_two_and_with_an_offset() {
        let clock = Clock {
            ticks_per_second: 1 << 20,
            offset_seconds: 10,
        };
        assert_eq!(clock.nanoseconds(3 << 19), Some(11_500_000_000));
        let before = Clock {
            offset_seconds: -1,
            ..Clock::MICROSECONDS
        };
        assert_eq!(before.nanoseconds(999_999), None);
        assert_eq!(Clock::MICROSECONDS.nanoseconds(1), Some(1000));
    }

    #[test]
    fn other_files_are_refused() {
        for file in [&b""[..], b"\n\r\r", b"PK\x03\x04 a zip file, not a capture"] {
            assert_eq!(Reader::new(file).unwrap_err(), CaptureError::NotACapture);
        }
    }
}
