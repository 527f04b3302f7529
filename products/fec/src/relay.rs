//! An end of the tunnel between two sockets, in real time.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bentpipe_endpoint::contract::Statistics;
use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::{Departure, Settings, Side, Tunnel};

/// An end between a socket towards the client and one towards the server.
pub struct Relay {
    client_side: Side,
    tunnel: Tunnel,
    near: Port,
    far: Port,
    next_hop: SocketAddr,
    /// Where the last datagram on the client's side is from.
    client: Option<SocketAddr>,
    departures: Vec<Departure>,
}

impl Relay {
    /// One that takes datagrams of clients at `near`, whose side is `client_side`, and sends them
    /// on from `far` to `next_hop`.
    #[must_use]
    pub fn new(
        settings: Settings,
        (near, client_side): (Port, Side),
        (far, next_hop): (Port, SocketAddr),
    ) -> Self {
        Self {
            client_side,
            tunnel: Tunnel::new(settings),
            near,
            far,
            next_hop,
            client: None,
            departures: Vec::new(),
        }
    }

    /// Carries datagrams until there is something to read from `ended`; what has come until then is
    /// carried, too.
    pub fn run(&mut self, ended: &UnixStream) -> Result<(), EndpointError> {
        let clock = Clock::start_now();
        loop {
            let is_over = self.wait(ended, clock.elapsed())?;
            self.live(clock.elapsed())?;
            if is_over {
                return Ok(());
            }
        }
    }

    /// The counts of its tunnel.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.tunnel.statistics()
    }

    /// Waits for datagrams or a timer; true: for the end.
    fn wait(&self, ended: &UnixStream, now: Duration) -> Result<bool, EndpointError> {
        let timeout = self.tunnel.next_timeout();
        let timeout = timeout.map(|at| at.saturating_sub(now));
        let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
        let mut descriptors = [ended.as_fd(), self.near.as_fd(), self.far.as_fd()]
            .map(|it| PollFd::from_borrowed_fd(it, PollFlags::IN));
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => Ok(!descriptors[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(EndpointError::io("waiting for datagrams")(error.into())),
        }
    }

    /// Takes what came, does what is due, and sends what leaves.
    fn live(&mut self, now: Duration) -> Result<(), EndpointError> {
        let (tunnel, departures) = (&mut self.tunnel, &mut self.departures);
        let (client_side, client) = (self.client_side, &mut self.client);
        self.near.receive(|it| {
            *client = Some(it.remote);
            tunnel.arrive(now, (client_side, it.ecn, &it.payload), departures);
        })?;
        let server_side = match client_side {
            Side::Plain => Side::Tunnel,
            Side::Tunnel => Side::Plain,
        };
        self.far.receive(|it| {
            tunnel.arrive(now, (server_side, it.ecn, &it.payload), departures);
        })?;
        if tunnel.next_timeout().is_some_and(|at| at <= now) {
            tunnel.handle_timeout(now, departures);
        }
        for Departure { side, ecn, payload } in std::mem::take(&mut self.departures) {
            let (port, to) = if side == self.client_side {
                (&mut self.near, self.client)
            } else {
                (&mut self.far, Some(self.next_hop))
            };
            if let Some(destination) = to {
                let mut transmit = Transmit::to(destination, None);
                transmit.ecn = ecn;
                // A full socket buffer is a full queue: the datagram is lost.
                port.send(&transmit, &payload)?;
            }
        }
        Ok(())
    }
}

/// A socket of this host alone, between a middlebox and the relay beside it.
pub fn inner_socket() -> Result<UdpSocket, EndpointError> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    socket.map_err(EndpointError::io("binding a socket of this host alone"))
}
