//! Reads files that may be packed with gzip or zstd. What a file is, its first bytes tell, never
//! its name.
//!
//! A packed file is unpacked as it is read, in bounded memory: what gzip looks back to is 32 KiB,
//! and of zstd 128 MiB at most, as the zstd command allows. Members of gzip and frames of zstd that
//! follow each other are one content. A file that is cut short, or damaged, gives what stands
//! before that, then the [`UnpackError`].
//!
//! Source: RFC 1952 (gzip), RFC 8878 (zstd). The crates `flate2` and `ruzstd` unpack, both in Rust
//! alone: what comes from strangers is read by no C, and nothing more is wanted to build.

mod error;
mod gzip;
mod packing;
mod source;
mod zstd;

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

pub use error::UnpackError;
pub use packing::Packing;

use source::Source;

/// The reader of what a file holds, unpacked.
pub struct Unpacked<R: Read>(Content<R>);

enum Content<R: Read> {
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Gzip(Box<gzip::Members<R>>),
    Zstd(Box<zstd::Frames<R>>),
    /// A packing that is known by name alone.
    Refused(Packing),
}

impl<R: Read> Unpacked<R> {
    /// Looks at the first bytes of `source`, and unpacks it if they are those of a packed file. The
    /// error is that of reading them.
    pub fn new(mut source: R) -> io::Result<Self> {
        let head = packing::head(&mut source)?;
        let packing = Packing::of(&head);
        let whole = Cursor::new(head).chain(source);
        Ok(Self(match packing {
            None => Content::Plain(whole),
            Some(Packing::Gzip) => Content::Gzip(Box::new(gzip::Members::new(Source::new(whole)))),
            Some(Packing::Zstd) => Content::Zstd(Box::new(zstd::Frames::new(Source::new(whole)))),
            Some(other) => Content::Refused(other),
        }))
    }

    /// Whether anything is unpacked.
    #[must_use]
    pub fn is_packed(&self) -> bool {
        !matches!(self.0, Content::Plain(_))
    }
}

/// An error in packed data is an [`io::Error`] that holds an [`UnpackError`].
impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Content::Plain(source) => source.read(buffer),
            Content::Gzip(members) => members.read(buffer),
            Content::Zstd(frames) => frames.read(buffer),
            Content::Refused(packing) => Err(UnpackError::Refused(*packing).into()),
        }
    }
}

/// Opens a file.
pub fn open(file: &Path) -> io::Result<Unpacked<File>> {
    Unpacked::new(File::open(file)?)
}

/// The content of a file, as far as it could be read.
#[derive(Debug)]
pub struct Unpacking {
    /// The bytes that could be read.
    pub bytes: Vec<u8>,
    /// Why there is no more, if there should be.
    pub error: Option<UnpackError>,
}

/// Reads a file into memory, of a packed one as much as can be unpacked. The error is that of the
/// system.
///
/// A packed file may hold `most` bytes. One that is not packed has on disk the size that it has in
/// memory, and no limit here.
pub fn read_part(file: &Path, most: u64) -> io::Result<Unpacking> {
    let mut content = open(file)?;
    let mut bytes = Vec::new();
    let limit = if content.is_packed() { most } else { u64::MAX };
    let mut error = match content.by_ref().take(limit).read_to_end(&mut bytes) {
        Ok(_) => None,
        Err(error) => Some(UnpackError::of(error)?),
    };
    if error.is_none() && bytes.len() as u64 == limit && matches!(content.read(&mut [0]), Ok(1)) {
        error = Some(UnpackError::TooLarge(most));
    }
    Ok(Unpacking { bytes, error })
}

/// Reads a file into memory, all of it. A packed one may hold `most` bytes.
pub fn read(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    let content = read_part(file, most)?;
    match content.error {
        Some(error) => Err(error.into()),
        None => Ok(content.bytes),
    }
}

/// Reads a file of text into memory, all of it. A packed one may hold `most` bytes.
pub fn read_to_string(file: &Path, most: u64) -> io::Result<String> {
    let bytes = read(file, most)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
