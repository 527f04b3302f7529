//! The file of a TUN device: a read takes a packet of the kernel's, a write hands it one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

use bentpipe_endpoint::EndpointError;
use rustix::io::Errno;

/// The largest packet of a device.
pub const MOST: usize = 65_535;

/// A device's file, which does not block.
pub struct TunFile {
    file: File,
    buffer: Vec<u8>,
}

impl TunFile {
    pub fn new(file: File) -> Self {
        Self {
            file,
            buffer: vec![0; MOST],
        }
    }

    /// The next packet; `None`: there is none. An error is one of the device, which is gone.
    pub fn read(&mut self) -> Result<Option<&[u8]>, EndpointError> {
        match self.file.read(&mut self.buffer) {
            Ok(length) => Ok(Some(&self.buffer[..length])),
            Err(error) if will_pass(&error) => Ok(None),
            Err(error) => Err(EndpointError::io(
                "reading from the TUN device, which must not be deleted",
            )(error)),
        }
    }

    /// Hands a packet to the kernel; `false`: it has no room for it.
    pub fn write(&mut self, packet: &[u8]) -> Result<bool, EndpointError> {
        match self.file.write(packet) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(EndpointError::io("writing to the TUN device")(error)),
        }
    }
}

/// Whether an error of reading says nothing about later reads: there is no packet, the device is
/// down, or there is no memory.
fn will_pass(error: &io::Error) -> bool {
    let passing = [
        Errno::AGAIN,
        Errno::INTR,
        Errno::IO,
        Errno::NOBUFS,
        Errno::NOMEM,
    ];
    Errno::from_io_error(error).is_some_and(|it| passing.contains(&it))
}

impl AsFd for TunFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
