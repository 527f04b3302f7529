//! The differences between the two libraries, as a trait.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bentpipe_endpoint::contract::Statistics;
use bentpipe_endpoint::{EndpointError, LogFolder, Options, PathEnds, Received, Surroundings};
use bytes::Bytes;
use proto::congestion::ControllerFactory;
use proto::{
    Connection, DatagramEvent, Endpoint, EndpointConfig, Event, SendStream, ServerConfig, Transmit,
    TransportConfig, WriteError,
};

/// The variant's options that congestion control starts from; `None`: the library's default.
#[derive(Debug)]
pub struct Tuning {
    /// Congestion control, in the contract's words.
    pub cc: Option<String>,
    /// Initial congestion window in bytes.
    pub initial_window: Option<u64>,
    /// The ack-eliciting packets until the peer's next ACK.
    pub ack: Option<u64>,
}

/// The congestion control that the variant asks for.
pub struct ChosenController {
    /// Makes a controller for each path.
    pub factory: Arc<dyn ControllerFactory + Send + Sync>,
    /// Its report for the record, if any.
    pub report: Option<Report>,
    /// The ack-eliciting packets until the peer's next ACK that it is best with, if any.
    pub ack: Option<u64>,
}

/// The question for what congestion control has to say of a connection, asked at its end.
pub type Report = Arc<dyn Fn() -> Statistics + Send + Sync>;

impl ChosenController {
    /// One of the library's, which says nothing; `set_window` sets its initial window, in bytes.
    pub fn of<C: ControllerFactory + Default + Send + Sync + 'static>(
        initial_window: Option<u64>,
        set_window: fn(&mut C, u64) -> &mut C,
    ) -> Self {
        let mut config = C::default();
        if let Some(bytes) = initial_window {
            set_window(&mut config, bytes);
        }
        Self {
            factory: Arc::new(config),
            report: None,
            ack: None,
        }
    }
}

/// The order in which stream data are read out of the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadOrder {
    /// The order of the stream; the library keeps data behind a gap.
    Ordered,
    /// The order of arrival.
    Unordered,
}

/// The memory of the paths to peers, from one connection to the next.
pub trait PathMemory: Default {
    /// Notes that the next connection is with `remote`.
    fn connecting_to(&self, remote: SocketAddr);

    /// Learns from a connection that has ended.
    fn learn_from(&self, connection: &Connection);

    /// Sees a client's connection that was just begun.
    fn begun(&self, _: &mut Connection) {}

    /// Sees an event of a connection.
    fn handle_event(&self, _: &mut Connection, _: &Event) {}

    /// Sees a connection that was called.
    fn tend(&self, _: &mut Connection) {}
}

/// One of the two libraries: its name, its defaults here, and the calls whose signatures are its
/// own.
pub trait Library: Sized {
    /// Its name, as variants have it.
    const NAME: &'static str;
    /// Its crate and version, for records.
    const VERSION: &'static str;
    /// The flow control window of connection and streams in bytes; `None`: the library's own.
    const DEFAULT_WINDOW: Option<u64>;
    /// How streams are read unless the variant says otherwise.
    const READ_ORDER: ReadOrder;

    /// Its memory of paths.
    type Paths: PathMemory;

    /// Whether it has several paths at once (draft-ietf-quic-multipath).
    const KNOWS_PATHS: bool = false;

    /// Has connections negotiate this many paths.
    fn allow_paths(_: &mut TransportConfig, _: u32) {}

    /// Opens a further path of a client's connection, from a local address; false: not yet.
    #[must_use]
    fn open_path(_: &mut Connection, _: PathEnds, _: Instant) -> bool {
        false
    }

    /// Tells a client's connection that from now on it sends from another address: it migrates
    /// (RFC 9000, section 9).
    fn local_address_changed(connection: &mut Connection, now: Instant);

    /// Takes the options of congestion control; `None`: the library's default.
    fn congestion_control(
        tuning: &Tuning,
        surroundings: &Surroundings,
        options: &mut Options,
        paths: &Self::Paths,
    ) -> Result<Option<ChosenController>, EndpointError>;

    /// Takes options that the other library has not.
    fn own_options(
        _: &mut TransportConfig,
        _: &Surroundings,
        _: &mut Options,
        _: &Self::Paths,
    ) -> Result<(), EndpointError> {
        Ok(())
    }

    /// Has qlog written into `folder`, with times since `start`.
    fn log_to(folder: &LogFolder, start: Instant, transport: &mut TransportConfig);

    /// An endpoint that sees ECN bits; without `server` it takes no connections.
    fn endpoint(config: Arc<EndpointConfig>, server: Option<Arc<ServerConfig>>) -> Endpoint;

    /// Hands a datagram to the endpoint; an answer without a connection is written to `buffer`.
    fn handle(
        endpoint: &mut Endpoint,
        now: Instant,
        datagram: Received,
        buffer: &mut Vec<u8>,
    ) -> Option<DatagramEvent>;

    /// Writes the next datagrams of a connection to `buffer`: at most a number, of one size but for
    /// the last.
    fn poll_transmit(
        connection: &mut Connection,
        now: Instant,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit>;

    /// Writes the front of `data` to a stream, and takes away what was written.
    fn write(stream: &mut SendStream<'_>, data: &mut Bytes) -> Result<(), WriteError>;
}
