//! A connection's socket with what it is known to be ready for, so that no system call is made in
//! vain: each costs, and most of all where a guest's kernel is another process.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, read, write};
use rustix::net::sockopt::socket_error;

/// The events that are watched of a connection. Each is reported once.
pub const ALL_EVENTS: EventFlags = EventFlags::IN
    .union(EventFlags::OUT)
    .union(EventFlags::RDHUP)
    .union(EventFlags::PRI)
    .union(EventFlags::ET);

/// The events after which a read that returns less than was asked for may have left something: the
/// end of the stream, or data after an urgent mark.
const MORE: EventFlags = EventFlags::RDHUP.union(EventFlags::PRI);

/// A socket whose changes are reported once, when they occur (epoll, edge-triggered).
#[derive(Debug)]
pub struct WatchedSocket {
    socket: OwnedFd,
    /// The reported events that have not been found to be over since.
    reported: EventFlags,
}

impl WatchedSocket {
    /// One of which nothing is known, so that all is tried.
    pub fn new(socket: OwnedFd) -> Self {
        let reported = EventFlags::all();
        Self { socket, reported }
    }

    /// Notes reported events.
    pub fn hear(&mut self, flags: EventFlags) {
        self.reported |= flags;
        if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
            self.reported |= EventFlags::ERR | EventFlags::OUT | MORE;
        }
        if self.reported.intersects(MORE) {
            self.reported |= EventFlags::IN;
        }
    }

    /// Whether a read may find something.
    pub fn is_readable(&self) -> bool {
        self.reported.contains(EventFlags::IN)
    }

    /// Its error, if one was reported.
    pub fn check(&mut self) -> Result<(), Errno> {
        if self.reported.contains(EventFlags::ERR) {
            self.reported.remove(EventFlags::ERR);
            socket_error(&self.socket)??;
        }
        Ok(())
    }

    /// Reads what is there; None: nothing is.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        if !self.is_readable() {
            return Ok(None);
        }
        let came = unless_it_waits(|| read(&self.socket, &mut *buffer))?;
        match came {
            None => self.reported.remove(EventFlags::IN | MORE),
            Some(count) if count < buffer.len() && !self.reported.intersects(MORE) => {
                self.reported.remove(EventFlags::IN);
            }
            Some(_) => {}
        }
        Ok(came)
    }

    /// Writes as much as the socket takes; None: it takes nothing.
    pub fn write(&mut self, bytes: &[u8]) -> Result<Option<usize>, Errno> {
        if !self.reported.contains(EventFlags::OUT) {
            return Ok(None);
        }
        let went = unless_it_waits(|| write(&self.socket, bytes))?;
        if went.is_none() {
            self.reported.remove(EventFlags::OUT);
        }
        Ok(went)
    }
}

impl AsFd for WatchedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The result of a system call; None: it would have to wait.
pub fn unless_it_waits(
    mut call: impl FnMut() -> Result<usize, Errno>,
) -> Result<Option<usize>, Errno> {
    loop {
        match call() {
            Ok(count) => return Ok(Some(count)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::net::{SendFlags, send};

    use super::*;

    fn wait_for(socket: &WatchedSocket, what: PollFlags) {
        poll(&mut [PollFd::new(socket, what)], None).unwrap();
    }

    #[test]
    fn a_short_read_is_the_last_unless_the_end_or_an_urgent_mark_was_told_of() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        receiver.set_nonblocking(true).unwrap();
        let mut socket = WatchedSocket::new(receiver.into());
        let mut buffer = [0; 64];
        assert_eq!(socket.read(&mut buffer), Ok(None));

        sender.write_all(b"bytes").unwrap();
        wait_for(&socket, PollFlags::IN);
        assert_eq!(socket.read(&mut buffer), Ok(None)); // they were not reported
        socket.hear(EventFlags::IN);
        assert_eq!(socket.read(&mut buffer), Ok(Some(5)));
        assert!(!socket.is_readable());

        // A read stops at the mark, and what is behind it needs another one.
        sender.write_all(b"before").unwrap();
        send(&sender, b"!", SendFlags::OOB).unwrap();
        sender.write_all(b"behind").unwrap();
        drop(sender);
        wait_for(&socket, PollFlags::RDHUP);
        socket.hear(EventFlags::IN | EventFlags::PRI);
        let mut all = Vec::new();
        while let Some(count @ 1..) = socket.read(&mut buffer).unwrap() {
            all.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(all, b"beforebehind");
    }
}
