//! A UDP socket: segments that are sent together and received together, in as few system calls as
//! the kernel allows, and signals.

use std::io::{self, IoSliceMut, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
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

/// The size of the socket's buffer that the kernel is asked for, each way, in bytes; it gives less
/// where its own limits are lower.
const BUFFER_BYTES: usize = 4 << 20;

/// A socket with segmentation offload for sending, receive offload, and batches of datagrams.
#[derive(Debug)]
pub struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Has a byte for each signal that came; `None`: whoever opened the socket waits for it, and
    /// for signals, by other means.
    signals: Option<UnixStream>,
    received: ReceiveBuffer,
    refused: bool,
}

/// The buffer that datagrams are received into; several ports may share one. It has its memory from
/// the first use.
#[derive(Debug, Default)]
pub struct ReceiveBuffer(Vec<u8>);

/// The reasons for which [`Port::wait`] returned.
#[derive(Debug, Clone, Copy)]
pub struct Wakeup {
    /// There are datagrams, or an error.
    pub readable: bool,
    /// One of the signals came.
    pub signalled: bool,
}

impl Port {
    /// Opens a socket at `local`, and from now on waits for `signals`, too.
    pub fn open(local: SocketAddr, signals: &[i32]) -> Result<Self, EndpointError> {
        let socket = UdpSocket::bind(local).map_err(EndpointError::io("binding the socket"))?;
        let mut port = Self::over(socket)?;
        let (reader, writer) =
            UnixStream::pair().map_err(EndpointError::io("making a pipe for signals"))?;
        for &signal in signals {
            let copy = writer.try_clone();
            copy.and_then(|copy| signal_hook::low_level::pipe::register(signal, copy))
                .map_err(EndpointError::io("handling signals"))?;
        }
        port.signals = Some(reader);
        Ok(port)
    }

    /// Over a socket that is bound already. Its owner asks the kernel itself when there is
    /// something to receive ([`AsFd`]).
    pub fn over(socket: UdpSocket) -> Result<Self, EndpointError> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket));
        let state = state.map_err(EndpointError::io("setting up the socket"))?;
        // A kernel that does not want to gives what it has.
        let _ = state.set_recv_buffer_size((&socket).into(), BUFFER_BYTES);
        let _ = state.set_send_buffer_size((&socket).into(), BUFFER_BYTES);
        Ok(Self {
            socket,
            state,
            signals: None,
            received: ReceiveBuffer::default(),
            refused: false,
        })
    }

    /// From now on talks to `remote` alone, and learns when nobody listens there.
    pub fn connect(&self, remote: SocketAddr) -> Result<(), EndpointError> {
        self.socket
            .connect(remote)
            .map_err(EndpointError::io("connecting the socket"))
    }

    /// Its local address.
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

    /// Whether the other side's machine has said that nobody listens at this port. Anybody on the
    /// way could have.
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
    pub fn receive(&mut self, take: impl FnMut(Received)) -> Result<(), EndpointError> {
        let mut landing = std::mem::take(&mut self.received);
        let result = self.receive_to(&mut landing, take);
        self.received = landing;
        result
    }

    /// Hands on one batch, as [`Self::receive`] does, by way of memory that several ports share.
    pub fn receive_to(
        &mut self,
        landing: &mut ReceiveBuffer,
        mut take: impl FnMut(Received),
    ) -> Result<(), EndpointError> {
        let size = MAX_PAYLOAD * self.state.gro_segments();
        let memory = landing.of_size(size * BATCH_SIZE);
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut rest = memory.chunks_mut(size);
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
        for (slice, meta) in memory.chunks(size).zip(&metas[..count]) {
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

    /// Sleeps until there is something to receive, a signal comes or `timeout` is over; with
    /// `writable` also until more can be sent.
    pub fn wait(
        &mut self,
        timeout: Option<Duration>,
        writable: bool,
    ) -> Result<Wakeup, EndpointError> {
        let left =
            timeout.map(|left| Timespec::try_from(left).expect("a timeout fits the kernel's"));
        let wanted = if writable {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        // Without signals the socket stands in for them, and its answer is not looked at.
        let signals = self.signals.as_ref().map(AsFd::as_fd);
        let second = signals.unwrap_or(self.socket.as_fd());
        let mut fds = [
            PollFd::new(&self.socket, wanted),
            PollFd::from_borrowed_fd(second, PollFlags::IN),
        ];
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(EndpointError::io("waiting for the socket")(error.into())),
        }
        let [socket, second] = fds.map(|fd| fd.revents());
        let mut signalled = false;
        if let (Some(signals), true) = (&mut self.signals, second.contains(PollFlags::IN)) {
            signalled = true;
            let mut bytes = [0; 64];
            let _ = signals.read(&mut bytes);
        }
        Ok(Wakeup {
            readable: socket.intersects(PollFlags::IN | PollFlags::ERR),
            signalled,
        })
    }

    /// Whether it is of those errors that pass, or that anybody on the way can cause.
    fn is_transient(&mut self, error: &io::Error) -> bool {
        use io::ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
        self.refused |= error.kind() == ConnectionRefused;
        matches!(
            error.kind(),
            WouldBlock | Interrupted | ConnectionRefused | ConnectionReset
        )
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl ReceiveBuffer {
    fn of_size(&mut self, size: usize) -> &mut [u8] {
        if self.0.len() < size {
            self.0 = vec![0; size]; // which touches no page, as resizing would
        }
        &mut self.0[..size]
    }
}
