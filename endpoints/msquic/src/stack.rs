//! `MsQuic` behind [`Stack`], as far as the application on top needs it.
//!
//! `MsQuic` works by itself, in its own threads. Its callbacks send messages; the program's own
//! thread takes them one by one, and only it closes handles. So none of what a driver asks of other
//! stacks is ever asked here: datagrams and timers are not the program's.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use bentpipe_endpoint::{
    ConnectionKey, EndpointError, Event, Options, PathEnds, Read, Received, Resume, Setup, Stack,
    StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;
use msquic::{
    Addr, BufferRef, Configuration, Listener, ListenerEvent, Registration, RegistrationConfig,
    Status, StreamShutdownFlags,
};

use crate::connection::{Connection, Context};
use crate::messages::Message;
use crate::settings::{ALPN, configure};
use crate::stream::Stream;

/// The longest time for final packets to peers when the program ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// `MsQuic` with its connections. What is declared first is closed first, as `MsQuic` wants it.
pub struct MsQuic {
    streams: BTreeMap<(ConnectionKey, StreamKey), Stream>,
    connections: BTreeMap<ConnectionKey, Connection>,
    listener: Option<Listener>,
    configuration: Arc<Configuration>,
    registration: Registration,
    context: Context,
    messages: Receiver<Message>,
    ticket: Option<Vec<u8>>,
    /// Streams opened so far, by connection.
    opened: BTreeMap<ConnectionKey, u64>,
    /// Connections made so far.
    made: usize,
    /// A connection that is to be started, and where it goes.
    unstarted: Option<(ConnectionKey, SocketAddr)>,
}

impl MsQuic {
    /// A way to send messages to the program's own thread.
    pub fn sender(&self) -> Sender<Message> {
        self.context.sender.clone()
    }

    /// Takes connections from now on.
    pub fn listen(&mut self, local: SocketAddr) -> Result<(), EndpointError> {
        let (configuration, context) = (Arc::clone(&self.configuration), self.context.clone());
        let made = AtomicUsize::new(0);
        let accept = move |_, event: ListenerEvent<'_>| {
            if let ListenerEvent::NewConnection { connection, .. } = event {
                let key = ConnectionKey(made.fetch_add(1, Ordering::Relaxed));
                let accepted = Connection::accept(&connection, &configuration, key, &context)?;
                let _ = context.sender.send(Message::Accepted(key, accepted));
            }
            Ok(())
        };
        let failed =
            |status: Status| EndpointError::Failed(format!("listening on {local}: {status}"));
        let listener = Listener::open(&self.registration, accept).map_err(failed)?;
        let address = Addr::from(local);
        listener
            .start(&[BufferRef::from(ALPN)], Some(&address))
            .map_err(failed)?;
        self.listener = Some(listener);
        Ok(())
    }

    /// Starts what [`Stack::connect`] made, when the application has asked what it can ask early:
    /// streams that are opened between the `ClientHello` and the end of the handshake, `MsQuic`
    /// does not send in 0-RTT packets.
    pub fn start(&mut self) -> Result<(), EndpointError> {
        let Some((key, remote)) = self.unstarted.take() else {
            return Ok(());
        };
        let started = match self.connections.get(&key) {
            Some(connection) => connection.start(&self.configuration, remote.port()),
            None => Ok(()),
        };
        started.map_err(|status| unreachable(remote, &status))
    }

    /// The next message; `None`: none came in `left`.
    pub fn wait(&self, left: Option<Duration>) -> Option<Message> {
        let Some(left) = left else {
            let message = self.messages.recv();
            return Some(message.expect("this side keeps a sender, too"));
        };
        self.messages.recv_timeout(left).ok()
    }

    /// Does what a message asks for, and says what the application should know.
    pub fn take(&mut self, message: Message) -> Option<Event> {
        match message {
            Message::Event(event) => return Some(event),
            Message::Accepted(key, connection) => {
                self.connections.insert(key, connection);
            }
            Message::Opened(connection, key, stream) => {
                self.streams.insert((connection, key), stream);
                return Some(Event::Opened(connection, key));
            }
            Message::Ticket(connection, ticket) => {
                self.ticket = Some(ticket);
                return Some(Event::Ticket(connection));
            }
            Message::StreamOver(connection, key) => {
                self.streams.remove(&(connection, key));
            }
            Message::ConnectionOver(key) => {
                self.streams.retain(|(connection, _), _| *connection != key);
                self.connections.remove(&key);
            }
            Message::Terminated => {}
        }
        None
    }

    /// Closes all connections, and waits until the peers could be informed.
    pub fn leave(&mut self) {
        self.listener = None;
        for connection in self.connections.values() {
            connection.close(0);
        }
        while !self.connections.is_empty() {
            let Ok(message) = self.messages.recv_timeout(SHUTDOWN_TIMEOUT) else {
                return;
            };
            self.take(message);
        }
    }

    fn stream(&self, connection: ConnectionKey, stream: StreamKey) -> Result<&Stream, StreamEnd> {
        let found = self.streams.get(&(connection, stream));
        found.ok_or(StreamEnd::NotOpen)
    }
}

fn unreachable(remote: SocketAddr, status: &Status) -> EndpointError {
    EndpointError::Failed(format!("connecting to {remote}: {status}"))
}

impl Stack for MsQuic {
    const NAME: &'static str = "msquic";
    const VERSION: &'static str = "msquic 2.5.1-beta";
    const TEST_CASES: &'static [TestCase] = &TestCase::OF_FILES;
    const MIGRATES: bool = true;

    fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        let config = RegistrationConfig::new().set_app_name("bentpipe".into());
        let registration = Registration::new(&config)
            .map_err(|status| EndpointError::Failed(format!("MsQuic: {status}")))?;
        let configuration = configure(&registration, setup, options)?;
        let (sender, messages) = mpsc::channel();
        Ok(Self {
            streams: BTreeMap::new(),
            connections: BTreeMap::new(),
            listener: None,
            configuration: Arc::new(configuration),
            registration,
            context: Context {
                role: setup.role,
                sender,
                keylog: setup.keylog.clone(),
            },
            messages,
            ticket: None,
            opened: BTreeMap::new(),
            made: 0,
            unstarted: None,
        })
    }

    fn connect(
        &mut self,
        _now: Duration,
        remote: SocketAddr,
        resume: Resume,
    ) -> Result<ConnectionKey, EndpointError> {
        let ticket = match resume {
            Resume::Nothing => None,
            Resume::Session | Resume::EarlyData => self.ticket.as_deref(),
        };
        let key = ConnectionKey(self.made);
        self.made += 1;
        let connection = Connection::new(&self.registration, remote, ticket, key, &self.context);
        let connection = connection.map_err(|status| unreachable(remote, &status))?;
        self.connections.insert(key, connection);
        self.unstarted = Some((key, remote));
        Ok(key)
    }

    fn migrate(&mut self, _now: Duration, to: PathEnds) -> bool {
        let latest = self.connections.last_key_value();
        latest.is_some_and(|(_, connection)| connection.migrate(to.local))
    }

    fn handle_datagram(&mut self, _now: Duration, _datagram: Received) {}

    fn next_timeout(&mut self) -> Option<Duration> {
        None
    }

    fn handle_timeout(&mut self, _now: Duration) {}

    fn poll_transmit(&mut self, _: Duration, _: usize, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// `MsQuic` itself waits until the peer allows more streams.
    fn open(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        let parent = self.connections.get(&connection)?;
        let count = self.opened.entry(connection).or_default();
        let key = StreamKey(4 * *count);
        let sender = self.context.sender.clone();
        let stream = Stream::open(parent.handle(), (connection, key), sender).ok()?;
        *count += 1;
        self.streams.insert((connection, key), stream);
        Some(key)
    }

    fn write(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd> {
        self.stream(connection, stream)?.send(data)
    }

    fn finish(&mut self, connection: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd> {
        self.stream(connection, stream)?.finish()
    }

    fn reset(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Ok(stream) = self.stream(connection, stream) {
            stream.abort(StreamShutdownFlags::ABORT_SEND, code);
        }
    }

    fn stop(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Ok(stream) = self.stream(connection, stream) {
            stream.abort(StreamShutdownFlags::ABORT_RECEIVE, code);
        }
    }

    fn read(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        self.stream(connection, stream)?.read(sink)
    }

    fn close(&mut self, _now: Duration, connection: ConnectionKey, code: u32) {
        if let Some(connection) = self.connections.get(&connection) {
            connection.close(code);
        }
    }
}
