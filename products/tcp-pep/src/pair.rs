//! A client's connection and the proxy's own to where the client wanted to go.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use bentpipe_service::quota::ConnectionPermit;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::getpeername;
use rustix::net::sockopt::set_socket_linger;

use crate::buffers::Buffers;
use crate::direction::BufferedDirection;
use crate::watched_socket::WatchedSocket;

/// Steps of one pair before others have their turn.
const STEPS: usize = 4;

/// The state of a pair after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairState {
    /// It has more to do, now.
    Busy,
    /// It waits for one of its sockets.
    Waiting,
    /// It waits for a buffer.
    Starved,
    /// Both directions have ended.
    Ended,
}

/// A connection's two ends, as the client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The client.
    pub client: SocketAddr,
    /// Where it wants to go.
    pub server: SocketAddr,
}

/// A client's connection, and whether it may be there.
#[derive(Debug)]
pub struct ClientConnection {
    pub socket: OwnedFd,
    pub permit: ConnectionPermit,
}

/// A pair under way.
///
/// Until both directions have ended in order, either socket is reset when it is closed, also by the
/// end of the process, whatever ends it: what was cut off never looks complete.
#[derive(Debug)]
pub struct Pair {
    /// The time at which it began.
    pub since: Duration,
    /// When something moved last.
    pub moved: Duration,
    client: WatchedSocket,
    server: WatchedSocket,
    _permit: ConnectionPermit,
    is_connected: bool,
    /// The bytes that the next hop is sent before all others.
    preface: Vec<u8>,
    to_server: BufferedDirection,
    to_client: BufferedDirection,
}

impl Pair {
    /// A client's connection and one to its next hop that stands or is being opened. The next hop
    /// is sent `preface` first.
    pub fn new(
        client: ClientConnection,
        server: OwnedFd,
        preface: Vec<u8>,
        now: Duration,
    ) -> Result<Self, Errno> {
        for socket in [&client.socket, &server] {
            set_socket_linger(socket, Some(Duration::ZERO))?;
        }
        Ok(Self {
            since: now,
            moved: now,
            client: WatchedSocket::new(client.socket),
            server: WatchedSocket::new(server),
            _permit: client.permit,
            is_connected: false,
            preface,
            to_server: BufferedDirection::default(),
            to_client: BufferedDirection::default(),
        })
    }

    /// Whether the next hop has answered.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Its sockets, that towards the client first.
    pub fn sockets(&self) -> [&WatchedSocket; 2] {
        [&self.client, &self.server]
    }

    /// Notes events of its connection towards the client, or of that towards the server.
    pub fn hear(&mut self, is_of_server: bool, flags: EventFlags) {
        let socket = if is_of_server {
            &mut self.server
        } else {
            &mut self.client
        };
        socket.hear(flags);
    }

    /// Moves what can be moved. An error is one of the connections': both are to be reset.
    pub fn pump(&mut self, now: Duration, buffers: &mut Buffers) -> Result<PairState, Errno> {
        // A reset is an event of a socket that may have nothing to read or to be written.
        self.client.check()?;
        self.server.check()?;
        if !self.is_connected {
            if !is_connected(&self.server)? {
                return Ok(PairState::Waiting);
            }
            self.is_connected = true;
            self.moved = now;
            self.introduce()?;
        }
        for _ in 0..STEPS {
            let (client, server) = (&mut self.client, &mut self.server);
            let up = self.to_server.pump(client, server, buffers)?;
            let down = self.to_client.pump(server, client, buffers)?;
            if self.to_server.has_ended() && self.to_client.has_ended() {
                self.end();
                return Ok(PairState::Ended);
            }
            if up.has_moved || down.has_moved {
                self.moved = now;
            } else if up.is_starved || down.is_starved {
                return Ok(PairState::Starved);
            } else {
                return Ok(PairState::Waiting);
            }
        }
        Ok(PairState::Busy)
    }

    /// The send buffer of a connection that has carried nothing holds that many bytes.
    fn introduce(&mut self) -> Result<(), Errno> {
        let preface = std::mem::take(&mut self.preface);
        if preface.is_empty() || self.server.write(&preface)? == Some(preface.len()) {
            return Ok(());
        }
        Err(Errno::NOBUFS)
    }

    /// Has what is still on its way be sent after the sockets are closed.
    fn end(&self) {
        for socket in self.sockets() {
            // One that is gone already has nothing to send.
            let _ = set_socket_linger(socket, None);
        }
    }

    /// Gives back what it has of memory.
    pub fn release(&mut self, buffers: &mut Buffers) {
        self.to_client.release(buffers);
        self.to_server.release(buffers);
    }

    /// Bytes that went through, to the client and to the server.
    pub fn carried(&self) -> [u64; 2] {
        [self.to_client.carried, self.to_server.carried]
    }

    /// Bytes that wait.
    pub fn held(&self) -> usize {
        self.to_client.held() + self.to_server.held()
    }
}

/// Whether the connection that was begun stands.
pub fn is_connected(socket: &impl AsFd) -> Result<bool, Errno> {
    match getpeername(socket) {
        Ok(_) => Ok(true),
        Err(Errno::NOTCONN) => Ok(false),
        Err(error) => Err(error),
    }
}
