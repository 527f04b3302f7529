//! The sockets of a relay.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use bentpipe_endpoint::EndpointError;
use bentpipe_linux_tcp::{SocketKind, set_pacing};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_ipv6_v6only, set_socket_reuseaddr, set_socket_reuseport, set_tcp_congestion,
    set_tcp_nodelay,
};
use rustix::net::{bind, connect as connect_socket, getpeername, getsockname, listen as start};

use crate::config::{Accept, Side};
use crate::syn_gate::close_for_others;

/// Connections that wait to be accepted, with those whose handshake is under way. The kernel takes
/// no more than `somaxconn`.
const BACKLOG: i32 = 65_535;

/// The sharing of an address: whether others may have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Others of this program, so that each worker has a socket.
    Shared,
    /// No other socket.
    Alone,
}

/// The way in which a socket listens.
#[derive(Debug, Clone, Copy)]
pub struct Listening {
    /// Whether it receives packets that are addressed to others.
    pub is_transparent: bool,
    /// When it answers.
    pub accept: Accept,
    /// Whether others may have its address.
    pub sharing: Sharing,
}

/// One that accepts connections to `local`.
pub fn listen(
    local: SocketAddr,
    side: &Side,
    listening: Listening,
) -> Result<OwnedFd, EndpointError> {
    let failed = |error: Errno| EndpointError::io("listening")(error.into());
    let socket = kind(side, listening.is_transparent).make(local)?;
    set_socket_reuseaddr(&socket, true).map_err(failed)?;
    set_socket_reuseport(&socket, listening.sharing == Sharing::Shared).map_err(failed)?;
    if local.is_ipv6() {
        set_ipv6_v6only(&socket, true).map_err(failed)?;
    }
    bind(&socket, &local).map_err(failed)?;
    if listening.accept == Accept::Late {
        close_for_others(&socket).map_err(failed)?;
    }
    start(&socket, BACKLOG).map_err(failed)?;
    Ok(socket)
}

/// Sets of a socket what connections of this side have.
pub fn dress(socket: &OwnedFd, side: &Side) -> Result<(), Errno> {
    set_tcp_congestion(socket, &side.congestion)?;
    match side.pacing() {
        Some(rate) => set_pacing(socket, rate),
        None => Ok(()),
    }
}

/// Sets options that accepted sockets do not inherit from the listener.
pub fn dress_accepted(socket: &OwnedFd, side: &Side) -> Result<(), Errno> {
    set_tcp_nodelay(socket, true)?;
    match side.pacing() {
        Some(rate) => set_pacing(socket, rate),
        None => Ok(()),
    }
}

/// A connection to `place` that is being opened, from `source`, or from an address of the host's
/// own.
pub fn connect(
    side: &Side,
    place: SocketAddr,
    source: Option<SocketAddr>,
) -> Result<OwnedFd, Errno> {
    let socket = kind(side, source.is_some()).make(place).map_err(errno)?;
    if let Some(source) = source {
        // The client's port may be taken for a connection to elsewhere.
        set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &source)?;
    }
    match connect_socket(&socket, &place) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// A connection's remote and local address.
pub fn names(socket: &OwnedFd) -> Result<(SocketAddr, SocketAddr), Errno> {
    let peer = getpeername(socket)?.ok_or(Errno::NOTCONN)?;
    Ok((peer.try_into()?, getsockname(socket)?.try_into()?))
}

fn kind(side: &Side, transparent: bool) -> SocketKind {
    SocketKind {
        congestion: side.congestion.clone(),
        transparent,
        nonblocking: true,
        pacing: side.pacing(),
        fast_open: false,
        multipath: false,
    }
}

fn errno(error: EndpointError) -> Errno {
    match error {
        EndpointError::Io { source, .. } => Errno::from_io_error(&source).unwrap_or(Errno::IO),
        _ => Errno::IO,
    }
}
