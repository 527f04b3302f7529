//! One direction of a pair of connections: bytes from one socket wait in memory, bounded, for the
//! other.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{Shutdown, shutdown};

use crate::buffers::Buffers;
use crate::watched_socket::WatchedSocket;

/// A direction under way.
#[derive(Debug, Default)]
pub struct BufferedDirection {
    /// There is one while bytes wait.
    buffer: Option<Box<[u8]>>,
    /// Where in it the bytes begin and end that wait.
    waiting: std::ops::Range<usize>,
    /// The sender has said that no more will come.
    is_ending: bool,
    /// Whether the end was passed on to the receiver.
    has_ended: bool,
    /// Bytes that went through.
    pub carried: u64,
}

/// The outcome of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Step {
    /// Something has moved.
    pub has_moved: bool,
    /// There was no buffer for it: there will be when another direction is empty.
    pub is_starved: bool,
}

impl BufferedDirection {
    /// Whether all that was ever to come has gone through, and its end as well.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Bytes that wait.
    pub fn held(&self) -> usize {
        self.waiting.len()
    }

    /// Moves what can be moved now. An error is one of the connections'.
    pub fn pump(
        &mut self,
        from: &mut WatchedSocket,
        to: &mut WatchedSocket,
        buffers: &mut Buffers,
    ) -> Result<Step, Errno> {
        let mut step = Step::default();
        if self.buffer.is_none() && !self.is_ending && from.is_readable() {
            self.buffer = buffers.take();
            step.is_starved = self.buffer.is_none();
        }
        let moved = self.move_on(from, to);
        if self.waiting.is_empty() {
            self.release(buffers);
        }
        step.has_moved = moved?;
        Ok(step)
    }

    /// Gives its buffer back, whatever is in it.
    pub fn release(&mut self, buffers: &mut Buffers) {
        self.waiting = 0..0;
        if let Some(buffer) = self.buffer.take() {
            buffers.give(buffer);
        }
    }

    fn move_on(&mut self, from: &mut WatchedSocket, to: &mut WatchedSocket) -> Result<bool, Errno> {
        let came = self.fill(from)?;
        let went = self.drain(to)?;
        if self.is_ending && self.waiting.is_empty() && !self.has_ended {
            end(to)?;
            self.has_ended = true;
        }
        Ok(came || went)
    }

    fn fill(&mut self, from: &mut WatchedSocket) -> Result<bool, Errno> {
        let Some(buffer) = self.buffer.as_mut() else {
            return Ok(false);
        };
        if self.waiting.is_empty() {
            self.waiting = 0..0;
        } else if self.waiting.end == buffer.len() {
            buffer.copy_within(self.waiting.clone(), 0);
            self.waiting = 0..self.waiting.len();
        }
        if self.is_ending || self.waiting.end == buffer.len() {
            return Ok(false);
        }
        match from.read(&mut buffer[self.waiting.end..])? {
            Some(0) => self.is_ending = true,
            Some(count) => self.waiting.end += count,
            None => return Ok(false),
        }
        Ok(true)
    }

    fn drain(&mut self, to: &mut WatchedSocket) -> Result<bool, Errno> {
        let Some(buffer) = self.buffer.as_ref().filter(|_| !self.waiting.is_empty()) else {
            return Ok(false);
        };
        let Some(count) = to.write(&buffer[self.waiting.clone()])? else {
            return Ok(false); // until the receiver takes more
        };
        self.waiting.start += count;
        self.carried += count as u64;
        Ok(true)
    }
}

/// Says that nothing more comes. A connection that was reset just now is not connected any more:
/// then the error is its own.
fn end(to: &impl AsFd) -> Result<(), Errno> {
    shutdown(to, Shutdown::Write).map_err(|error| match socket_error(to) {
        Ok(Err(own)) => own,
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    use rustix::buffer::spare_capacity;
    use rustix::event::Timespec;
    use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
    use rustix::net::getpeername;
    use rustix::net::sockopt::set_socket_linger;

    use super::*;
    use crate::watched_socket::ALL_EVENTS;

    const BUFFER: usize = 4096;

    fn socket_pair() -> (WatchedSocket, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        (WatchedSocket::new(own.into()), other)
    }

    #[test]
    fn bytes_and_their_end_go_through() {
        let (mut from, mut sender) = socket_pair();
        let (mut to, mut receiver) = socket_pair();
        let mut buffers = Buffers::new(BUFFER, usize::MAX);
        let mut direction = BufferedDirection::default();
        let mut pump = |flags| {
            from.hear(flags);
            direction
                .pump(&mut from, &mut to, &mut buffers)
                .unwrap()
                .has_moved
        };
        sender.write_all(b"bytes").unwrap();
        assert!(pump(EventFlags::IN));
        assert!(!pump(EventFlags::empty()));
        sender.write_all(b"more").unwrap();
        assert!(!pump(EventFlags::OUT)); // nothing was said of bytes, so none are looked for
        drop(sender);
        assert!(pump(EventFlags::IN | EventFlags::RDHUP));
        pump(EventFlags::empty());
        assert!(direction.has_ended());
        assert_eq!(buffers.used(), 0);
        let mut all = Vec::new();
        receiver.read_to_end(&mut all).unwrap();
        assert_eq!((all.as_slice(), direction.carried), (&b"bytesmore"[..], 9));
    }

    /// The kernel's events of two sockets, each change once.
    struct Edges(OwnedFd);

    impl Edges {
        fn of(both: [&WatchedSocket; 2]) -> Self {
            let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
            for (number, socket) in (0..).zip(both) {
                epoll::add(&epoll, socket, EventData::new_u64(number), ALL_EVENTS).unwrap();
            }
            Self(epoll)
        }

        /// Tells them what changed since it was asked before; whether anything did.
        fn tell(&self, from: &mut WatchedSocket, to: &mut WatchedSocket) -> bool {
            let mut events: Vec<Event> = Vec::with_capacity(2);
            let at_once = Timespec::default();
            epoll::wait(&self.0, spare_capacity(&mut events), Some(&at_once)).unwrap();
            for event in &events {
                let changed = if event.data.u64() == 0 {
                    &mut *from
                } else {
                    &mut *to
                };
                changed.hear(event.flags);
            }
            !events.is_empty()
        }
    }

    #[test]
    fn what_nobody_takes_waits_and_is_bounded() {
        let (mut from, mut sender) = socket_pair();
        let (mut to, mut receiver) = socket_pair();
        let edges = Edges::of([&from, &to]);
        let mut buffers = Buffers::new(BUFFER, usize::MAX);
        let mut direction = BufferedDirection::default();
        let (chunk, mut accepted) = (vec![7; 65_536], 0);
        loop {
            let count = sender.write(&chunk).unwrap_or(0);
            accepted += count;
            let is_told = edges.tell(&mut from, &mut to);
            let step = direction.pump(&mut from, &mut to, &mut buffers).unwrap();
            if !step.has_moved && !is_told && count == 0 {
                break;
            }
        }
        assert_eq!(direction.held(), BUFFER);
        drop(sender);
        let (mut all, mut taken) = (0, vec![0; 65_536]);
        while !direction.has_ended() || all < accepted {
            let count = receiver.read(&mut taken).unwrap_or(0);
            all += count;
            let is_told = edges.tell(&mut from, &mut to);
            let step = direction.pump(&mut from, &mut to, &mut buffers).unwrap();
            let is_stuck = !step.has_moved && !is_told && count == 0;
            assert!(!is_stuck, "{all} of {accepted} bytes came");
        }
        assert_eq!(all, accepted);
    }

    #[test]
    fn a_full_buffer_that_empties_at_once_is_not_the_last() {
        let (mut from, mut sender) = socket_pair();
        let (mut to, mut receiver) = socket_pair();
        let mut buffers = Buffers::new(BUFFER, usize::MAX);
        let mut direction = BufferedDirection::default();
        sender.write_all(&vec![7; 2 * BUFFER]).unwrap();
        // Each call says that there may be more, until there is none: no event will come for it.
        while direction
            .pump(&mut from, &mut to, &mut buffers)
            .unwrap()
            .has_moved
        {}
        let mut taken = vec![0; 4 * BUFFER];
        assert_eq!(receiver.read(&mut taken).unwrap(), 2 * BUFFER);
    }

    #[test]
    fn without_memory_bytes_stay_where_they_are_until_there_is_some() {
        let (mut from, mut sender) = socket_pair();
        let (mut to, mut receiver) = socket_pair();
        let mut buffers = Buffers::new(BUFFER, 0);
        let others: Vec<_> = std::iter::from_fn(|| buffers.take()).collect();
        let mut direction = BufferedDirection::default();
        sender.write_all(b"bytes").unwrap();
        let step = direction.pump(&mut from, &mut to, &mut buffers).unwrap();
        assert_eq!((step.has_moved, step.is_starved), (false, true));
        for buffer in others {
            buffers.give(buffer);
        }
        assert!(
            direction
                .pump(&mut from, &mut to, &mut buffers)
                .unwrap()
                .has_moved
        );
        let mut taken = [0; 8];
        assert_eq!(receiver.read(&mut taken).unwrap(), 5);
    }

    #[test]
    fn a_connection_that_was_reset_ends_with_its_reset() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = OwnedFd::from(listener.accept().unwrap().0);
        set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
        drop(client);
        while getpeername(&server).is_ok() {
            thread::yield_now();
        }
        assert_eq!(end(&server), Err(Errno::CONNRESET));
    }
}
