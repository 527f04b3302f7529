//! The two pipes to the coordinator (contract, section 4).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

use bytes::BytesMut;

use crate::contract::{HEADER_LEN, decode_header};
use crate::error::EndpointError;

/// Large enough for few reads an epoch, small enough to stay in the processor's cache.
const READ_BYTES: usize = 1 << 18;
/// The largest frame that is believed. No epoch carries more.
const FRAME_LIMIT: usize = 1 << 30;

/// Frames in, frames out.
#[derive(Debug)]
pub struct Pipes<R = File, W = File> {
    from: R,
    to: W,
    scratch: Vec<u8>,
    inbox: BytesMut,
}

impl Pipes {
    /// File descriptors 3 and 4. To be called once, before any file is opened.
    #[must_use]
    #[expect(
        unsafe_code,
        reason = "descriptors that a process is born with have no owner yet"
    )]
    pub fn inherited() -> Self {
        // SAFETY: nothing else in this process owns these two; if they are not open, reading says so.
        unsafe { Self::new(File::from_raw_fd(3), File::from_raw_fd(4)) }
    }
}

impl<R: Read, W: Write> Pipes<R, W> {
    /// Any two streams of bytes.
    pub fn new(from: R, to: W) -> Self {
        Self {
            from,
            to,
            scratch: vec![0; READ_BYTES],
            inbox: BytesMut::new(),
        }
    }

    /// The next frame's type and body; `None` if the coordinator has gone away.
    pub fn receive(&mut self) -> Result<Option<(u8, BytesMut)>, EndpointError> {
        while self.inbox.len() < HEADER_LEN {
            if !self.fill()? {
                return Ok(None);
            }
        }
        let (length, kind) = decode_header(&self.inbox)?;
        if length > FRAME_LIMIT {
            return Err(EndpointError::Conversation(format!(
                "a frame of {length} bytes"
            )));
        }
        // Takes the memory of earlier frames again, once nobody holds on to their datagrams.
        self.inbox
            .reserve((HEADER_LEN + length).saturating_sub(self.inbox.len()));
        while self.inbox.len() < HEADER_LEN + length {
            if !self.fill()? {
                return Ok(None);
            }
        }
        let mut body = self.inbox.split_to(HEADER_LEN + length);
        Ok(Some((kind, body.split_off(HEADER_LEN))))
    }

    /// Sends a whole frame.
    pub fn send(&mut self, frame: &[u8]) -> Result<(), EndpointError> {
        self.to
            .write_all(frame)
            .map_err(EndpointError::io("writing to file descriptor 4"))
    }

    /// Reads what is there; `false` at the end.
    fn fill(&mut self) -> Result<bool, EndpointError> {
        loop {
            match self.from.read(&mut self.scratch) {
                Ok(count) => {
                    self.inbox.extend_from_slice(&self.scratch[..count]);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(EndpointError::io("reading file descriptor 3")(error)),
            }
        }
    }
}
