//! A transfer between two quiches in one process: an example of the package of `endpoints/quiche`,
//! so that it is the same library, and configured by the same source.

#[path = "../../../endpoints/quiche/src/config.rs"]
mod config;
#[path = "lib.rs"]
mod reference;

use std::net::SocketAddr;
use std::time::Duration;

use bentpipe_endpoint::{Clock, Options, Role, Setup};
use bytes::{Buf as _, Bytes, BytesMut};
use quiche::{BufFactory, Config, ConnectionId, Error, MAX_CONN_ID_LEN, RecvInfo};

use self::reference::{End, Failure, Job, Reply};

fn main() -> Result<(), Failure> {
    let Job { setups, reply } = Job::from_arguments()?;
    let mut reply = Some(reply);
    let clock = setups[0].clock.clone();
    let [client, server] = setups.map(|setup| {
        let reply = (setup.role == Role::Server).then(|| reply.take()).flatten();
        Side::new(&setup, reply)
    });
    reference::run(client?, server?, &clock)
}

/// Data are handed to quiche as they are, without a copy.
#[derive(Debug, Clone, Default)]
struct Shared;

impl BufFactory for Shared {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(buffer: &[u8]) -> Bytes {
        Bytes::copy_from_slice(buffer)
    }

    fn dgram_buf_from_slice(buffer: &[u8]) -> Vec<u8> {
        buffer.to_vec()
    }
}

/// A client that asks, or a server that replies.
struct Side {
    config: Config,
    mtu: usize,
    local: SocketAddr,
    remote: SocketAddr,
    connection: Option<quiche::Connection<Shared>>,
    clock: Clock,
    /// Of a server.
    reply: Option<Reply>,
    /// Of a client: it has asked.
    has_asked: bool,
    is_done: bool,
    received: Vec<u8>,
}

/// The client's first stream.
const STREAM: u64 = 0;

impl Side {
    fn new(setup: &Setup, reply: Option<Reply>) -> Result<Self, Failure> {
        let mut options = Options::new(setup.options.clone());
        let (mut config, mtu) = config::configure(setup, &mut options)?;
        options.finish()?;
        let remote = setup.remote.ok_or("HELLO does not name the other side")?;
        let connection = (setup.role == Role::Client).then(|| {
            let id = ConnectionId::from_ref(&[1; MAX_CONN_ID_LEN]);
            let (server, local) = (Some("server"), setup.local);
            quiche::connect_with_buffer_factory(server, &id, local, remote, &mut config)
        });
        Ok(Self {
            connection: connection.transpose()?,
            config,
            mtu,
            local: setup.local,
            remote,
            clock: setup.clock.clone(),
            reply,
            has_asked: false,
            is_done: false,
            received: vec![0; 1 << 16],
        })
    }

    /// A client asks once, reads, and closes at the end of the reply.
    fn ask(&mut self, connection: &mut quiche::Connection<Shared>) -> Result<(), Error> {
        if !self.has_asked && connection.is_established() {
            self.has_asked = true;
            connection.stream_send(STREAM, b"GET /reply\r\n", true)?;
        }
        if self.read(connection)? {
            self.is_done = true;
            connection.close(true, 0, b"")?;
        }
        Ok(())
    }

    /// Reads what has come; whether the stream has ended.
    fn read(&mut self, connection: &mut quiche::Connection<Shared>) -> Result<bool, Error> {
        while connection.stream_readable(STREAM) {
            match connection.stream_recv(STREAM, &mut self.received) {
                Ok((_, true)) => return Ok(true),
                Ok((_, false)) => {}
                Err(Error::Done) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// A server reads the question, and sends what may be sent of the reply.
    fn answer(&mut self, connection: &mut quiche::Connection<Shared>) -> Result<(), Error> {
        let mut may_write = self.read(connection)?;
        while let Some(STREAM) = connection.stream_writable_next() {
            may_write = true;
        }
        let Some(reply) = self.reply.as_mut().filter(|_| may_write) else {
            return Ok(());
        };
        loop {
            let bytes = reply.front();
            if bytes.is_empty() {
                connection.stream_send(STREAM, b"", true)?;
                self.reply = None;
                return Ok(());
            }
            match connection.stream_send_zc(STREAM, bytes.clone(), false) {
                Ok((sent, _)) => bytes.advance(sent),
                Err(Error::Done) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl End for Side {
    fn receive(&mut self, _: Duration, _: u8, mut datagram: BytesMut) {
        let connection = self.connection.get_or_insert_with(|| {
            let id = ConnectionId::from_ref(&[2; MAX_CONN_ID_LEN]);
            let (local, remote) = (self.local, self.remote);
            quiche::accept_with_buf_factory(&id, None, local, remote, &mut self.config)
                .expect("BoringSSL has memory")
        });
        let info = RecvInfo {
            from: self.remote,
            to: self.local,
        };
        // A packet that comes before its keys is dropped.
        let _ = connection.recv(&mut datagram, info);
    }

    fn next_timeout(&mut self) -> Option<Duration> {
        let timeout = self.connection.as_ref()?.timeout_instant()?;
        Some(self.clock.since_start(timeout))
    }

    fn handle_timeout(&mut self, _: Duration) {
        if let Some(connection) = &mut self.connection {
            connection.on_timeout();
        }
    }

    fn act(&mut self, _: Duration) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let is_server = connection.is_server();
        let did = if is_server && connection.peer_error().is_some() {
            self.is_done = true;
            Ok(())
        } else if is_server {
            self.answer(&mut connection)
        } else if !self.is_done {
            self.ask(&mut connection)
        } else {
            Ok(())
        };
        did.expect("a connection without errors");
        self.connection = Some(connection);
    }

    fn poll_transmit(&mut self, _: Duration, buffer: &mut Vec<u8>) -> Option<(u8, usize)> {
        buffer.resize(self.mtu, 0);
        let (size, _) = self.connection.as_mut()?.send(buffer).ok()?;
        buffer.truncate(size);
        Some((0, size))
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
