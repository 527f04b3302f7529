//! One direction of a pair of connections: bytes from one socket wait in a pipe, bounded, for the
//! other. They never leave the kernel (splice(2)).

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// A direction under way.
#[derive(Debug)]
pub struct PipeDirection {
    entrance: OwnedFd,
    exit: OwnedFd,
    /// Bytes that fit into the pipe.
    capacity: usize,
    /// Bytes that wait in it.
    waiting: usize,
    /// The sender has said that no more will come.
    is_ending: bool,
    /// The receiver was told so.
    has_ended: bool,
    /// Bytes that went through.
    pub carried: u64,
}

impl PipeDirection {
    pub fn new(buffer: usize) -> Result<Self, Errno> {
        let (exit, entrance) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
        let capacity = fcntl_setpipe_size(&entrance, buffer)?;
        Ok(Self {
            entrance,
            exit,
            capacity,
            waiting: 0,
            is_ending: false,
            has_ended: false,
            carried: 0,
        })
    }

    /// Whether all that was ever to come has gone through, and its end as well.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Moves what can be moved now; whether there was anything. An error is one of the connections'.
    pub fn pump(&mut self, from: &OwnedFd, to: &OwnedFd) -> Result<bool, Errno> {
        let mut moved = false;
        if !self.is_ending && self.waiting < self.capacity {
            let room = self.capacity - self.waiting;
            match transfer(from, &self.entrance, room)? {
                Some(0) => self.is_ending = true,
                Some(count) => self.waiting += count,
                None => {}
            }
            moved |= self.waiting > 0;
        }
        if self.waiting > 0 {
            let Some(count) = transfer(&self.exit, to, self.waiting)? else {
                return Ok(false); // until the receiver takes more
            };
            self.waiting -= count;
            self.carried += count as u64;
        }
        if self.is_ending && self.waiting == 0 && !self.has_ended {
            shutdown(to, Shutdown::Write)?;
            self.has_ended = true;
        }
        Ok(moved)
    }
}

/// How many bytes were moved; None: none can be, now.
fn transfer(from: &OwnedFd, to: &OwnedFd, count: usize) -> Result<Option<usize>, Errno> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    loop {
        match splice(from, None, to, None, count, flags) {
            Ok(moved) => return Ok(Some(moved)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn socket_pair() -> (OwnedFd, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        (own.into(), other)
    }

    #[test]
    fn bytes_and_their_end_go_through() {
        let (from, mut sender) = socket_pair();
        let (to, mut receiver) = socket_pair();
        let mut direction = PipeDirection::new(4096).unwrap();
        sender.write_all(b"bytes").unwrap();
        assert!(direction.pump(&from, &to).unwrap());
        assert!(!direction.pump(&from, &to).unwrap());
        drop(sender);
        direction.pump(&from, &to).unwrap();
        assert!(direction.has_ended());
        let mut all = Vec::new();
        receiver.read_to_end(&mut all).unwrap();
        assert_eq!((all.as_slice(), direction.carried), (&b"bytes"[..], 5));
    }

    #[test]
    fn what_nobody_takes_waits_and_is_bounded() {
        let (from, mut sender) = socket_pair();
        let (to, receiver) = socket_pair();
        sender.set_nonblocking(true).unwrap();
        let mut direction = PipeDirection::new(4096).unwrap();
        let chunk = vec![7; 65_536];
        let mut accepted = 0;
        let mut idle = 0;
        while idle < 3 {
            let count = sender.write(&chunk).unwrap_or(0);
            accepted += count;
            let moved = direction.pump(&from, &to).unwrap();
            idle = if count == 0 && !moved { idle + 1 } else { 0 };
        }
        assert!(direction.waiting <= direction.capacity);
        drop(sender);
        let mut receiver = receiver;
        receiver.set_nonblocking(true).unwrap();
        let (mut all, mut buffer) = (0, vec![0; 65_536]);
        while !direction.has_ended() || all < accepted {
            direction.pump(&from, &to).unwrap();
            all += receiver.read(&mut buffer).unwrap_or(0);
        }
        assert_eq!(all, accepted);
    }
}
