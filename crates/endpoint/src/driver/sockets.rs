//! Socket mode: UDP in real time, with the kernel's segmentation and receive offloads, in one thread.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState, is_msg_size_err};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGTERM;

use crate::clock::Clock;
use crate::contract::Bye;
use crate::error::EndpointError;
use crate::setup::{Role, Setup};
use crate::stack::{Received, Stack, Transmit};

use super::{Endpoint, MAX_DATAGRAMS};

/// The largest UDP payload that the stacks accept by default: an Ethernet frame's.
const MAX_PAYLOAD: usize = 1500 - 28;

/// The driver of real sockets.
#[derive(Debug)]
pub struct Sockets<S> {
    endpoint: Endpoint<S>,
    clock: Clock,
    role: Role,
    socket: UdpSocket,
    state: UdpSocketState,
    /// Becomes readable at SIGTERM.
    termination: UnixStream,
    received: Vec<u8>,
    /// What is being sent, and its bytes; kept while the socket takes no more.
    blocked: Option<Transmit>,
    buffer: Vec<u8>,
}

/// What the program waits for.
struct Awake {
    readable: bool,
    terminated: bool,
}

impl<S: Stack> Sockets<S> {
    /// Opens the socket.
    pub fn new(endpoint: Endpoint<S>, setup: &Setup) -> Result<Self, EndpointError> {
        let socket =
            UdpSocket::bind(setup.local).map_err(EndpointError::io("binding the socket"))?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket));
        let state = state.map_err(EndpointError::io("setting up the socket"))?;
        let (termination, signal) =
            UnixStream::pair().map_err(EndpointError::io("making a pipe for SIGTERM"))?;
        signal_hook::low_level::pipe::register(SIGTERM, signal)
            .map_err(EndpointError::io("handling SIGTERM"))?;
        let received = vec![0; MAX_PAYLOAD * state.gro_segments() * BATCH_SIZE];
        Ok(Self {
            endpoint,
            clock: setup.clock.clone(),
            role: setup.role,
            socket,
            state,
            termination,
            received,
            blocked: None,
            buffer: Vec::new(),
        })
    }

    /// Lives until a client is done, or a server is told to terminate.
    pub fn run(mut self) -> Result<Bye, EndpointError> {
        let now = self.tick();
        self.endpoint
            .application
            .start(&mut self.endpoint.stack, now)?;
        if self.role == Role::Server {
            println!("ready");
        }
        loop {
            let now = self.tick();
            self.endpoint.handle_timers(now);
            self.endpoint.handle_events(now)?;
            self.transmit(now)?;
            let finished = self.role == Role::Client && self.endpoint.application.is_done();
            if finished && self.blocked.is_none() {
                return self.endpoint.finish();
            }
            let awake = self.wait()?;
            if awake.terminated {
                return self.endpoint.finish();
            }
            if awake.readable {
                self.receive()?;
            }
        }
    }

    /// Real time since the start, made known to TLS.
    fn tick(&self) -> Duration {
        let now = self.clock.elapsed();
        self.clock.set(now);
        now
    }

    /// Sleeps until the socket, a timer or SIGTERM wants something.
    fn wait(&mut self) -> Result<Awake, EndpointError> {
        let timeout = self.endpoint.stack.next_timeout();
        let left = timeout.map(|time| time.saturating_sub(self.clock.elapsed()));
        let left = left.map(|left| Timespec::try_from(left).expect("a timeout fits the kernel's"));
        let wanted = match self.blocked {
            Some(_) => PollFlags::IN | PollFlags::OUT,
            None => PollFlags::IN,
        };
        let mut fds = [
            PollFd::new(&self.socket, wanted),
            PollFd::new(&self.termination, PollFlags::IN),
        ];
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(EndpointError::io("waiting for the socket")(error.into())),
        }
        let [socket, termination] = fds.map(|fd| fd.revents());
        let readable = socket.intersects(PollFlags::IN | PollFlags::ERR);
        Ok(Awake {
            readable,
            terminated: termination.contains(PollFlags::IN),
        })
    }

    /// Receives one batch; what is left makes the socket readable again.
    fn receive(&mut self) -> Result<(), EndpointError> {
        let now = self.tick();
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let size = self.received.len() / BATCH_SIZE;
        let mut rest = self.received.chunks_mut(size);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().expect("one for each slice")));
        let count = match self
            .state
            .recv((&self.socket).into(), &mut slices, &mut metas)
        {
            Ok(count) => count,
            // The peer's port is closed: an ICMP message, which anybody could have sent.
            Err(error) if is_transient(&error) => return Ok(()),
            Err(error) => return Err(EndpointError::io("receiving")(error)),
        };
        for (slice, meta) in slices.iter().zip(&metas[..count]) {
            let mut batch = BytesMut::from(&slice[..meta.len]);
            while !batch.is_empty() {
                let payload = batch.split_to(meta.stride.min(batch.len()));
                let ecn = meta.ecn.map_or(0, |ecn| ecn as u8);
                let datagram = Received {
                    remote: meta.addr,
                    local_ip: meta.dst_ip,
                    ecn,
                    payload,
                };
                self.endpoint.stack.handle_datagram(now, datagram);
            }
        }
        Ok(())
    }

    /// Sends until there is nothing more to send or the socket takes no more.
    fn transmit(&mut self, now: Duration) -> Result<(), EndpointError> {
        let most = self.state.max_gso_segments().min(MAX_DATAGRAMS);
        loop {
            let waiting = self.blocked.take();
            let Some(transmit) =
                waiting.or_else(|| self.endpoint.poll_transmit(now, most, &mut self.buffer))
            else {
                return Ok(());
            };
            let datagrams = quinn_udp::Transmit {
                destination: transmit.destination,
                ecn: EcnCodepoint::from_bits(transmit.ecn),
                contents: &self.buffer,
                segment_size: transmit.segment_size,
                src_ip: transmit.source,
            };
            match self.state.try_send((&self.socket).into(), &datagrams) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked = Some(transmit);
                    return Ok(());
                }
                // A probe for a larger MTU may be too large; a lost datagram is QUIC's business.
                Err(error) if is_msg_size_err(&error) || is_transient(&error) => {}
                Err(error) => return Err(EndpointError::io("sending")(error)),
            }
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(
        error.kind(),
        WouldBlock | Interrupted | ConnectionRefused | ConnectionReset
    )
}
