//! Real time: an end is told its place on standard input, and says at SIGTERM what it did, as the
//! last line of standard output.

use std::collections::BTreeMap;
use std::io::{read_to_string, stdin};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bentpipe_endpoint::contract::ProxyHello;
use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_endpoint::{Clock, EndpointError, Received, Transmit};
use bentpipe_masque::{Delivery, FlowId, Output, Refusal, Target};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTERM;

use super::end::{End, Job, Kind};
use super::real_time::{Outbox, open, say, tick};
use super::repair::Repair;
use super::{job, packets};
use crate::VERSION;

/// Serves until SIGTERM.
pub fn run() -> Result<(), EndpointError> {
    bentpipe_endpoint::keep_freed_memory();
    let text = read_to_string(stdin()).map_err(EndpointError::io("reading standard input"))?;
    let mut hello: ProxyHello = serde_json::from_str(&text)?;
    let clock = Clock::start_now();
    let (ended, signal) = UnixStream::pair().map_err(EndpointError::io("making a pipe"))?;
    signal_hook::low_level::pipe::register(SIGTERM, signal)
        .map_err(EndpointError::io("handling SIGTERM"))?;
    let repair = Repair::start(&mut hello)?;
    let (hop, inner, proxy) = match repair {
        Some(it) => (Some(it.hop), Some(it.socket), it.proxy),
        None => (None, None, None),
    };
    let inner = inner.map(Port::over).transpose()?;
    let end = job::make(hello, &clock, true, proxy)?;
    let end = if end.job.tunnel.is_some() {
        packets::carry(end, inner, clock, &ended)?
    } else {
        carry(end, inner, clock, &ended)?
    };
    let mut bye = end.finish()?;
    if let Some(hop) = hop {
        hop.finish(&mut bye)?;
    }
    VERSION.clone_into(&mut bye.version);
    say(&serde_json::to_string(&bye)?)
}

/// Carries datagrams until the signal comes; the end, to be finished. `inner`: the socket of the
/// tunnel's packets, if they do not leave this host by themselves.
fn carry(
    end: End,
    mut inner: Option<Port>,
    clock: Clock,
    ended: &UnixStream,
) -> Result<End, EndpointError> {
    let is_client = matches!(end.kind, Kind::Client(_));
    let near = inner.take_if(|_| !is_client);
    let mut sockets = Sockets {
        near: near.map_or_else(|| open(end.job.listen), Ok)?,
        far: BTreeMap::new(),
        end,
        clock,
        received: Vec::new(),
        landing: ReceiveBuffer::default(),
        outbox: Outbox::default(),
    };
    if is_client {
        let port = inner.map_or_else(|| open(sockets.end.job.local), Ok)?;
        sockets.far.insert(PROXY, port);
    }
    say("ready")?;
    while !sockets.wait(ended)? {
        sockets.live()?;
    }
    let now = tick(&sockets.clock);
    sockets.end.close(now);
    // Where the path is gone already, nobody is told; what was counted is still said.
    let _ = sockets.transmit(now);
    Ok(sockets.end)
}

/// A socket that takes datagrams of `remote` alone (RFC 9298, section 3.1).
fn open_towards(local: SocketAddr, remote: SocketAddr) -> Result<Port, EndpointError> {
    let port = open(local)?;
    port.connect(remote)?;
    Ok(port)
}

/// One datagram with these ECN bits.
fn marked(to: SocketAddr, ecn: u8) -> Transmit {
    Transmit {
        ecn,
        ..Transmit::to(to, None)
    }
}

/// The socket of a flow: there is one for the trial's server alone. Else why not, and what went
/// wrong here.
fn open_for(job: &Job, asked: &Target, target: &Target) -> Result<Port, (Refusal, Option<String>)> {
    if asked != target {
        return Err((Refusal::NotAllowed, None));
    }
    open_towards(job.local, job.next_hop)
        .map_err(|error| (Refusal::NoSocket, Some(error.to_string())))
}

/// The number of a client's only socket on the server side.
const PROXY: FlowId = FlowId(0);

struct Sockets {
    end: End,
    clock: Clock,
    /// The socket towards the client.
    near: Port,
    /// Those towards the server: a client has one to the proxy, a proxy one for each flow.
    far: BTreeMap<FlowId, Port>,
    received: Vec<Received>,
    landing: ReceiveBuffer,
    outbox: Outbox,
}

impl Sockets {
    /// Waits for datagrams or a timer; true: for the signal, which came.
    fn wait(&self, ended: &UnixStream) -> Result<bool, EndpointError> {
        let timeout = self.end.next_timeout();
        let timeout = timeout.map(|at| at.saturating_sub(self.clock.elapsed()));
        let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
        let wait = |descriptor, flags| PollFd::from_borrowed_fd(descriptor, flags);
        let is_client = matches!(self.end.kind, Kind::Client(_));
        let flags = |is_tunnel: bool| {
            if is_tunnel && self.outbox.is_blocked() {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            }
        };
        let mut descriptors = vec![
            wait(ended.as_fd(), PollFlags::IN),
            wait(self.near.as_fd(), flags(!is_client)),
        ];
        let far = self.far.values().map(AsFd::as_fd);
        descriptors.extend(far.map(|it: BorrowedFd<'_>| wait(it, flags(is_client))));
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => Ok(!descriptors[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(EndpointError::io("waiting for datagrams")(error.into())),
        }
    }

    /// Takes what came, does what is due, and sends what leaves.
    fn live(&mut self) -> Result<(), EndpointError> {
        self.receive()?;
        let now = tick(&self.clock);
        if self.end.next_timeout().is_some_and(|at| at <= now) {
            self.end.handle_timeout(now);
        }
        self.hand_on(now)?;
        self.transmit(now)
    }

    fn receive(&mut self) -> Result<(), EndpointError> {
        let now = tick(&self.clock);
        let (end, received) = (&mut self.end, &mut self.received);
        self.near
            .receive_to(&mut self.landing, |it| received.push(it))?;
        for datagram in received.drain(..) {
            match &mut end.kind {
                Kind::Client(client) => {
                    client.send(now, datagram.remote, datagram.ecn, &datagram.payload);
                }
                Kind::Proxy(..) => end.handle_datagram(now, datagram),
            }
        }
        for (flow, port) in &mut self.far {
            let taken = port.receive_to(&mut self.landing, |it| received.push(it));
            match (&mut end.kind, taken) {
                (_, Ok(())) => {}
                (Kind::Client(_), Err(error)) => return Err(error),
                (Kind::Proxy(proxy, _), Err(error)) => {
                    let error = error.to_string();
                    proxy.fail(now, *flow, &error);
                    end.error = Some(error);
                }
            }
            for datagram in received.drain(..) {
                match &mut end.kind {
                    Kind::Client(_) => end.handle_datagram(now, datagram),
                    Kind::Proxy(proxy, _) => {
                        proxy.handle_reply(now, *flow, datagram.ecn, &datagram.payload);
                    }
                }
            }
        }
        Ok(())
    }

    /// Hands on what has come out of the tunnel, or beside it. A full socket buffer is a full
    /// queue: what it does not take is lost.
    fn hand_on(&mut self, now: Duration) -> Result<(), EndpointError> {
        let next_hop = self.end.job.next_hop;
        loop {
            match &mut self.end.kind {
                Kind::Client(client) => {
                    let Some(Delivery { to, ecn, payload }) = client.poll_arrived() else {
                        return Ok(());
                    };
                    self.near.send(&marked(to, ecn), &payload)?;
                }
                Kind::Proxy(proxy, target) => match proxy.poll_output() {
                    None => return Ok(()),
                    Some(Output::Open(flow, asked)) => {
                        let opened = open_for(&self.end.job, &asked, target);
                        let answer = opened.map(|port| drop(self.far.insert(flow, port)));
                        let answer = answer.map_err(|(refusal, error)| {
                            self.end.error = error.or(self.end.error.take());
                            refusal
                        });
                        proxy.answer(now, flow, answer);
                    }
                    Some(Output::Send(flow, ecn, payload)) => {
                        if let Some(port) = self.far.get_mut(&flow)
                            && let Err(error) = port.send(&marked(next_hop, ecn), &payload)
                        {
                            let error = error.to_string();
                            proxy.fail(now, flow, &error);
                            self.end.error = Some(error);
                        }
                    }
                    Some(Output::Close(flow)) => {
                        self.far.remove(&flow);
                    }
                    Some(Output::Tell(_) | Output::Packet(..) | Output::Unrouted(..)) => {}
                },
            }
        }
    }

    /// Sends packets of the tunnel until there are none or its socket takes no more.
    fn transmit(&mut self, now: Duration) -> Result<(), EndpointError> {
        let Some(port) = (match self.end.kind {
            Kind::Client(_) => self.far.get_mut(&PROXY),
            Kind::Proxy(..) => Some(&mut self.near),
        }) else {
            return Ok(());
        };
        self.outbox.send(&mut self.end, port, now)
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_flows_socket_takes_datagrams_of_its_target_alone() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let [target, stranger] = [(); 2].map(|()| UdpSocket::bind(any).unwrap());
        let mut port = open_towards(any, target.local_addr().unwrap()).unwrap();
        let to = port.local_address().unwrap();
        // Over loopback a datagram is there when the call returns. The kernel may tell the stranger
        // that nobody listens.
        stranger.send_to(b"stranger", to).unwrap();
        target.send_to(b"target", to).unwrap();
        let mut came = Vec::new();
        port.receive_to(&mut ReceiveBuffer::default(), |it| came.push(it.payload))
            .unwrap();
        assert_eq!(came, [&b"target"[..]]);
    }
}
