//! The ways in which files are packed, and how their first bytes tell them.

use std::fmt;
use std::io::{self, Read};

/// Bytes that are looked at.
const HEAD: u64 = 10;

/// A way in which a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// Known by name alone, as those below.
    Xz,
    /// See above.
    Bzip2,
    /// See above.
    Lz4,
    /// See above.
    Zip,
}

impl Packing {
    /// By the first bytes of a file.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, 8, ..] => Some(Self::Gzip),
            // A frame, or one that is to be skipped.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x31,
                0x41,
                0x59,
                0x26,
                0x53,
                0x59,
            ] => Some(Self::Bzip2),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            [b'P', b'K', 3, 4, ..] => Some(Self::Zip),
            _ => None,
        }
    }

    /// The command that unpacks it.
    pub(crate) fn hint(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -d FILE",
            Self::Zstd => "zstd -d FILE",
            Self::Xz => "xz -d FILE",
            Self::Bzip2 => "bzip2 -d FILE",
            Self::Lz4 => "lz4 -d FILE",
            Self::Zip => "unzip FILE",
        }
    }
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "lz4",
            Self::Zip => "zip",
        })
    }
}

/// The first bytes of a source, which are fewer if it has no more.
pub(crate) fn head(source: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    source.take(HEAD).read_to_end(&mut head)?;
    Ok(head)
}
