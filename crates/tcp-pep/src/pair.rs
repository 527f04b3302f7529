//! A client's connection and the proxy's own to where the client wanted to go.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_linux_tcp::SocketKind;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_linger, set_socket_reuseaddr, set_tcp_nodelay, socket_error,
};
use rustix::net::{bind, connect, getpeername, getsockname};

use crate::direction::BufferedDirection;

/// Steps of one pair before others have their turn.
const STEPS: usize = 64;

/// The state of a pair after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairState {
    /// It has more to do, now.
    Busy,
    /// It waits for one of its sockets.
    Waiting,
    /// Both directions have ended.
    Ended,
}

/// A pair under way.
#[derive(Debug)]
pub struct Pair {
    pub client: OwnedFd,
    pub server: OwnedFd,
    is_connected: bool,
    to_server: BufferedDirection,
    to_client: BufferedDirection,
}

impl Pair {
    /// Opens the connection for a client's, by the client's own address to the one that it wanted.
    pub fn open(client: OwnedFd, kind: &SocketKind, buffer: usize) -> Result<Self, EndpointError> {
        // Whatever becomes of it until it is a pair, the client is told by a reset.
        let _ = set_socket_linger(&client, Some(Duration::ZERO));
        let pair = Self::connect(client, kind, buffer)?;
        let _ = set_socket_linger(&pair.client, None);
        Ok(pair)
    }

    fn connect(client: OwnedFd, kind: &SocketKind, buffer: usize) -> Result<Self, EndpointError> {
        let failed = |error: Errno| EndpointError::io("opening a connection")(error.into());
        let wanted: SocketAddr = getsockname(&client)
            .and_then(TryInto::try_into)
            .map_err(failed)?;
        let from: SocketAddr = getpeername(&client)
            .and_then(|it| it.ok_or(Errno::NOTCONN)?.try_into())
            .map_err(failed)?;
        set_tcp_nodelay(&client, true).map_err(failed)?;
        let server = kind.make(wanted)?;
        // The client's port may be taken for a connection to elsewhere.
        set_socket_reuseaddr(&server, true).map_err(failed)?;
        bind(&server, &from).map_err(failed)?;
        match connect(&server, &wanted) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(Self {
            client,
            server,
            is_connected: false,
            to_server: BufferedDirection::new(buffer),
            to_client: BufferedDirection::new(buffer),
        })
    }

    /// Moves what can be moved. An error is one of the connections': both are to be reset.
    pub fn pump(&mut self) -> Result<PairState, Errno> {
        // A reset is an event of a socket that may have nothing to read or to be written.
        socket_error(&self.client)??;
        socket_error(&self.server)??;
        if !self.is_connected {
            match getpeername(&self.server) {
                Ok(_) => self.is_connected = true,
                Err(Errno::NOTCONN) => return Ok(PairState::Waiting),
                Err(error) => return Err(error),
            }
        }
        for _ in 0..STEPS {
            let up = self.to_server.pump(&self.client, &self.server)?;
            let down = self.to_client.pump(&self.server, &self.client)?;
            if self.to_server.has_ended() && self.to_client.has_ended() {
                return Ok(PairState::Ended);
            }
            if !up && !down {
                return Ok(PairState::Waiting);
            }
        }
        Ok(PairState::Busy)
    }

    /// Ends both connections by a reset, as one of them was: RFC 9293 section 3.5.3.
    pub fn reset(&self) {
        for socket in [&self.client, &self.server] {
            // One that is gone already needs none.
            let _ = set_socket_linger(socket, Some(Duration::ZERO));
        }
    }

    /// Bytes that went through, to the client and to the server.
    pub fn carried(&self) -> [u64; 2] {
        [self.to_client.carried, self.to_server.carried]
    }
}
