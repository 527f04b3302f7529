//! One direction of a stream.
//!
//! Data are read as they come and put into their order here: in order, the library gives up a
//! connection whose stream has more than 1024 gaps (`docs/upstream/gaps.md`). They are written at
//! once.

use bentpipe_endpoint::Reassembly;
use bytes::Bytes;
use noq_proto::{Connection, FinishError, ReadError, StreamId, VarInt, WriteError};

use super::close::CloseCode;
use super::ends::RelayEnds;

/// Read at once: what was merged in the library while it waited may be as large as the window.
const LARGEST_PIECE: usize = 1 << 16;

/// The relay of one stream in one direction.
#[derive(Default)]
pub struct StreamRelay {
    /// The text that was read.
    pub pieces: Reassembly,
    /// The rest of a piece that was written in part.
    rest: Bytes,
    end: Option<End>,
}

/// The end of a stream where it came from.
#[derive(Debug, Clone, Copy)]
enum End {
    Finished,
    Reset(VarInt),
}

/// The progress that relaying a stream made.
pub enum StreamProgress {
    /// More may come, or more may be taken later.
    Open,
    /// Available data cannot be read because too little capacity is left.
    BufferFull {
        /// It waits for bytes that have not come, not for the other side.
        has_gap: bool,
    },
    /// All is handed over, and so is the end.
    Done,
    /// The other side wants no more.
    Stopped(VarInt),
}

impl StreamRelay {
    /// Bytes that were read and not yet written.
    pub fn held(&self) -> usize {
        self.pieces.occupied() + self.rest.len()
    }

    /// Relays available data, and adds to `carried` the bytes written; it may hold `capacity`
    /// bytes.
    pub fn carry(
        &mut self,
        ends: &mut RelayEnds<'_>,
        id: StreamId,
        capacity: usize,
        carried: &mut u64,
    ) -> StreamProgress {
        let mut full = None;
        let mut taken = self.write(ends.to, id, carried);
        if let (Ok(_), Some(from), None) = (taken, &mut ends.from, self.end)
            && let Ok(mut chunks) = from.recv_stream(id).read(false)
        {
            while let Ok(all) = taken {
                // A piece of no length says what comes next, and leaves it there.
                let is_full = self.held() > 0 && self.held() >= capacity;
                let most = if is_full { 0 } else { LARGEST_PIECE };
                let chunk = match chunks.next(most) {
                    Ok(Some(chunk)) if !is_full => chunk,
                    Ok(Some(next)) if all && next.offset == self.pieces.next() => {
                        match chunks.next(LARGEST_PIECE) {
                            Ok(Some(chunk)) => chunk,
                            _ => break,
                        }
                    }
                    Ok(Some(_)) => {
                        full = Some(StreamProgress::BufferFull { has_gap: all });
                        break;
                    }
                    other => {
                        self.end = end(other.err().as_ref());
                        break;
                    }
                };
                self.take(chunk);
                if self.end.is_some() {
                    break;
                }
                taken = self.write(ends.to, id, carried);
            }
            // Whether flow control credit is to be sent, the next poll finds out by itself.
            let _ = chunks.finalize();
        }
        match (taken, self.end) {
            (Err(code), _) => StreamProgress::Stopped(code),
            (Ok(_), Some(End::Reset(code))) => {
                // One that was stopped has been reset already.
                let _ = ends.to.send_stream(id).reset(code);
                StreamProgress::Done
            }
            (Ok(true), Some(End::Finished)) => match ends.to.send_stream(id).finish() {
                Ok(()) | Err(FinishError::ClosedStream) => StreamProgress::Done,
                Err(FinishError::Stopped(code)) => StreamProgress::Stopped(code),
            },
            _ => full.unwrap_or(StreamProgress::Open),
        }
    }

    fn take(&mut self, chunk: noq_proto::Chunk) {
        // The buffer is as large as limits allow; the configured window may be larger. Data that
        // cannot be kept must not be lost unnoticed.
        if self.pieces.insert(chunk.offset, chunk.bytes).is_err() {
            let code = VarInt::try_from(CloseCode::Buffer.value()).unwrap_or(VarInt::MAX);
            self.end = Some(End::Reset(code));
        }
    }

    /// Writes what there is in order; whether all of that was taken, or with which code the peer
    /// stopped the stream.
    fn write(
        &mut self,
        to: &mut Connection,
        id: StreamId,
        carried: &mut u64,
    ) -> Result<bool, VarInt> {
        loop {
            if self.rest.is_empty() {
                match self.pieces.pop() {
                    Some(piece) => self.rest = piece,
                    None => return Ok(true),
                }
            }
            let pieces = &mut std::slice::from_mut(&mut self.rest);
            match to.send_stream(id).write_chunks(pieces) {
                Ok(bytes) => *carried += bytes as u64,
                Err(WriteError::Blocked) => return Ok(false),
                Err(WriteError::Stopped(code)) => return Err(code),
                Err(WriteError::ClosedStream) => return Err(VarInt::from_u32(0)),
            }
        }
    }

    /// Reads all that has come, whatever the limits.
    pub fn read_all(&mut self, from: &mut Connection, id: StreamId) {
        if self.end.is_some() {
            return;
        }
        let mut receiver = from.recv_stream(id);
        let Ok(mut chunks) = receiver.read(false) else {
            return;
        };
        self.end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    self.take(chunk);
                    if self.end.is_some() {
                        break self.end;
                    }
                }
                other => break end(other.err().as_ref()),
            }
        };
        let _ = chunks.finalize();
    }
}

/// The end of the stream, where there is no further piece.
fn end(error: Option<&ReadError>) -> Option<End> {
    match error {
        None => Some(End::Finished),
        Some(ReadError::Reset(code)) => Some(End::Reset(*code)),
        Some(ReadError::Blocked) => None,
    }
}
