//! One direction of a pair of connections: bytes from one socket wait in memory, bounded, for the
//! other.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, read, write};
use rustix::net::{Shutdown, shutdown};

/// A direction under way.
#[derive(Debug)]
pub struct BufferedDirection {
    /// All the room that there is. The system gives memory as it is used.
    buffer: Vec<u8>,
    /// Where in it the bytes begin and end that wait.
    waiting: std::ops::Range<usize>,
    /// The sender has said that no more will come.
    is_ending: bool,
    /// The receiver was told so.
    has_ended: bool,
    /// Bytes that went through.
    pub carried: u64,
}

impl BufferedDirection {
    /// One in which so many bytes may wait.
    pub fn new(buffer: usize) -> Self {
        Self {
            buffer: vec![0; buffer],
            waiting: 0..0,
            is_ending: false,
            has_ended: false,
            carried: 0,
        }
    }

    /// Whether all that was ever to come has gone through, and its end as well.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Moves what can be moved now; whether there was anything. An error is one of the connections'.
    pub fn pump(&mut self, from: &OwnedFd, to: &OwnedFd) -> Result<bool, Errno> {
        let came = self.fill(from)?;
        let went = self.drain(to)?;
        if self.is_ending && self.waiting.is_empty() && !self.has_ended {
            shutdown(to, Shutdown::Write)?;
            self.has_ended = true;
        }
        Ok(came || went)
    }

    fn fill(&mut self, from: &OwnedFd) -> Result<bool, Errno> {
        if self.waiting.is_empty() {
            self.waiting = 0..0;
        } else if self.waiting.end == self.buffer.len() {
            self.buffer.copy_within(self.waiting.clone(), 0);
            self.waiting = 0..self.waiting.len();
        }
        if self.is_ending || self.waiting.end == self.buffer.len() {
            return Ok(false);
        }
        match now(|| read(from, &mut self.buffer[self.waiting.end..]))? {
            Some(0) => self.is_ending = true,
            Some(count) => self.waiting.end += count,
            None => return Ok(false),
        }
        Ok(true)
    }

    fn drain(&mut self, to: &OwnedFd) -> Result<bool, Errno> {
        if self.waiting.is_empty() {
            return Ok(false);
        }
        let Some(count) = now(|| write(to, &self.buffer[self.waiting.clone()]))? else {
            return Ok(false); // until the receiver takes more
        };
        self.waiting.start += count;
        self.carried += count as u64;
        Ok(true)
    }
}

/// What a system call did; None: it would have to wait.
fn now(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<Option<usize>, Errno> {
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
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    const BUFFER: usize = 4096;

    fn socket_pair() -> (OwnedFd, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        own.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        (own.into(), other)
    }

    #[test]
    fn bytes_and_their_end_go_through() {
        let (from, mut sender) = socket_pair();
        let (to, mut receiver) = socket_pair();
        let mut direction = BufferedDirection::new(BUFFER);
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
        let (to, mut receiver) = socket_pair();
        let mut direction = BufferedDirection::new(BUFFER);
        let (chunk, mut accepted) = (vec![7; 65_536], 0);
        loop {
            let count = sender.write(&chunk).unwrap_or(0);
            accepted += count;
            if !direction.pump(&from, &to).unwrap() && count == 0 {
                break;
            }
        }
        assert_eq!(direction.waiting.len(), BUFFER);
        drop(sender);
        let (mut all, mut taken) = (0, vec![0; 65_536]);
        while !direction.has_ended() || all < accepted {
            all += receiver.read(&mut taken).unwrap_or(0);
            direction.pump(&from, &to).unwrap();
        }
        assert_eq!(all, accepted);
    }

    #[test]
    fn a_full_buffer_that_empties_at_once_is_not_the_last() {
        let (from, mut sender) = socket_pair();
        let (to, mut receiver) = socket_pair();
        let mut direction = BufferedDirection::new(BUFFER);
        sender.write_all(&vec![7; 2 * BUFFER]).unwrap();
        // Each call says that there may be more, until there is none: no event will come for it.
        while direction.pump(&from, &to).unwrap() {}
        let mut taken = vec![0; 4 * BUFFER];
        assert_eq!(receiver.read(&mut taken).unwrap(), 2 * BUFFER);
    }
}
