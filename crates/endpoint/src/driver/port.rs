//! A UDP socket: segments that are sent together and received together, in as few system calls as the kernel allows, and signals.

use std::io::{self, IoSliceMut, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState, is_msg_size_err};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::EndpointError;
use crate::stack::{Received, Transmit};

/// The largest UDP payload that the stacks accept by default: an Ethernet frame's.
const MAX_PAYLOAD: usize = 1500 - 28;

/// What the kernel is asked to keep for us, each way, in bytes; it gives less where its own limits are lower.
const BUFFER_BYTES: usize = 4 << 20;

/// A socket with segmentation offload for sending, receive offload, and batches of datagrams.
#[derive(Debug)]
pub struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Has a byte for each signal that came.
    signals: UnixStream,
    received: Vec<u8>,
    refused: bool,
}

/// What [`Port::wait`] found.
#[derive(Debug, Clone, Copy)]
pub struct Awake {
    /// There are datagrams, or an error.
    pub readable: bool,
    /// One of the signals came.
    pub signalled: bool,
}

impl Port {
    /// Opens a socket at `local`, and from now on waits for `signals`, too.
    pub fn open(local: SocketAddr, signals: &[i32]) -> Result<Self, EndpointError> {
        let socket = UdpSocket::bind(local).map_err(EndpointError::io("binding the socket"))?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket));
        let state = state.map_err(EndpointError::io("setting up the socket"))?;
        // A kernel that does not want to gives what it has.
        let _ = state.set_recv_buffer_size((&socket).into(), BUFFER_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), BUFFER_BYTES);
        let (reader, writer) =
            UnixStream::pair().map_err(EndpointError::io("making a pipe for signals"))?;
        for &signal in signals {
            let copy = writer.try_clone();
            copy.and_then(|copy| signal_hook::low_level::pipe::register(signal, copy))
                .map_err(EndpointError::io("handling signals"))?;
        }
        let received = vec![0; MAX_PAYLOAD * state.gro_segments() * BATCH_SIZE];
        Ok(Self {
            socket,
            state,
            signals: reader,
            received,
            refused: false,
        })
    }

    /// From now on talks to `remote` alone, and hears when nobody listens there.
    pub fn connect(&self, remote: SocketAddr) -> Result<(), EndpointError> {
        self.socket
            .connect(remote)
            .map_err(EndpointError::io("connecting the socket"))
    }

    /// Where it is.
    pub fn local_address(&self) -> Result<SocketAddr, EndpointError> {
        self.socket
            .local_addr()
            .map_err(EndpointError::io("asking for the socket's address"))
    }

    /// Datagrams of one size that the kernel takes in one call.
    #[must_use]
    pub fn most_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Whether the other side's machine has said that nobody listens at this port. Anybody on the way could have.
    #[must_use]
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Sends; `false`: the socket takes no more, and what was given is still to be sent.
    pub fn send(&mut self, transmit: &Transmit, bytes: &[u8]) -> Result<bool, EndpointError> {
        let datagrams = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: EcnCodepoint::from_bits(transmit.ecn),
            contents: bytes,
            segment_size: transmit.segment_size,
            src_ip: transmit.source,
        };
        match self.state.try_send((&self.socket).into(), &datagrams) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            // A probe for a larger MTU may be too large; a lost datagram is QUIC's business.
            Err(error) if is_msg_size_err(&error) || self.is_transient(&error) => Ok(true),
            Err(error) => Err(EndpointError::io("sending")(error)),
        }
    }

    /// Hands on one batch; what is left makes the socket readable again.
    pub fn receive(&mut self, mut take: impl FnMut(Received)) -> Result<(), EndpointError> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let size = self.received.len() / BATCH_SIZE;
        let mut rest = self.received.chunks_mut(size);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().expect("one for each slice")));
        let received = self
            .state
            .recv((&self.socket).into(), &mut slices, &mut metas);
        let count = match received {
            Ok(count) => count,
            // The peer's port is closed: an ICMP message, which anybody could have sent.
            Err(error) if self.is_transient(&error) => return Ok(()),
            Err(error) => return Err(EndpointError::io("receiving")(error)),
        };
        let size = self.received.len() / BATCH_SIZE;
        for (slice, meta) in self.received.chunks(size).zip(&metas[..count]) {
            let mut batch = BytesMut::from(&slice[..meta.len]);
            while !batch.is_empty() {
                let payload = batch.split_to(meta.stride.min(batch.len()));
                take(Received {
                    remote: meta.addr,
                    local_ip: meta.dst_ip,
                    ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
                    payload,
                });
            }
        }
        Ok(())
    }

    /// Sleeps until there is something to receive, a signal comes or `timeout` is over; with `room` also until more can be sent.
    pub fn wait(&mut self, timeout: Option<Duration>, room: bool) -> Result<Awake, EndpointError> {
        let left =
            timeout.map(|left| Timespec::try_from(left).expect("a timeout fits the kernel's"));
        let wanted = if room {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut fds = [
            PollFd::new(&self.socket, wanted),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(EndpointError::io("waiting for the socket")(error.into())),
        }
        let [socket, signals] = fds.map(|fd| fd.revents());
        let signalled = signals.contains(PollFlags::IN);
        if signalled {
            let mut bytes = [0; 64];
            let _ = self.signals.read(&mut bytes);
        }
        Ok(Awake {
            readable: socket.intersects(PollFlags::IN | PollFlags::ERR),
            signalled,
        })
    }

    fn is_transient(&mut self, error: &io::Error) -> bool {
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
        self.refused |= error.kind() == ConnectionRefused;
        matches!(
            error.kind(),
            WouldBlock | Interrupted | ConnectionRefused | ConnectionReset
        )
    }
}
