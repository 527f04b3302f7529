//! Real time: an end is told its place on standard input, and says at SIGTERM what it did, as the
//! last line of standard output.

use std::io::{Write, read_to_string, stdin, stdout};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bentpipe_endpoint::contract::{ProxyBye, ProxyHello};
use bentpipe_endpoint::driver::Port;
use bentpipe_endpoint::{Clock, EndpointError, Transmit};
use bentpipe_fec::{Departure, Settings, Side, Tunnel};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTERM;

use crate::VERSION;
use crate::instructions::Instructions;

/// Serves until SIGTERM.
pub fn run(defaults: Settings) -> Result<(), EndpointError> {
    let text = read_to_string(stdin()).map_err(EndpointError::io("reading standard input"))?;
    let hello: ProxyHello = serde_json::from_str(&text)?;
    let instructions = Instructions::of(hello, defaults)?;
    let (ended, signal) = UnixStream::pair().map_err(EndpointError::io("making a pipe"))?;
    signal_hook::low_level::pipe::register(SIGTERM, signal)
        .map_err(EndpointError::io("handling SIGTERM"))?;
    let mut end = End {
        client_side: instructions.client_side,
        tunnel: Tunnel::new(instructions.settings),
        near: Port::open(instructions.listen, &[])?,
        far: Port::open(instructions.local, &[])?,
        next_hop: instructions.next_hop,
        client: None,
        departures: Vec::new(),
    };
    say("ready")?;
    let clock = Clock::start_now();
    while !end.wait(&ended, clock.elapsed())? {
        end.live(clock.elapsed())?;
    }
    let bye = ProxyBye {
        version: VERSION.to_owned(),
        error: None,
        statistics: end.tunnel.statistics(),
    };
    say(&serde_json::to_string(&bye)?)
}

fn say(line: &str) -> Result<(), EndpointError> {
    let mut out = stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(EndpointError::io("writing to standard output"))
}

struct End {
    client_side: Side,
    tunnel: Tunnel,
    /// The socket towards the client, and the one towards the server.
    near: Port,
    far: Port,
    next_hop: SocketAddr,
    /// Where the last datagram on the client's side is from.
    client: Option<SocketAddr>,
    departures: Vec<Departure>,
}

impl End {
    /// Waits for datagrams or a timer; true: for the signal, which came.
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
