//! The bytes that a program has sent: read into large blocks, of which messages, and the packets in
//! them, are parts. From there on no packet is copied.

use std::os::fd::AsFd;

use bytes::{Bytes, BytesMut};
use rustix::io::Errno;

/// Bytes in a block: many epochs, so that memory is asked for rarely.
const BLOCK: usize = 8 << 20;

/// The bytes that have come and were not taken.
#[derive(Debug, Default)]
pub struct Inbox {
    block: BytesMut,
}

impl Inbox {
    /// The bytes, in order.
    pub fn bytes(&self) -> &[u8] {
        &self.block
    }

    /// Reads what there is, up to the room of a message of `size` bytes in all, or more. Returns
    /// how many bytes came, 0 at the end.
    #[expect(unsafe_code, reason = "what is read need not be zeroed before")]
    pub fn read(&mut self, from: &impl AsFd, size: usize) -> Result<usize, Errno> {
        if self.block.capacity() < size.max(self.block.len() + 1) {
            self.begin_block(size);
        }
        let (come, _) = rustix::io::read(from, self.block.spare_capacity_mut())?;
        let count = come.len();
        // SAFETY: so many bytes of the spare capacity have just been written.
        unsafe { self.block.set_len(self.block.len() + count) };
        Ok(count)
    }

    /// Has `write` append a body of `size` bytes behind what has come.
    pub fn append(&mut self, size: usize, write: impl FnOnce(&mut BytesMut)) {
        let size = self.block.len() + size;
        if self.block.capacity() < size {
            self.begin_block(size);
        }
        write(&mut self.block);
    }

    /// Takes the first of what has come.
    pub fn take(&mut self, count: usize) -> Bytes {
        self.block.split_to(count).freeze()
    }

    fn begin_block(&mut self, size: usize) {
        let mut next = BytesMut::with_capacity(size.max(self.block.len() + 1).max(BLOCK));
        next.extend_from_slice(&self.block);
        self.block = next;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn come(inbox: &mut Inbox, size: usize, bytes: &[u8]) {
        let (from, to) = std::io::pipe().unwrap();
        std::thread::scope(|threads| {
            threads.spawn(move || { to }.write_all(bytes).unwrap());
            let before = inbox.bytes().len();
            while inbox.bytes().len() < before + bytes.len() {
                assert_ne!(inbox.read(&from, size), Ok(0));
            }
            assert_eq!(inbox.read(&from, size), Ok(0), "the end");
        });
    }

    #[test]
    fn what_was_taken_stays_as_it_was() {
        let mut inbox = Inbox::default();
        come(&mut inbox, 5, b"onetwo");
        let one = inbox.take(3);
        assert_eq!(inbox.bytes(), b"two");
        let long = vec![7; BLOCK];
        come(&mut inbox, BLOCK + 3, &long);
        let (two, seven) = (inbox.take(3), inbox.take(BLOCK));
        come(&mut inbox, 1, b"!");
        assert_eq!((&one[..], &two[..]), (&b"one"[..], &b"two"[..]));
        assert_eq!((&seven[..], inbox.bytes()), (&long[..], &b"!"[..]));
    }
}
