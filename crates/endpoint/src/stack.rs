//! The interface of a QUIC implementation: no socket, no clock, everything by call.
//!
//! Times are durations since the start of the trial.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::contract::Statistics;
use crate::error::EndpointError;
use crate::options::Options;
use crate::setup::{PathEnds, Setup};
use crate::test_case::TestCase;
use crate::tickets::Resume;

/// The key of a connection of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionKey(pub usize);

/// A stream ID (RFC 9000, section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamKey(pub u64);

/// A datagram that has arrived.
#[derive(Debug)]
pub struct Received {
    /// Its sender.
    pub remote: SocketAddr,
    /// The local address that it was sent to, if known.
    pub local_ip: Option<IpAddr>,
    /// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// The UDP payload.
    pub payload: BytesMut,
}

/// The destination of the datagrams in the buffer of [`Stack::poll_transmit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// The receiver.
    pub destination: SocketAddr,
    /// The local address to send from, if that matters.
    pub source: Option<IpAddr>,
    /// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// The buffer holds several datagrams of this size; the last may be shorter. `None`: it holds
    /// one.
    pub segment_size: Option<usize>,
}

impl Transmit {
    /// One datagram, Not-ECT.
    #[must_use]
    pub fn to(destination: SocketAddr, source: Option<IpAddr>) -> Self {
        Self {
            destination,
            source,
            ecn: 0,
            segment_size: None,
        }
    }
}

/// An event that the application should know of.
#[derive(Debug)]
pub enum Event {
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Connected(ConnectionKey),
    /// A session ticket has come: the next [`Stack::connect`] can resume.
    Ticket(ConnectionKey),
    /// The server has rejected the early data: streams opened so far are no more, and their IDs may
    /// be used again. Comes before [`Event::Connected`]. A stack that sends the same streams again
    /// by itself does not report it.
    EarlyDataRejected(ConnectionKey),
    /// The peer allows further streams to be opened.
    MoreStreams(ConnectionKey),
    /// The peer opened a bidirectional stream, which may be readable already.
    Opened(ConnectionKey, StreamKey),
    /// The peer opened a unidirectional stream, which may be readable already.
    OpenedOneWay(ConnectionKey, StreamKey),
    /// There are data, an end or an error to be read.
    Readable(ConnectionKey, StreamKey),
    /// A write that was blocked may go on.
    Writable(ConnectionKey, StreamKey),
    /// A DATAGRAM frame has come (RFC 9221).
    DatagramFrame(ConnectionKey, Bytes),
    /// The connection is no more. Not reported for a close by this side.
    Closed(ConnectionKey, Closing),
}

impl Event {
    /// The connection that it is about.
    #[must_use]
    pub fn connection(&self) -> ConnectionKey {
        match *self {
            Self::Connected(connection)
            | Self::Ticket(connection)
            | Self::EarlyDataRejected(connection)
            | Self::MoreStreams(connection)
            | Self::Opened(connection, _)
            | Self::OpenedOneWay(connection, _)
            | Self::Readable(connection, _)
            | Self::Writable(connection, _)
            | Self::DatagramFrame(connection, _)
            | Self::Closed(connection, _) => connection,
        }
    }
}

/// The reason for which a connection is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// The peer's application closed it.
    Application {
        /// Its error code.
        code: u64,
        /// Its words.
        reason: String,
    },
    /// The idle timeout (RFC 9000, section 10.1).
    IdleTimeout,
    /// An error, in words.
    Error(String),
}

/// The reason for which a stream cannot be used (any longer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The peer reset it (when reading) or asked to stop it (when writing), with this error code.
    ByPeer(u64),
    /// This side has closed it already, or never opened it.
    NotOpen,
}

/// The outcome of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// More may come: [`Event::Readable`] will tell.
    Blocked,
    /// The stream has ended.
    Finished,
}

/// A QUIC implementation with its connections.
pub trait Stack: Sized {
    /// The name of the stack, as in its `stack.toml`.
    const NAME: &'static str;
    /// The library and its version.
    const VERSION: &'static str;
    /// An addition to the driver's description in READY: how this stack is polled for datagrams,
    /// where that changes results.
    const POLLING: &'static str = "";
    /// The test cases that it can be in, as in its `stack.toml`. The program refuses all others.
    const TEST_CASES: &'static [TestCase];

    /// Whether a client can migrate ([`Stack::migrate`]): its program then has the option
    /// `migrate`.
    const MIGRATES: bool = false;

    /// Whether it uses the paths of its setup: it sends from the local address of one, and a client
    /// opens further ones itself. One that does not sees the first alone.
    fn knows_paths(&self) -> bool {
        false
    }

    /// A client or a server, by `setup.role`; takes its options out of `options`.
    ///
    /// Where the test case [resumes](TestCase::resume), a server issues tickets and accepts early
    /// data.
    fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError>;

    /// Starts a connection to `remote`, whose name is `server`. The connection before may still be
    /// closing.
    fn connect(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        resume: Resume,
    ) -> Result<ConnectionKey, EndpointError>;

    /// Has a client's connections migrate to another path (RFC 9000, section 9), from which on they
    /// use that alone; `false`: they cannot yet, for example while the handshake is not complete.
    fn migrate(&mut self, now: Duration, to: PathEnds) -> bool {
        let _ = (now, to);
        false
    }

    /// A datagram has arrived.
    fn handle_datagram(&mut self, now: Duration, datagram: Received);

    /// When [`Stack::handle_timeout`] wants to be called.
    fn next_timeout(&mut self) -> Option<Duration>;

    /// Handles all timers that are due at `now`.
    fn handle_timeout(&mut self, now: Duration);

    /// Fills the empty `buffer` with the next datagrams to send: up to `max_datagrams` of one size.
    fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit>;

    /// The next event for the application.
    fn poll_event(&mut self) -> Option<Event>;

    /// Opens a bidirectional stream; `None` while the peer allows no more.
    fn open(&mut self, connection: ConnectionKey) -> Option<StreamKey>;

    /// Opens a unidirectional stream; `None` while the peer allows no more.
    /// HTTP/3 needs it: a stack that lists [`TestCase::Page`] has it.
    fn open_one_way(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        let _ = connection;
        None
    }

    /// Has what waits on streams of a higher priority be sent first; that of a stream is 0 unless
    /// it says otherwise.
    /// A stack that lists [`TestCase::Frames`] has it.
    fn set_priority(&mut self, connection: ConnectionKey, stream: StreamKey, priority: i32) {
        let _ = (connection, stream, priority);
    }

    /// The most bytes that a DATAGRAM frame can carry now (RFC 9221); `None` if none can be sent. A
    /// stack that lists [`TestCase::Frames`] has them.
    fn largest_datagram_frame(&mut self, connection: ConnectionKey) -> Option<usize> {
        let _ = connection;
        None
    }

    /// Sends `data` in a DATAGRAM frame. Where the buffer is full, the oldest that waits is
    /// dropped.
    fn send_datagram_frame(&mut self, connection: ConnectionKey, data: Bytes) {
        let _ = (connection, data);
    }

    /// Whether DATAGRAM frames wait that were in no packet yet.
    /// A stack that lists [`TestCase::Frames`] has it.
    fn has_waiting_datagram_frames(&mut self, connection: ConnectionKey) -> bool {
        let _ = connection;
        false
    }

    /// Writes as much of `data` as fits, and takes that off its front.
    fn write(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd>;

    /// Ends the sending side.
    fn finish(&mut self, connection: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd>;

    /// Abandons the sending side with `RESET_STREAM`.
    fn reset(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32);

    /// Asks the peer to stop sending, with `STOP_SENDING`.
    fn stop(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32);

    /// Reads all that is there, in order, into `sink`.
    fn read(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd>;

    /// Closes the connection with an application error code.
    fn close(&mut self, now: Duration, connection: ConnectionKey, code: u32);

    /// Statistics that only the stack has, of its latest connection, which may be closed by now.
    /// Called once, at the end.
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
}
