//! Packed bytes, and how far they were read.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use crate::{Packing, UnpackError};

/// Bytes that are read at once.
const BUFFER: usize = 64 * 1024;

/// Where packed bytes come from.
pub(crate) struct Source<R: Read> {
    buffer: BufReader<Chain<Cursor<Vec<u8>>, R>>,
    /// Bytes that were taken out of it.
    taken: u64,
    /// A read asked for more than there was.
    has_ended: bool,
    /// The system's error at the last read.
    failure: Option<io::Error>,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(source: Chain<Cursor<Vec<u8>>, R>) -> Self {
        Self {
            buffer: BufReader::with_capacity(BUFFER, source),
            taken: 0,
            has_ended: false,
            failure: None,
        }
    }

    /// Why nothing could be unpacked, which somebody who does not know the source calls `what`.
    pub(crate) fn blame(&mut self, packing: Packing, what: &impl ToString) -> io::Error {
        if let Some(failure) = self.failure.take() {
            return failure;
        }
        let at = self.taken;
        let error = if self.has_ended {
            UnpackError::CutShort { packing, at }
        } else {
            let what = what.to_string();
            UnpackError::Damaged { packing, at, what }
        };
        error.into()
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.buffer.fill_buf() {
            Ok(bytes) => {
                self.has_ended |= bytes.is_empty();
                Ok(bytes)
            }
            Err(error) => {
                let kind = error.kind();
                if kind != io::ErrorKind::Interrupted {
                    self.failure = Some(error);
                }
                Err(kind.into())
            }
        }
    }

    fn consume(&mut self, count: usize) {
        self.taken += count as u64;
        self.buffer.consume(count);
    }
}
