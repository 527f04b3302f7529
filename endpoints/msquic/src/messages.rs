//! Messages of the callbacks, which run in `MsQuic`'s threads, to the program's own thread.

use bentpipe_endpoint::{ConnectionKey, Event, StreamKey};

use crate::connection::Connection;
use crate::stream::Stream;

/// Something that happened.
#[derive(Debug)]
pub enum Message {
    /// For the application.
    Event(Event),
    /// A client has connected.
    Accepted(ConnectionKey, Connection),
    /// The peer has opened a stream.
    Opened(ConnectionKey, StreamKey, Stream),
    /// A session ticket has come.
    Ticket(ConnectionKey, Vec<u8>),
    /// `MsQuic` has no more use for the stream.
    StreamOver(ConnectionKey, StreamKey),
    /// `MsQuic` has no more use for the connection.
    ConnectionOver(ConnectionKey),
    /// SIGTERM.
    Terminated,
}
