//! Memory that the kernel shares with a packet socket: it writes arriving frames there, each into a
//! slot of its own.
//!
//! A ring needs no privilege beyond that of the socket, while the limit of a socket's buffer, which
//! an ordinary user cannot raise, would hold some two hundred frames.
//!
//! Source: `Documentation/networking/packet_mmap.rst` of Linux, version 2 of the ring. A slot is
//! the kernel's while its status is zero, and ours until we write zero there.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{TP_STATUS_CSUMNOTREADY, TP_STATUS_USER, tpacket_req, tpacket2_hdr};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::packet_socket::socket_options::set_option;

/// Bytes of a slot: the kernel's header and a frame of 1514 bytes fit.
const SLOT: usize = 2048;
/// 39 ms at 1 Gbit/s, if a packet has 1200 bytes.
const SLOTS: usize = 4096;
/// Bytes that the kernel allocates at a time.
const BLOCK: usize = 1 << 16;

/// The ring of one socket.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: NonNull<u8>,
    next: usize,
}

// The memory belongs to this ring alone.
#[expect(
    unsafe_code,
    reason = "a pointer to memory that is not shared with other threads"
)]
unsafe impl Send for Ring {}

/// A frame as the kernel has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    /// The time at which the kernel got it, in nanoseconds since the Unix epoch.
    pub stamp: u64,
    /// Its bytes, as far as the ring has them.
    pub frame: &'a [u8],
    /// Bytes on the wire.
    pub length: usize,
    /// A host left its checksum to a network card that is not there.
    pub unfinished: bool,
}

impl Ring {
    /// A ring for `socket`.
    #[expect(unsafe_code, reason = "memory that is shared with the kernel")]
    pub fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let size = |value: usize| libc::c_uint::try_from(value).expect("a small constant");
        let request = tpacket_req {
            tp_block_size: size(BLOCK),
            tp_block_nr: size(SLOT * SLOTS / BLOCK),
            tp_frame_size: size(SLOT),
            tp_frame_nr: size(SLOTS),
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let memory = unsafe { mmap(ptr::null_mut(), SLOT * SLOTS, protection, flags, socket, 0) }?;
        let memory = NonNull::new(memory.cast()).expect("a mapping is not at address zero");
        Ok(Self { memory, next: 0 })
    }

    /// Hands the next frame to `take`, and its slot back to the kernel. False if there is none.
    #[expect(unsafe_code, reason = "memory that is shared with the kernel")]
    pub fn next(&mut self, take: impl FnOnce(Received<'_>)) -> bool {
        let offset = self.next * SLOT;
        // SAFETY: `next` is below SLOTS, so the slot lies within the mapping, which lives as long
        // as `self`; the kernel starts every slot with the header, whose first field is the status,
        // aligned to SLOT bytes.
        let (header, status) = unsafe {
            let slot = self.memory.add(offset);
            (
                slot.cast::<tpacket2_hdr>(),
                AtomicU32::from_ptr(slot.cast::<u32>().as_ptr()),
            )
        };
        let state = status.load(Ordering::Acquire);
        if state & TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: while TP_STATUS_USER is set, the kernel leaves the slot alone; the frame that the
        // header tells of is cut to what lies within the slot.
        let received = unsafe {
            let header = header.read();
            let start = usize::from(header.tp_mac).min(SLOT);
            let length = usize::try_from(header.tp_snaplen).map_or(0, |it| it.min(SLOT - start));
            Received {
                stamp: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
                frame: slice::from_raw_parts(self.memory.add(offset + start).as_ptr(), length),
                length: usize::try_from(header.tp_len).expect("32 bits fit"),
                unfinished: state & TP_STATUS_CSUMNOTREADY != 0,
            }
        };
        take(received);
        status.store(0, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        true
    }
}

impl Drop for Ring {
    #[expect(unsafe_code, reason = "memory that is shared with the kernel")]
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; no frame outlives the call that it is handed
        // to.
        let result = unsafe { munmap(self.memory.as_ptr().cast::<c_void>(), SLOT * SLOTS) };
        result.expect("the mapping is ours");
    }
}
