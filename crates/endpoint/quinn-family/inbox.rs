//! Stream data as they come: taken out of the library after each datagram, put into their order here.
//!
//! In order, the library keeps what comes after a gap itself, and closes the connection when that is more than 1024 pieces:
//! "too many gaps in stream buffer". A queue that overflows and drops every other packet leaves that many. Unordered, it keeps nothing, if
//! one reads at once. `docs/upstream` has the reports.
//!
//! noq's library has a defect that this cannot avoid (`docs/upstream/noq-unordered.md`): if a datagram brings more than 22
//! pieces of a stream, it may lose those that were sent again, and then the stream never ends. [`Inbox::suspect`] finds out.

use std::collections::BTreeMap;

use bentpipe_endpoint::{
    Closing, ConnectionKey, EndpointError, Event, Options, Read, Reassembly, ReassemblyError,
    StreamEnd, StreamKey,
};
use bytes::Bytes;

use crate::adapter::stream_id;
use crate::dialect;
use crate::proto::{Chunks, Connection, ReadError};

/// The library compacts what it holds when its datagrams exceed what it holds of them by this many bytes; that many of the
/// largest datagrams that it accepts.
const CROWDED: usize = 32_768 / 1472 + 1;

/// How streams are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// In order, as the library keeps them.
    Ordered,
    /// As they come.
    Unordered,
}

impl Reading {
    /// Takes `reading` out of the variant's options.
    pub fn take(options: &mut Options) -> Result<Self, EndpointError> {
        match options.take("reading").as_deref() {
            None => Ok(dialect::READING),
            Some("ordered") => Ok(Self::Ordered),
            Some("unordered") => Ok(Self::Unordered),
            Some(other) => {
                let what = format!("option reading = {other:?}: write ordered or unordered");
                Err(EndpointError::Unsupported(what))
            }
        }
    }
}

/// What was taken out of the library and not read yet.
#[derive(Debug, Default)]
pub struct Inbox {
    streams: BTreeMap<(ConnectionKey, StreamKey), Inbound>,
}

#[derive(Debug, Default)]
struct Inbound {
    pieces: Reassembly,
    /// How the stream ended.
    end: Option<Result<Read, StreamEnd>>,
    /// Whether a datagram had so many of its frames that the library may have lost some.
    crowded: bool,
}

impl Inbox {
    /// Takes out what a datagram has brought that led to these `events` of the connection `key`.
    ///
    /// Says in words why the connection cannot go on, if that is so.
    pub fn follow<'a>(
        &mut self,
        connection: &mut Connection,
        key: ConnectionKey,
        events: impl Iterator<Item = &'a mut Event>,
    ) -> Result<(), String> {
        // The library reports every STREAM frame.
        let mut frames = BTreeMap::new();
        for event in events {
            match event {
                Event::Opened(_, stream) | Event::Readable(_, stream) => {
                    *frames.entry(*stream).or_insert(0) += 1;
                }
                Event::Closed(_, closing) if *closing == Closing::IdleTimeout => {
                    if let Some(why) = self.suspect(key) {
                        *closing = Closing::Error(why);
                    }
                }
                _ => {}
            }
        }
        for (stream, frames) in frames {
            let taken = self.take(connection, (key, stream), frames);
            taken.map_err(|why| format!("stream {}: {why}", stream.0))?;
        }
        Ok(())
    }

    /// Takes out what a datagram with so many STREAM frames of this stream has brought.
    fn take(
        &mut self,
        connection: &mut Connection,
        key: (ConnectionKey, StreamKey),
        frames: usize,
    ) -> Result<(), ReassemblyError> {
        let mut receiver = connection.recv_stream(stream_id(key.1));
        // What is closed has been read, or nobody wants it.
        let Ok(mut chunks) = receiver.read(false) else {
            return Ok(());
        };
        let inbound = self.streams.entry(key).or_default();
        let taken = inbound.fill(&mut chunks);
        // Whether flow control credit is to be sent, the next poll finds out by itself.
        let _ = chunks.finalize();
        let pieces = taken?;
        inbound.crowded |= dialect::MAY_LOSE_PIECES && frames >= CROWDED && pieces < frames;
        Ok(())
    }

    /// Hands on what is there, in order.
    pub fn read(
        &mut self,
        connection: &mut Connection,
        key: (ConnectionKey, StreamKey),
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        let Some(inbound) = self.streams.get_mut(&key) else {
            // Opened by a stream with a higher number, and empty so far.
            let open = connection.recv_stream(stream_id(key.1)).read(false).is_ok();
            return open.then_some(Read::Blocked).ok_or(StreamEnd::NotOpen);
        };
        while let Some(bytes) = inbound.pieces.pop() {
            sink(bytes);
        }
        let Some(end) = inbound.end else {
            return Ok(Read::Blocked);
        };
        self.streams.remove(&key);
        end
    }

    /// Nobody wants to read it any more.
    pub fn stop(&mut self, key: (ConnectionKey, StreamKey)) {
        self.streams.remove(&key);
    }

    /// The connection is no more.
    pub fn forget(&mut self, connection: ConnectionKey) {
        self.streams.retain(|(owner, _), _| *owner != connection);
    }

    /// Why a connection that fell silent may have done so by the library's fault, in words.
    fn suspect(&self, connection: ConnectionKey) -> Option<String> {
        let mut streams = self.streams.iter();
        streams.find_map(|(&(owner, stream), inbound)| {
            let gap = inbound.pieces.gap()?;
            (owner == connection && inbound.crowded).then(|| {
                format!(
                    "idle timeout while bytes {gap:?} of stream {} are missing: {} may have lost them \
                     (docs/upstream/noq-unordered.md)",
                    stream.0,
                    dialect::VERSION
                )
            })
        })
    }
}

impl Inbound {
    /// Takes all that is there, and says how many pieces that was.
    fn fill(&mut self, chunks: &mut Chunks<'_>) -> Result<usize, ReassemblyError> {
        let mut pieces = 0;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    pieces += 1;
                    self.pieces.insert(chunk.offset, chunk.bytes)?;
                }
                Ok(None) => {
                    self.end = Some(Ok(Read::Finished));
                    return Ok(pieces);
                }
                Err(ReadError::Blocked) => return Ok(pieces),
                Err(ReadError::Reset(code)) => {
                    self.end = Some(Err(StreamEnd::ByPeer(code.into_inner())));
                    return Ok(pieces);
                }
            }
        }
    }
}
