//! A device of the emulator: frames come in and go out through a packet socket.
//!
//! The kernel stamps a frame when the host's device hands it over, so that the time at which a
//! packet arrives does not depend on when the emulator is given the processor. What the emulator
//! itself sends is not seen again. Frames are sent past the queueing discipline.

use std::fs::File;
use std::io::{self, IoSlice, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, MMsgHdr, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, netdevice,
    sendmmsg, socket_with, sockopt,
};

use crate::error::{Doing, EmulatorError};
pub(crate) use crate::packet_socket::receive_ring::Received;
use crate::packet_socket::receive_ring::Ring;
use crate::packet_socket::socket_options::{bind, set_option, take_drops};

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;
/// Bytes of the largest IP packet.
pub(crate) const MTU: usize = 1500;
/// All protocols.
const ETH_P_ALL: u16 = 3;
/// Bytes of frames that have been sent, but not yet taken by the other host.
const SEND_BUFFER: usize = 1 << 22;

/// A port through which frames come in and go out.
pub(crate) trait Port {
    /// Hands the next frame to `take`. False if there is none now.
    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> bool;

    /// Sends frames and says how many of them the kernel took.
    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize>;
}

/// A device of this namespace.
#[derive(Debug)]
pub(crate) struct PacketPort {
    socket: OwnedFd,
    ring: Ring,
    device: String,
    /// Counters of all devices of the namespace in which the port was opened.
    counters: File,
    /// Drops that the device had counted before.
    dropped_before: u64,
}

impl PacketPort {
    /// Opens a device of the calling thread's network namespace.
    pub fn open(device: &str) -> Result<Self, EmulatorError> {
        let opening = || format!("opening a packet socket on the device {device}");
        let mut port = Self::opened(device).doing(opening())?;
        port.dropped_before = port.device_drops().doing(opening())?;
        Ok(port)
    }

    fn opened(device: &str) -> io::Result<Self> {
        // Without a protocol, nothing arrives before the ring is there.
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = netdevice::name_to_index(&socket, device)?;
        let on: libc::c_int = 1;
        for option in [libc::PACKET_IGNORE_OUTGOING, libc::PACKET_QDISC_BYPASS] {
            set_option(socket.as_fd(), libc::SOL_PACKET, option, &on)?;
        }
        // Without the privilege, as much as an ordinary user may have.
        if sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER).is_err() {
            sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER)?;
        }
        let ring = Ring::new(socket.as_fd())?;
        bind(socket.as_fd(), ETH_P_ALL, index)?;
        Ok(Self {
            socket,
            ring,
            device: device.into(),
            counters: File::open("/proc/thread-self/net/dev")?,
            dropped_before: 0,
        })
    }

    /// Frames that the kernel dropped since the last question: because the ring was full, or
    /// between the two devices of the pair.
    pub fn take_kernel_drops(&mut self) -> io::Result<u64> {
        let ring = take_drops(self.socket.as_fd())?;
        let device = self.device_drops()?;
        let since = device - self.dropped_before;
        self.dropped_before = device;
        Ok(ring + since)
    }

    /// The device's counts of drops on receiving and on sending.
    fn device_drops(&mut self) -> io::Result<u64> {
        self.counters.rewind()?;
        let mut table = String::new();
        self.counters.read_to_string(&mut table)?;
        drops_of(&table, &self.device)
            .ok_or_else(|| io::Error::other(format!("the device {} is gone", self.device)))
    }
}

/// The sum of both columns `drop` of a device in `/proc/net/dev`.
fn drops_of(table: &str, device: &str) -> Option<u64> {
    let (_, columns) = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == device)?;
    let columns: Vec<&str> = columns.split_whitespace().collect();
    let [received, sent] = [3, 11].map(|column| columns.get(column)?.parse::<u64>().ok());
    Some(received? + sent?)
}

impl Port for PacketPort {
    fn receive(&mut self, take: &mut dyn FnMut(Received<'_>)) -> bool {
        self.ring.next(take)
    }

    fn send(&mut self, frames: &[&[u8]]) -> io::Result<usize> {
        let parts: Vec<[IoSlice<'_>; 1]> =
            frames.iter().map(|frame| [IoSlice::new(frame)]).collect();
        let mut controls: Vec<SendAncillaryBuffer<'_, '_, '_>> = Vec::new();
        controls.resize_with(frames.len(), SendAncillaryBuffer::default);
        let mut messages: Vec<MMsgHdr<'_>> = parts
            .iter()
            .zip(&mut controls)
            .map(|(parts, control)| MMsgHdr::new(parts, control))
            .collect();
        Ok(sendmmsg(&self.socket, &mut messages, SendFlags::empty())?)
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_device_are_those_of_both_columns() {
        let table = "Inter-|   Receive                                                |  \
                     Transmit\n face |bytes    packets errs drop fifo frame compressed \
                     multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
                     lo:       0       1    2    3    4     5          6         7        8        \
                     9    10    11    12     13       14          15\n  sat0:      0       1    \
                     2   40    4     5          6         7        8        9    10    2    12     \
                     13       14          15\n";
        assert_eq!(drops_of(table, "sat0"), Some(42));
        assert_eq!(drops_of(table, "lo"), Some(14));
        assert_eq!(drops_of(table, "sat"), None);
    }
}
