//! An end in the calls of quinn and of noq, whose names are the same and whose types are not: this
//! source is compiled with `super::adapter` and `super::Chosen` of either.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bentpipe_endpoint::{Clock, Options, Received, Resume, Role, Setup};
use bentpipe_reference::{End, Failure, Job, Reply};
use bytes::{Bytes, BytesMut};

use super::Chosen;
use super::adapter::proto::crypto::rustls::QuicServerConfig;
use super::adapter::proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, EndpointConfig, Event, ReadError,
    ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt, WriteError,
};
use super::adapter::{Client, Library, ReadOrder, apply, to_transmit};

/// The datagrams that are asked for at once: as many as an endpoint program asks for.
const MAX_DATAGRAMS: usize = bentpipe_endpoint::driver::MAX_DATAGRAMS;

/// A transfer by the arguments of the program.
pub fn transfer() -> Result<(), Failure> {
    let Job { setups, reply } = Job::from_arguments()?;
    let mut reply = Some(reply);
    let clock = setups[0].clock.clone();
    let [client, server] = setups.map(|setup| {
        let reply = (setup.role == Role::Server).then(|| reply.take()).flatten();
        Side::new(&setup, reply)
    });
    bentpipe_reference::run(client?, server?, &clock)
}

/// A client that asks, or a server that replies.
struct Side {
    endpoint: super::adapter::proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    remote: SocketAddr,
    clock: Clock,
    /// Of a server.
    reply: Option<Reply>,
    stream: Option<StreamId>,
    is_done: bool,
}

impl Side {
    fn new(setup: &Setup, reply: Option<Reply>) -> Result<Self, Failure> {
        let mut transport = TransportConfig::default();
        let paths = <Chosen as Library>::Paths::default();
        let mut options = Options::new(setup.options.clone());
        apply::<Chosen>(&mut transport, &setup.surroundings(), &mut options, &paths)?;
        options.finish()?;
        let transport = Arc::new(transport);
        let is_server = setup.role == Role::Server;
        let server = is_server.then(|| {
            let tls = QuicServerConfig::try_from(setup.server_tls()?)?;
            let mut config = ServerConfig::with_crypto(Arc::new(tls));
            config.transport_config(transport.clone());
            Ok::<_, Failure>(Arc::new(config))
        });
        let remote = setup.remote.ok_or("HELLO does not name the other side")?;
        let mut side = Self {
            endpoint: Chosen::endpoint(Arc::new(EndpointConfig::default()), server.transpose()?),
            connection: None,
            remote,
            clock: setup.clock.clone(),
            reply,
            stream: None,
            is_done: false,
        };
        if !is_server {
            let config = Client::new(setup.client_tls()?, transport).config(Resume::Nothing)?;
            let now = setup.clock.instant(Duration::ZERO);
            side.connection = Some(side.endpoint.connect(now, config, remote, "server")?);
        }
        Ok(side)
    }

    fn connection(&mut self) -> &mut Connection {
        let connection = self.connection.as_mut();
        &mut connection.expect("streams are of a connection").1
    }

    fn handle(&mut self, now: Duration, event: &Event) {
        match event {
            Event::Connected if self.reply.is_none() => {
                let connection = self.connection();
                let stream = connection.streams().open(Dir::Bi);
                let stream = stream.expect("a server allows streams");
                let mut sender = connection.send_stream(stream);
                sender.write(b"GET /reply\r\n").expect("there is room");
                sender.finish().expect("it is open");
                self.stream = Some(stream);
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                self.stream = self.connection().streams().accept(Dir::Bi);
                self.read(now);
            }
            Event::Stream(StreamEvent::Readable { .. }) => self.read(now),
            Event::Stream(StreamEvent::Writable { .. }) => self.write(),
            Event::ConnectionLost { .. } => self.is_done = true,
            _ => {}
        }
    }

    /// Reads what has come; after the question a server replies, after the reply a client closes.
    fn read(&mut self, now: Duration) {
        let stream = self.stream.expect("what is readable is open");
        let mut receiver = self.connection().recv_stream(stream);
        let ordered = Chosen::READ_ORDER == ReadOrder::Ordered;
        let Ok(mut chunks) = receiver.read(ordered) else {
            return;
        };
        let finished = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => drop(chunk),
                Ok(None) => break true,
                Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
            }
        };
        let _ = chunks.finalize();
        if finished && self.reply.is_some() {
            self.write();
        } else if finished {
            let now = self.clock.instant(now);
            self.connection()
                .close(now, VarInt::from_u32(0), Bytes::new());
            self.is_done = true;
        }
    }

    fn write(&mut self) {
        let (Some(mut reply), Some(stream)) = (self.reply.take(), self.stream) else {
            return;
        };
        let mut sender = self.connection().send_stream(stream);
        loop {
            let bytes = reply.front();
            if bytes.is_empty() {
                sender.finish().expect("it is open");
                self.stream = None;
                break;
            }
            match Chosen::write(&mut sender, bytes) {
                Ok(()) => {}
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("the client reads all: {error}"),
            }
        }
        self.reply = Some(reply);
    }
}

impl End for Side {
    fn receive(&mut self, now: Duration, ecn: u8, datagram: BytesMut) {
        let now = self.clock.instant(now);
        let received = Received {
            remote: self.remote,
            local_ip: None,
            ecn,
            payload: datagram,
        };
        let mut answer = Vec::new();
        match Chosen::handle(&mut self.endpoint, now, received, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => self.connection().handle_event(event),
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.unwrap_or_else(|_| panic!("it can be accepted")));
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        let timeout = self.connection.as_mut()?.1.poll_timeout()?;
        Some(self.clock.since_start(timeout))
    }

    fn handle_timeout(&mut self, now: Duration) {
        let now = self.clock.instant(now);
        self.connection().handle_timeout(now);
    }

    fn act(&mut self, now: Duration) {
        while let Some((handle, connection)) = &mut self.connection
            && let Some(event) = connection.poll_endpoint_events()
        {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some((_, connection)) = &mut self.connection
            && let Some(event) = connection.poll()
        {
            self.handle(now, &event);
        }
    }

    fn poll_transmit(&mut self, now: Duration, buffer: &mut Vec<u8>) -> Option<(u8, usize)> {
        let now = self.clock.instant(now);
        let (_, connection) = self.connection.as_mut()?;
        let transmit = Chosen::poll_transmit(connection, now, MAX_DATAGRAMS, buffer)?;
        buffer.truncate(transmit.size);
        let transmit = to_transmit(&transmit);
        Some((transmit.ecn, transmit.segment_size.unwrap_or(buffer.len())))
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
