//! Memory that the coordinator shares with a program, for the bodies of long messages: those to it
//! in the first half, those from it in the second.
//!
//! The pipes say whose turn it is: a message there names the length of a body here. A program is
//! not trusted to wait for its turn. So what it writes is copied before it is looked at, and what
//! is written for it is never read.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use bytes::BytesMut;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// Bytes of each half: almost three times what a path of 20 Mbit/s and 600 ms holds.
const HALF: usize = 4 << 20;

/// The memory of one program.
#[derive(Debug)]
pub struct SharedMemory {
    memory: MmapRaw,
}

impl SharedMemory {
    /// The bytes of it.
    pub const BYTES: usize = 2 * HALF;
    /// The bytes of the longest body; longer ones go through the pipes.
    pub const MOST: usize = HALF;

    /// New memory, and the descriptor by which a program maps it.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let file = memfd_create("bodies", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, Self::BYTES as u64)?;
        // A program that cut it short would kill whoever looks at what is gone.
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = MmapOptions::new()
            .len(Self::BYTES)
            .map_raw(file.as_raw_fd())?;
        Ok((Self { memory }, file))
    }

    /// The place for the body of a message to the program, if there is room.
    #[expect(unsafe_code, reason = "the memory is shared with another process")]
    pub fn outgoing(&mut self, length: usize) -> Option<&mut [u8]> {
        if length > HALF {
            return None;
        }
        // SAFETY: `length` bytes are within the mapping, and nothing else in this process refers to
        // them. They are only written here: a program that writes them too garbles what it reads.
        Some(unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr(), length) })
    }

    /// Appends a body of the program to `to`.
    ///
    /// # Panics
    /// If it is longer than [`Self::MOST`].
    #[expect(unsafe_code, reason = "the memory is shared with another process")]
    pub fn take(&self, length: usize, to: &mut BytesMut) {
        assert!(length <= HALF, "no body is so long");
        to.reserve(length);
        // SAFETY: the source lies within the mapping, whose size is sealed; the room was reserved
        // just now and is not part of a mapping. A program that writes meanwhile garbles its own
        // message, which is checked after this, in memory of ours.
        unsafe {
            let source = self.memory.as_ptr().add(HALF);
            let room = to.spare_capacity_mut().as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(source, room, length);
            to.set_len(to.len() + length);
        }
    }
}
