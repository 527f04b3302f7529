//! The two sides of a stream between noq and the library of HTTP/3.

use std::task::Waker;

use bentpipe_endpoint::{Reassembly, ReassemblyError};
use bytes::Bytes;
use noq_proto::{Connection, FinishError, ReadError, StreamId, VarInt, WriteError};

/// The bytes that a stream may bring that are of no use yet: the library of HTTP/3 keeps a frame
/// until it is whole, and a frame may be said to be of any length.
const MOST_UNUSED: usize = 256 << 10;

/// The bytes that keeping a piece of a stream costs besides its content.
const PIECE_OVERHEAD: usize = 128;

/// A piece of fewer bytes is copied: it would keep the whole datagram in which it came.
const WORTH_ITS_DATAGRAM: usize = 512;

/// The reason for which a stream cannot be used any longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The peer reset it, or asked to stop it, with this error code.
    ByPeer(u64),
    /// This side has closed it.
    NotOpen,
}

/// The receiving side of a stream.
#[derive(Default)]
pub struct Receiving {
    pieces: Reassembly,
    /// How many pieces there are.
    count: usize,
    /// Bytes that were handed over since something came of them.
    pub unused: usize,
    /// How it ends behind what has come; what is there comes first.
    pub end: Option<Result<(), End>>,
    is_too_much: bool,
    pub waiting: Option<Waker>,
}

/// The sending side of a stream.
#[derive(Default)]
pub struct Sending {
    pub unsent: Bytes,
    pub finish: bool,
    pub reset: Option<u64>,
    pub failed: Option<End>,
    /// Set where nobody will send more, nor ask what became of it.
    pub is_left: bool,
    pub waiting: Option<Waker>,
}

/// Has a task go on that waits.
pub fn wake(waiting: &mut Option<Waker>) {
    if let Some(waker) = waiting.take() {
        waker.wake();
    }
}

pub fn stream_id(id: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(id).expect("a stream ID comes from the library"))
}

pub fn error_code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

impl Receiving {
    /// Takes out what has come, as long as this holds no more than `most` bytes.
    pub fn read(&mut self, connection: &mut Connection, id: u64, most: usize) {
        if self.end.is_some() {
            return;
        }
        let mut receiver = connection.recv_stream(stream_id(id));
        // Unordered: in order, many gaps make the library close the connection.
        let Ok(mut chunks) = receiver.read(false) else {
            self.end = Some(Err(End::NotOpen));
            wake(&mut self.waiting);
            return;
        };
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if self.insert(chunk.offset, chunk.bytes).is_err() || self.held() > most {
                        self.is_too_much = true;
                        break None;
                    }
                }
                Ok(None) => break Some(Ok(())),
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(code)) => break Some(Err(End::ByPeer(code.into_inner()))),
            }
        };
        // Whether flow control credit is to be sent, the next poll finds out by itself.
        let _ = chunks.finalize();
        self.end = end;
        wake(&mut self.waiting);
    }

    fn insert(&mut self, offset: u64, bytes: Bytes) -> Result<(), ReassemblyError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let bytes = if bytes.len() < WORTH_ITS_DATAGRAM {
            Bytes::copy_from_slice(&bytes)
        } else {
            bytes
        };
        self.count += 1;
        self.pieces.insert(offset, bytes)
    }

    /// The bytes that this keeps, with what keeping them costs.
    pub fn held(&self) -> usize {
        self.pieces.occupied() + self.count * PIECE_OVERHEAD
    }

    /// The bytes that come next in order.
    pub fn take(&mut self) -> Option<Bytes> {
        let bytes = self.pieces.pop()?;
        self.count -= 1;
        self.unused += bytes.len();
        Some(bytes)
    }

    /// Whether the peer has this side keep more than any of its messages takes.
    pub fn is_excessive(&self) -> bool {
        self.is_too_much || self.unused > MOST_UNUSED
    }
}

impl Sending {
    /// Carries what is to be sent to the connection; says whether who waits may go on.
    pub fn carry(&mut self, connection: &mut Connection, id: u64) -> bool {
        let mut stream = connection.send_stream(stream_id(id));
        if let Some(code) = self.reset.take() {
            // A stream that is closed already needs no reset.
            let _ = stream.reset(error_code(code));
            self.failed = Some(End::NotOpen);
        }
        while !self.unsent.is_empty() && self.failed.is_none() {
            match stream.write_chunks(&mut std::slice::from_mut(&mut self.unsent)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return false,
                Err(WriteError::Stopped(code)) => {
                    self.failed = Some(End::ByPeer(code.into_inner()));
                }
                Err(WriteError::ClosedStream) => self.failed = Some(End::NotOpen),
            }
        }
        if std::mem::take(&mut self.finish) && self.failed.is_none() {
            self.failed = match stream.finish() {
                Ok(()) => None,
                Err(FinishError::Stopped(code)) => Some(End::ByPeer(code.into_inner())),
                Err(FinishError::ClosedStream) => Some(End::NotOpen),
            };
        }
        let waits = self.waiting.is_some();
        wake(&mut self.waiting);
        waits
    }
}
