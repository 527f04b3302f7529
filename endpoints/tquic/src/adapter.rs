//! tquic as a [`Stack`].

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bentpipe_endpoint::{
    Clock, ConnectionKey, EndpointError, Event, Options, Read, Received, Resume, Role, Setup,
    Stack, StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;
use tquic::{Config, Connection, Endpoint, Error, PacketInfo, Shutdown};

use crate::connection::Known;
use crate::handler::{Handler, Notes, Sender};
use crate::timeout::whole_milliseconds;
use crate::{boringssl, config};

/// Reading takes this many bytes at a time.
const READ_BYTES: usize = 1 << 16;
/// tquic's default: all streams alike, in turns.
const URGENCY: u8 = 127;
const INCREMENTAL: bool = true;

/// An endpoint of the library and its connections.
pub struct Adapter {
    endpoint: Endpoint,
    /// For a client's connections that may send early data.
    early_data: Option<Config>,
    /// The latest session ticket, with the server's transport parameters.
    ticket: Option<Vec<u8>>,
    notes: Rc<RefCell<Notes>>,
    known: BTreeMap<u64, Known>,
    events: VecDeque<Event>,
    clock: Clock,
    local: SocketAddr,
    follows_paths: bool,
    /// When something last came from outside.
    now: Duration,
    /// Whether there may be something that the application does not know.
    unseen: bool,
    /// Whether tquic may have something to do or to send.
    stirred: bool,
    deadline: Option<Duration>,
    read_buffer: Vec<u8>,
}

impl Stack for Adapter {
    const NAME: &'static str = "tquic";
    const VERSION: &'static str = "tquic 1.6.0";
    const POLLING: &'static str = "; tquic's timers wait whole milliseconds, rounded up";
    const TEST_CASES: &'static [TestCase] = &TestCase::OF_FILES;

    fn knows_paths(&self) -> bool {
        self.follows_paths
    }

    fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        let config = config::new(setup, options)?;
        if let Some(file) = &setup.keylog {
            boringssl::log_secrets_to(file.clone());
        }
        let notes = Rc::<RefCell<Notes>>::default();
        let handler = Handler {
            notes: Rc::clone(&notes),
            clock: setup.clock.clone(),
            qlog: setup.qlog.clone(),
        };
        let sender = Sender(Rc::clone(&notes));
        let is_server = setup.role == Role::Server;
        let early_data = match setup.role {
            Role::Server => None,
            Role::Client => Some(config::with_early_data(&config, setup)?),
        };
        Ok(Self {
            endpoint: Endpoint::new(
                Box::new(config),
                is_server,
                Box::new(handler),
                Rc::new(sender),
            ),
            early_data,
            ticket: None,
            notes,
            known: BTreeMap::new(),
            events: VecDeque::new(),
            clock: setup.clock.clone(),
            local: setup.local,
            follows_paths: setup.follows_paths(),
            now: Duration::ZERO,
            unseen: false,
            stirred: false,
            deadline: None,
            read_buffer: vec![0; READ_BYTES],
        })
    }

    fn connect(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        resume: Resume,
    ) -> Result<ConnectionKey, EndpointError> {
        self.stir(now);
        let token = self.notes.borrow().token.clone();
        let (ticket, token, config) = match resume {
            Resume::Nothing => (None, None, None),
            Resume::Session => (self.ticket.as_deref(), token.as_deref(), None),
            Resume::EarlyData => {
                let config = self.early_data.as_ref();
                (self.ticket.as_deref(), token.as_deref(), config)
            }
        };
        let index = self
            .endpoint
            .connect(self.local, remote, Some("server"), ticket, token, config)
            .map_err(EndpointError::failed)?;
        self.read_notes();
        if let Some(known) = self.known.get_mut(&index) {
            known.early_data = resume == Resume::EarlyData;
        }
        Ok(key(index))
    }

    fn handle_datagram(&mut self, now: Duration, mut datagram: Received) {
        self.stir(now);
        let info = PacketInfo {
            src: datagram.remote,
            // The one that tquic was given for the path: a socket bound to any address may tell
            // another.
            dst: self.local,
            time: self.clock.instant(now),
        };
        // A datagram that is wrong is dropped, or ends its connection, which then tells why.
        let _ = self.endpoint.recv(&mut datagram.payload, &info);
        self.read_notes();
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        let again = self.known.values().filter_map(|known| known.again);
        again.chain(self.deadline).min()
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.stir(now);
    }

    fn poll_transmit(
        &mut self,
        _now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if self.stirred && self.notes.borrow().outbox.is_empty() {
            self.process();
        }
        self.notes.borrow_mut().outbox.take(max_datagrams, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        if self.events.is_empty() && self.unseen {
            self.unseen = false;
            self.endpoint.on_timeout(self.clock.instant(self.now));
            for (index, known) in &mut self.known {
                let Some(connection) = self.endpoint.conn_get_mut(*index) else {
                    continue;
                };
                let ticket = connection.session();
                if ticket.is_some() && ticket != self.ticket.as_deref() {
                    self.ticket = ticket.map(<[u8]>::to_vec);
                    self.events.push_back(Event::Ticket(key(*index)));
                }
                known.catch_up(self.now, key(*index), connection, &mut self.events);
            }
        }
        self.events.pop_front()
    }

    fn open(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        let now = self.now;
        let (tquic, known) = self.connection(connection)?;
        // With a ticket tquic knows how many streams the server allows, and would let them wait for
        // the handshake.
        if !tquic.is_established() && !tquic.is_in_early_data() {
            return None;
        }
        let stream = tquic.stream_bidi_new(URGENCY, INCREMENTAL);
        if stream.is_err() {
            known.refuse_stream(now);
        }
        stream.ok().map(StreamKey)
    }

    fn write(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd> {
        let (tquic, known) = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        while !data.is_empty() {
            match tquic.stream_write(stream.0, data.clone(), false) {
                Ok(written) => drop(data.split_to(written)),
                Err(Error::Done) => {
                    known.blocked.insert(stream.0);
                    return Ok(());
                }
                Err(error) => return Err(stream_end(&error)),
            }
        }
        Ok(())
    }

    fn finish(&mut self, connection: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd> {
        let (tquic, _) = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        let finished = tquic.stream_write(stream.0, Bytes::new(), true);
        finished.map(drop).map_err(|error| stream_end(&error))
    }

    fn reset(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some((tquic, known)) = self.connection(connection) {
            known.blocked.remove(&stream.0);
            // A stream that is closed already needs no reset.
            let _ = tquic.stream_shutdown(stream.0, Shutdown::Write, code.into());
        }
    }

    fn stop(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some((tquic, _)) = self.connection(connection) {
            // As above.
            let _ = tquic.stream_shutdown(stream.0, Shutdown::Read, code.into());
        }
    }

    fn read(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        let result = match self.connection(connection) {
            None => Err(StreamEnd::NotOpen),
            Some((tquic, _)) => read_all(tquic, stream.0, &mut buffer, sink),
        };
        self.read_buffer = buffer;
        result
    }

    fn close(&mut self, now: Duration, connection: ConnectionKey, code: u32) {
        let early = |(_, known): (_, &mut Known)| known.early_data;
        if self.connection(connection).is_some_and(early) {
            // The replies may be there with the server's handshake. tquic would send neither its
            // Finished nor the close.
            self.now = now;
            self.process();
        }
        if let Some((tquic, known)) = self.connection(connection) {
            known.closed = true;
            // A connection that has ended already needs no close.
            let _ = tquic.close(true, code.into(), b"");
        }
    }
}

impl Adapter {
    /// Something comes from outside.
    fn stir(&mut self, now: Duration) {
        self.now = now;
        self.unseen = true;
        self.stirred = true;
    }

    /// A connection that the application is about to use.
    fn connection(&mut self, key: ConnectionKey) -> Option<(&mut Connection, &mut Known)> {
        self.stirred = true;
        let index = u64::try_from(key.0).expect("made of one");
        let known = self.known.get_mut(&index)?;
        Some((self.endpoint.conn_get_mut(index)?, known))
    }

    /// Lets tquic do and send all that it can.
    fn process(&mut self) {
        self.stirred = false;
        if let Err(error) = self.endpoint.process_connections() {
            // tquic does not say which connection it is about, and would fail again: all of them
            // end.
            for index in self.known.keys() {
                if let Some(connection) = self.endpoint.conn_get_mut(*index) {
                    let _ = connection.close(false, 1, error.to_string().as_bytes());
                }
            }
        }
        self.read_notes();
        let timeout = self.endpoint.timeout();
        self.deadline = timeout.map(|timeout| self.now + whole_milliseconds(timeout));
    }

    fn read_notes(&mut self) {
        let mut notes = self.notes.borrow_mut();
        for index in notes.created.drain(..) {
            self.known.insert(index, Known::default());
        }
        for (index, stream) in notes.closed_streams.drain(..) {
            if let Some(known) = self.known.get_mut(&index) {
                known.opened.remove(&stream);
                known.blocked.remove(&stream);
            }
        }
        for (index, closing) in notes.gone.drain(..) {
            let known = self.known.remove(&index);
            if known.is_some_and(|known| !known.closed) {
                self.events.push_back(Event::Closed(key(index), closing));
            }
        }
    }
}

fn read_all(
    tquic: &mut Connection,
    stream: u64,
    buffer: &mut [u8],
    sink: &mut dyn FnMut(Bytes),
) -> Result<Read, StreamEnd> {
    loop {
        match tquic.stream_read(stream, buffer) {
            Ok((size, finished)) => {
                if size > 0 {
                    sink(Bytes::copy_from_slice(&buffer[..size]));
                }
                if finished {
                    return Ok(Read::Finished);
                }
            }
            Err(Error::Done) => return Ok(Read::Blocked),
            Err(error) => return Err(stream_end(&error)),
        }
    }
}

fn stream_end(error: &Error) -> StreamEnd {
    match error {
        Error::StreamReset(code) | Error::StreamStopped(code) => StreamEnd::ByPeer(*code),
        _ => StreamEnd::NotOpen,
    }
}

fn key(index: u64) -> ConnectionKey {
    ConnectionKey(usize::try_from(index).expect("a trial has few connections"))
}
