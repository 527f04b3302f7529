//! Stream data as they come: taken out of the library after each datagram, put into their order
//! here.
//!
//! In order, the library keeps what comes after a gap itself, and closes the connection when that
//! is more than 1024 pieces: "too many gaps in stream buffer". A queue that overflows and drops
//! every other packet leaves that many. Unordered, it keeps nothing, if one reads at once.
//! `docs/upstream` has the reports.
//!
//! noq's library lost pieces that way (`docs/upstream/noq-unordered.md`): `crates/noq-proto` fixes
//! it.

use std::collections::BTreeMap;

use bentpipe_endpoint::{
    ConnectionKey, EndpointError, Event, Options, Read, Reassembly, ReassemblyError, StreamEnd,
    StreamKey,
};
use bytes::Bytes;
use proto::{Chunks, Connection, ReadError, StreamId, VarInt};

use crate::library::{Library, ReadOrder};

/// Takes `reading` out of the variant's options.
pub(crate) fn take_read_order<L: Library>(
    options: &mut Options,
) -> Result<ReadOrder, EndpointError> {
    let orders = [
        ("ordered", ReadOrder::Ordered),
        ("unordered", ReadOrder::Unordered),
    ];
    let order = options.take_word("reading", &orders)?;
    Ok(order.unwrap_or(L::READ_ORDER))
}

/// The data that were taken out of the library and not read yet, by stream.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    streams: BTreeMap<(ConnectionKey, StreamKey), Inbound>,
}

#[derive(Debug, Default)]
struct Inbound {
    pieces: Reassembly,
    /// How the stream ended.
    end: Option<Result<Read, StreamEnd>>,
}

impl Inbox {
    /// Takes out what a datagram has brought that led to these `events` of the connection `key`.
    ///
    /// Says in words why the connection cannot go on, if that is so.
    pub(crate) fn follow<'a>(
        &mut self,
        connection: &mut Connection,
        key: ConnectionKey,
        events: impl Iterator<Item = &'a Event>,
    ) -> Result<(), String> {
        for event in events {
            let (Event::Opened(_, stream)
            | Event::OpenedOneWay(_, stream)
            | Event::Readable(_, stream)) = event
            else {
                continue;
            };
            let taken = self.take(connection, (key, *stream));
            taken.map_err(|why| format!("stream {}: {why}", stream.0))?;
        }
        Ok(())
    }

    /// Takes out what there is of a stream.
    fn take(
        &mut self,
        connection: &mut Connection,
        key: (ConnectionKey, StreamKey),
    ) -> Result<(), ReassemblyError> {
        let mut receiver = connection.recv_stream(stream_id(key.1));
        // A closed stream has been read, or nobody reads it.
        let Ok(mut chunks) = receiver.read(false) else {
            return Ok(());
        };
        let inbound = self.streams.entry(key).or_default();
        let taken = inbound.fill(&mut chunks);
        // Whether flow control credit is to be sent, the next poll finds out by itself.
        let _ = chunks.finalize();
        taken
    }

    /// Hands on what is there, in order.
    pub(crate) fn read(
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

    /// The application reads the stream no more.
    pub(crate) fn stop(&mut self, key: (ConnectionKey, StreamKey)) {
        self.streams.remove(&key);
    }

    /// The connection is no more.
    pub(crate) fn forget(&mut self, connection: ConnectionKey) {
        self.streams.retain(|(owner, _), _| *owner != connection);
    }
}

impl Inbound {
    /// Takes all that is there.
    fn fill(&mut self, chunks: &mut Chunks<'_>) -> Result<(), ReassemblyError> {
        self.end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.pieces.insert(chunk.offset, chunk.bytes)?,
                Ok(None) => break Some(Ok(Read::Finished)),
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(code)) => {
                    break Some(Err(StreamEnd::ByPeer(code.into_inner())));
                }
            }
        };
        Ok(())
    }
}

/// The library's ID of a stream.
pub(crate) fn stream_id(key: StreamKey) -> StreamId {
    StreamId::from(VarInt::from_u64(key.0).expect("a stream ID comes from the library"))
}
