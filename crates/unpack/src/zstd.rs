//! Files of zstd: frames, one after the other.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::Packing;
use crate::source::Source;

/// An empty block that is the last of its frame, and place for a checksum (RFC 8878 section 3.1.1).
/// Put behind what could be read of a frame, it gives what the decoder keeps to look back to.
const END_OF_FRAME: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// The content of all frames.
pub(crate) struct Frames<R: Read> {
    source: Source<R>,
    decoder: FrameDecoder,
    is_inside: bool,
    /// Why the frame could not be read to its end.
    failure: Option<io::Error>,
}

impl<R: Read> Frames<R> {
    pub(crate) fn new(source: Source<R>) -> Self {
        Self {
            source,
            decoder: FrameDecoder::new(),
            is_inside: false,
            failure: None,
        }
    }

    /// Begins the next frame; false if there is none.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => {
                    self.is_inside = true;
                    return Ok(true);
                }
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => self.skip(length.into())?,
                Err(error) => return Err(self.source.blame(Packing::Zstd, &error)),
            }
        }
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        if skipped < length {
            return Err(self.source.blame(Packing::Zstd, &"a frame to be skipped"));
        }
        Ok(())
    }

    fn decode(&mut self) {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        if let Err(error) = self.decoder.decode_blocks(&mut self.source, one) {
            self.failure = Some(self.source.blame(Packing::Zstd, &error));
            let all = BlockDecodingStrategy::All;
            let end = self.decoder.decode_blocks(&END_OF_FRAME[..], all);
            self.is_inside = end.is_ok();
        }
    }

    /// Ends a frame of which everything was read.
    fn end(&mut self) -> io::Result<()> {
        self.is_inside = false;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let given = self.decoder.get_checksum_from_data();
        if given.is_some() && given != self.decoder.get_calculated_checksum() {
            return Err(self.source.blame(Packing::Zstd, &"wrong checksum"));
        }
        Ok(())
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.is_inside && self.decoder.can_collect() > 0 {
                return self.decoder.read(buffer);
            }
            if self.is_inside && !self.decoder.is_finished() {
                self.decode();
            } else if self.is_inside || self.failure.is_some() {
                self.end()?;
            } else if !self.begin()? {
                return Ok(0);
            }
        }
    }
}
