//! s2n-quic as a [`Stack`].

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use bentpipe_endpoint::{
    ConnectionKey, EndpointError, Event, Options, Outbox, Read, Received, Resume, Role, Setup,
    Stack, StreamEnd, StreamKey, TestCase, Transmit,
};
use bytes::Bytes;
use s2n_quic::client::{Connect, ConnectionAttempt};
use s2n_quic::provider::congestion_controller::Endpoint as CongestionController;
use s2n_quic::provider::{limits::Limits, tls};
use s2n_quic::{Client, Server};

use crate::connection::{self, Accepted, Connection, closing};
use crate::machine::{Handover, Machine};
use crate::qlog::Qlog;
use crate::queues::{Arrival, Departures, Disguise};
use crate::settings::{CongestionControl, Settings};
use crate::wakes::{Reason, Wakes};

/// An endpoint of s2n-quic, both halves of it: the machine that sees datagrams, and the handles
/// that the application has.
pub struct Adapter {
    machine: Box<dyn Machine>,
    side: Side,
    /// A key is an index.
    connections: Vec<State>,
    wakes: Wakes,
    events: VecDeque<Event>,
    departures: Departures,
    local: SocketAddr,
    follows_paths: bool,
    /// The time of the last call that had one.
    now: Duration,
}

enum Side {
    Client(Client),
    Server(Server),
}

enum State {
    Connecting(ConnectionAttempt),
    Connected(Connection),
    Failed,
}

impl Stack for Adapter {
    const NAME: &'static str = "s2n-quic";
    const VERSION: &'static str = "s2n-quic 1.91.0";
    /// With rustls s2n-quic hands no ticket on, in neither role, and it reads no 0-RTT packets at
    /// all.
    const TEST_CASES: &'static [TestCase] = &[
        TestCase::Transfer,
        TestCase::Handshake,
        TestCase::LongRtt,
        TestCase::Multiplexing,
        TestCase::Upload,
    ];

    fn knows_paths(&self) -> bool {
        self.follows_paths
    }

    fn new(setup: &Setup, options: &mut Options) -> Result<Self, EndpointError> {
        let Settings {
            congestion_control,
            limits,
            mtu,
        } = Settings::new(setup, options)?;
        let (to, from) = mpsc::channel();
        let local = setup.local;
        let io = Handover { to, local, mtu };
        let side = match congestion_control {
            CongestionControl::Cubic(control) => start(setup, io, limits, control)?,
            CongestionControl::Bbr(control) => start(setup, io, limits, control)?,
        };
        let wakes = Wakes::default();
        if let Side::Server(_) = side {
            wakes.push(Reason::Accept);
        }
        Ok(Self {
            machine: from.recv().expect("starting hands the endpoint over"),
            side,
            connections: Vec::new(),
            wakes,
            events: VecDeque::new(),
            departures: Departures(Outbox::default(), Disguise::worn_if(setup.follows_paths())),
            local,
            follows_paths: setup.follows_paths(),
            now: Duration::ZERO,
        })
    }

    fn connect(
        &mut self,
        now: Duration,
        remote: SocketAddr,
        _: Resume,
    ) -> Result<ConnectionKey, EndpointError> {
        let Side::Client(client) = &self.side else {
            unreachable!("only a client connects");
        };
        self.now = now;
        let key = ConnectionKey(self.connections.len());
        let attempt = client.connect(Connect::new(remote).with_server_name("server"));
        self.connections.push(State::Connecting(attempt));
        self.go_on_connecting(key);
        Ok(key)
    }

    fn handle_datagram(&mut self, now: Duration, datagram: Received) {
        self.now = now;
        self.machine
            .receive(now, Arrival::new(datagram, self.local, self.departures.1));
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        if self.events.is_empty() && self.wakes.is_empty() {
            self.machine.timeout()
        } else {
            Some(self.now)
        }
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.now = now;
        self.machine.expire(now);
    }

    fn poll_transmit(
        &mut self,
        now: Duration,
        max_datagrams: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.now = now;
        if self.departures.0.is_empty() {
            self.machine.transmit(now, &mut self.departures);
        }
        self.departures.0.take(max_datagrams, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        while self.events.is_empty() {
            let reason = self.wakes.pop()?;
            self.go_on(reason);
        }
        self.events.pop_front()
    }

    fn open(&mut self, connection: ConnectionKey) -> Option<StreamKey> {
        self.connection(connection)?.open()
    }

    fn write(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        data: &mut Bytes,
    ) -> Result<(), StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection.with(stream, |stream| stream.write(data))
    }

    fn finish(&mut self, connection: ConnectionKey, stream: StreamKey) -> Result<(), StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection.with(stream, connection::Stream::finish)
    }

    fn reset(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some(connection) = self.connection(connection) {
            // A stream that is gone needs no reset.
            let _ = connection.with(stream, |stream| {
                stream.reset(code);
                Ok(())
            });
        }
    }

    fn stop(&mut self, connection: ConnectionKey, stream: StreamKey, code: u32) {
        if let Some(connection) = self.connection(connection) {
            // As above.
            let _ = connection.with(stream, |stream| {
                stream.stop(code);
                Ok(())
            });
        }
    }

    fn read(
        &mut self,
        connection: ConnectionKey,
        stream: StreamKey,
        sink: &mut dyn FnMut(Bytes),
    ) -> Result<Read, StreamEnd> {
        let connection = self.connection(connection).ok_or(StreamEnd::NotOpen)?;
        connection.with(stream, |stream| stream.read(sink))
    }

    fn close(&mut self, now: Duration, connection: ConnectionKey, code: u32) {
        self.now = now;
        if let Some(connection) = self.connection(connection) {
            connection.close(code);
        }
    }
}

impl Adapter {
    fn connection(&mut self, key: ConnectionKey) -> Option<&mut Connection> {
        match self.connections.get_mut(key.0) {
            Some(State::Connected(connection)) => Some(connection),
            _ => None,
        }
    }

    fn go_on(&mut self, reason: Reason) {
        match reason {
            Reason::Connected(key) => self.go_on_connecting(key),
            Reason::Accept => self.accept_connections(),
            Reason::Streams(key) => self.accept_streams(key),
            Reason::Open(key) => self.events.push_back(Event::MoreStreams(key)),
            Reason::Read(key, stream) => self.events.push_back(Event::Readable(key, stream)),
            Reason::Write(key, stream) => self.events.push_back(Event::Writable(key, stream)),
        }
    }

    fn go_on_connecting(&mut self, key: ConnectionKey) {
        let State::Connecting(attempt) = &mut self.connections[key.0] else {
            return;
        };
        let waker = self.wakes.waker(Reason::Connected(key));
        match Pin::new(attempt).poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => {}
            Poll::Ready(Ok(connection)) => self.add(key, connection),
            Poll::Ready(Err(error)) => {
                self.connections[key.0] = State::Failed;
                self.events.push_back(Event::Closed(key, closing(error)));
            }
        }
    }

    fn accept_connections(&mut self) {
        let waker = self.wakes.waker(Reason::Accept);
        let context = &mut Context::from_waker(&waker);
        while let Side::Server(server) = &mut self.side
            && let Poll::Ready(Some(connection)) = server.poll_accept(context)
        {
            let key = ConnectionKey(self.connections.len());
            self.connections.push(State::Failed);
            self.add(key, connection);
        }
    }

    fn add(&mut self, key: ConnectionKey, connection: s2n_quic::Connection) {
        let connection = Connection::new(key, connection, &self.wakes);
        self.connections[key.0] = State::Connected(connection);
        self.events.push_back(Event::Connected(key));
        self.accept_streams(key);
    }

    fn accept_streams(&mut self, key: ConnectionKey) {
        while let Some(connection) = self.connection(key) {
            let event = match connection.accept() {
                Accepted::Nothing => return,
                Accepted::Stream(stream) => Event::Opened(key, stream),
                Accepted::End(closing) => Event::Closed(key, closing),
            };
            self.events.push_back(event);
        }
    }
}

fn start(
    setup: &Setup,
    io: Handover,
    limits: Limits,
    control: impl CongestionController,
) -> Result<Side, EndpointError> {
    let started = match setup.role {
        Role::Client => Client::builder()
            .with_tls(tls::rustls::Client::from(setup.client_tls()?))
            .and_then(|builder| builder.with_limits(limits))
            .and_then(|builder| builder.with_congestion_controller(control))
            .and_then(|builder| builder.with_event(Qlog::new(setup)))
            .and_then(|builder| builder.with_io(io))
            .map(|builder| builder.start().map(Side::Client)),
        Role::Server => Server::builder()
            .with_tls(tls::rustls::Server::from(setup.server_tls()?))
            .and_then(|builder| builder.with_limits(limits))
            .and_then(|builder| builder.with_congestion_controller(control))
            .and_then(|builder| builder.with_event(Qlog::new(setup)))
            .and_then(|builder| builder.with_io(io))
            .map(|builder| builder.start().map(Side::Server)),
    };
    let Ok(started) = started;
    started.map_err(|error| EndpointError::Failed(format!("starting s2n-quic: {error}")))
}
