//! The two pipes to the coordinator (`endpoints/CONTRACT.md`), and the memory that is shared with
//! it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};

use memmap2::{MmapMut, MmapOptions};

use crate::contract::{
    BODY_LIMIT, HEADER_LEN, READY, SHARED, SHARED_FROM, SharedMemory, decode_header, encode_header,
};
use crate::error::EndpointError;

/// The size of a pipe's buffer, so that an epoch's datagrams come in few reads.
const INBOX_BYTES: usize = 1 << 20;

/// The two pipes of the contract: messages in, messages out.
#[derive(Debug)]
pub struct Pipes<R = File, W = File> {
    from: R,
    to: W,
    /// The same memory for every message.
    inbox: Vec<u8>,
    /// Bytes of the inbox that have been read.
    filled: usize,
    /// Bytes of it that belong to the message that was returned last.
    returned: usize,
    /// The half of shared memory for bodies to this program.
    shared_in: Option<MmapMut>,
    /// The half for bodies from it, until it is taken.
    shared_out: Option<MmapMut>,
}

impl Pipes {
    /// File descriptors 3 and 4. To be called once, before any file is opened.
    #[must_use]
    #[expect(
        unsafe_code,
        reason = "descriptors that a process is born with have no owner yet"
    )]
    pub fn inherited() -> Self {
        // SAFETY: nothing else in this process owns these two; if they are not open, reading says
        // so.
        unsafe { Self::new(File::from_raw_fd(3), File::from_raw_fd(4)) }
    }
}

impl<R: Read, W: Write> Pipes<R, W> {
    /// Any two streams of bytes.
    pub fn new(from: R, to: W) -> Self {
        Self {
            from,
            to,
            inbox: vec![0; INBOX_BYTES],
            filled: 0,
            returned: 0,
            shared_in: None,
            shared_out: None,
        }
    }

    /// Maps the memory that HELLO offers, if it offers any, and says whether it did. Where the
    /// descriptor is not that memory, as behind a program that passes on the first four alone, all
    /// messages go through the pipes. To be called once.
    #[expect(
        unsafe_code,
        reason = "a descriptor that a process is born with has no owner yet, and memory is shared \
                  with the coordinator"
    )]
    pub fn share(&mut self, offer: Option<SharedMemory>) -> Result<bool, EndpointError> {
        if let Some(SharedMemory { fd, bytes }) = offer
            && is_of_size(fd, bytes)
        {
            // SAFETY: it is open, HELLO says what it is for, and nothing else here owns it.
            let memory = unsafe { OwnedFd::from_raw_fd(fd) };
            let half = bytes / 2;
            let map = |start: usize| {
                let mut place = MmapOptions::new();
                place.offset(start as u64).len(half);
                // SAFETY: it never shrinks (sealed), and coordinator and program take turns with
                // it: the one that waits for a message does not touch it.
                let mapped = unsafe { place.map_mut(&memory) };
                mapped.map_err(EndpointError::io("mapping shared memory"))
            };
            self.shared_in = Some(map(0)?);
            self.shared_out = Some(map(half)?);
        }
        Ok(self.shared_in.is_some())
    }

    /// Gives away the shared memory for bodies from this program, if there is some: whoever has it
    /// puts them there, and all that [`Pipes::send`] is given goes through the pipe.
    pub fn take_shared_out(&mut self) -> Option<MmapMut> {
        self.shared_out.take()
    }

    /// The next message's type and body; `None` if the coordinator has gone away.
    pub fn receive(&mut self) -> Result<Option<(u8, &[u8])>, EndpointError> {
        if self.filled > self.returned {
            self.inbox.copy_within(self.returned..self.filled, 0);
        }
        self.filled -= std::mem::take(&mut self.returned);
        if !self.fill(HEADER_LEN)? {
            return Ok(None);
        }
        let (length, kind) = decode_header(&self.inbox)?;
        if length > BODY_LIMIT {
            return Err(EndpointError::Conversation(format!(
                "a message of {length} bytes"
            )));
        }
        if kind & SHARED != 0 {
            self.returned = HEADER_LEN;
            let body = self.shared_in.as_deref().unwrap_or_default().get(..length);
            let what = || format!("a message of {length} bytes in shared memory");
            let body = body.ok_or_else(|| EndpointError::Conversation(what()))?;
            return Ok(Some((kind & !SHARED, body)));
        }
        if !self.fill(HEADER_LEN + length)? {
            return Ok(None);
        }
        self.returned = HEADER_LEN + length;
        Ok(Some((kind, &self.inbox[HEADER_LEN..self.returned])))
    }

    /// Sends a whole message, or the header alone of one whose body is in shared memory.
    pub fn send(&mut self, message: &[u8]) -> Result<(), EndpointError> {
        let mut message = message;
        let header;
        let (kind, body) = (message[HEADER_LEN - 1], &message[HEADER_LEN..]);
        // The coordinator learns from READY that the memory is used.
        let is_long = kind != READY && body.len() >= SHARED_FROM;
        if is_long
            && let Some(memory) = &mut self.shared_out
            && let Some(place) = memory.get_mut(..body.len())
        {
            place.copy_from_slice(body);
            header = encode_header(body.len(), kind | SHARED);
            message = &header;
        }
        self.to
            .write_all(message)
            .map_err(EndpointError::io("writing to file descriptor 4"))
    }

    /// Reads until there are `size` bytes; `false` if the end comes before.
    fn fill(&mut self, size: usize) -> Result<bool, EndpointError> {
        if self.inbox.len() < size {
            self.inbox.resize(size, 0);
        }
        while self.filled < size {
            match self.from.read(&mut self.inbox[self.filled..]) {
                Ok(0) => return Ok(false),
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(EndpointError::io("reading file descriptor 3")(error)),
            }
        }
        Ok(true)
    }
}

/// Whether a descriptor is open, and of a file of that size.
#[expect(unsafe_code, reason = "a number may be no descriptor of this process")]
fn is_of_size(fd: i32, bytes: usize) -> bool {
    // SAFETY: `stat` is plain data, for which zeros are a value, and the call fills it or fails.
    let (result, status) = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(fd, &raw mut status), status)
    };
    result == 0 && usize::try_from(status.st_size) == Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::fd::IntoRawFd;

    use super::*;
    use crate::contract::{FINISH, RAN, RUN, Ran, RanMessage, encode_message};

    /// Pipes with 8 KiB of shared memory, and another mapping of it.
    fn sharing<R: Read>(from: R) -> (Pipes<R, Vec<u8>>, MmapMut) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        #[expect(unsafe_code, reason = "memory is mapped twice")]
        // SAFETY: the two are used in turn, in one thread.
        let other = unsafe { MmapMut::map_mut(&file) }.unwrap();
        let mut pipes = Pipes::new(from, Vec::new());
        let offer = SharedMemory {
            fd: file.into_raw_fd(),
            bytes: 8192,
        };
        assert!(pipes.share(Some(offer)).unwrap());
        (pipes, other)
    }

    #[test]
    fn long_bodies_are_in_the_halves_of_shared_memory() {
        let header = encode_header(3000, RUN | SHARED);
        let all = [&header[..], &encode_message(FINISH, b"")].concat();
        let (mut pipes, mut memory) = sharing(&all[..]);
        memory[..3000].fill(7);
        assert_eq!(pipes.receive().unwrap(), Some((RUN, &[7; 3000][..])));
        assert_eq!(pipes.receive().unwrap(), Some((FINISH, &b""[..])));
        for (kind, length) in [(RAN, 4096), (RAN, 4097), (RAN, 2047), (READY, 3000)] {
            let message = encode_message(kind, &vec![9; length]);
            pipes.to.clear();
            pipes.send(&message).unwrap();
            if (kind, length) == (RAN, 4096) {
                assert_eq!(pipes.to, encode_header(length, kind | SHARED));
                assert_eq!(memory[4096..], [9; 4096]);
            } else {
                assert_eq!(pipes.to, message, "{kind} of {length} bytes");
            }
        }
    }

    #[test]
    fn departures_are_put_where_the_coordinator_reads_them() {
        let (mut pipes, memory) = sharing(&b""[..]);
        let mut ran = RanMessage::with_body_in(pipes.take_shared_out());
        // 13 bytes, and 1011 for each; from 2048 to 4096 they are in shared memory.
        for (count, is_shared) in [(0, false), (1, false), (3, true), (4, true), (5, false)] {
            ran.clear();
            for number in 0..count {
                ran.push(number, 2, &[b'a'; 1000]);
            }
            pipes.to.clear();
            pipes.send(ran.finish(7, true)).unwrap();
            let (length, kind) = decode_header(&pipes.to).unwrap();
            let body = if is_shared {
                assert_eq!((kind, pipes.to.len()), (RAN | SHARED, HEADER_LEN));
                &memory[4096..][..length]
            } else {
                assert_eq!((kind, pipes.to.len()), (RAN, HEADER_LEN + length));
                &pipes.to[HEADER_LEN..]
            };
            let read = Ran::decode(body).unwrap();
            assert_eq!((read.next_wake, read.done), (7, true));
            assert!(read.departures.iter().map(|it| it.time).eq(0..count));
            for departure in read.departures {
                assert_eq!(body[departure.payload], [b'a'; 1000]);
            }
        }
    }

    #[test]
    fn a_body_beyond_its_half_or_without_memory_is_refused() {
        let header = encode_header(4097, RUN | SHARED);
        let error = sharing(&header[..]).0.receive().unwrap_err();
        assert!(error.to_string().contains("4097 bytes in shared memory"));
        assert!(Pipes::new(&header[..], Vec::new()).receive().is_err());
    }

    #[test]
    fn what_is_not_the_memory_is_left_alone() {
        for (fd, bytes) in [(-1, 8192), (987, 8192), (0, 1 << 40)] {
            let mut pipes = Pipes::new(&b""[..], Vec::new());
            assert!(!pipes.share(Some(SharedMemory { fd, bytes })).unwrap());
        }
    }

    #[test]
    fn messages_come_one_by_one_however_they_are_cut() {
        let large = vec![7; 3 * INBOX_BYTES];
        let messages = [
            encode_message(RUN, b"one"),
            encode_message(RUN, &large),
            encode_message(FINISH, b""),
        ];
        let all = messages.concat();
        let (start, end) = all.split_at(INBOX_BYTES + 1);
        let mut pipes = Pipes::new(start.chain(end), Vec::new());
        assert_eq!(pipes.receive().unwrap(), Some((RUN, &b"one"[..])));
        assert_eq!(pipes.receive().unwrap(), Some((RUN, &large[..])));
        assert_eq!(pipes.receive().unwrap(), Some((FINISH, &b""[..])));
        assert_eq!(pipes.receive().unwrap(), None);
    }

    #[test]
    fn an_end_within_a_message_is_an_end() {
        let message = encode_message(RUN, b"one");
        for cut in 0..message.len() {
            assert_eq!(
                Pipes::new(&message[..cut], Vec::new()).receive().unwrap(),
                None
            );
        }
    }

    #[test]
    fn a_message_of_absurd_length_is_refused() {
        let header = [0xff, 0xff, 0xff, 0xff, RUN];
        let error = Pipes::new(&header[..], Vec::new()).receive().unwrap_err();
        assert!(error.to_string().contains("4294967295 bytes"), "{error}");
    }
}
