//! Options of packet sockets, which no safe wrapper knows.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_void, socklen_t};

/// Sets an option, whose value must be of the type that the kernel takes for it.
#[expect(unsafe_code, reason = "setsockopt, for options without a safe wrapper")]
pub(crate) fn set_option<T: Copy>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the given length of the value.
    let result = unsafe {
        let value = (&raw const *value).cast::<c_void>();
        libc::setsockopt(socket.as_raw_fd(), level, name, value, length::<T>())
    };
    done(result)
}

/// Frames that overflowed the kernel's buffer since the last call.
#[expect(
    unsafe_code,
    reason = "getsockopt, for an option without a safe wrapper"
)]
pub(crate) fn take_drops(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut statistics = MaybeUninit::<libc::tpacket_stats>::zeroed();
    let mut bytes = length::<libc::tpacket_stats>();
    // SAFETY: the kernel writes at most `bytes` bytes; the struct is two integers, which may be
    // zero.
    let (result, statistics) = unsafe {
        let value = statistics.as_mut_ptr().cast::<c_void>();
        let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
        let result = libc::getsockopt(socket.as_raw_fd(), level, name, value, &raw mut bytes);
        (result, statistics.assume_init())
    };
    done(result)?;
    Ok(u64::from(statistics.tp_drops))
}

/// Binds a packet socket to a device.
#[expect(unsafe_code, reason = "bind, for an address without a safe wrapper")]
pub(crate) fn bind(socket: BorrowedFd<'_>, protocol: u16, device: u32) -> io::Result<()> {
    let mut address = MaybeUninit::<libc::sockaddr_ll>::zeroed();
    // SAFETY: the struct is integers, which may be zero; the kernel reads its bytes.
    let result = unsafe {
        let address = address.assume_init_mut();
        address.sll_family = u16::try_from(libc::AF_PACKET).expect("a small constant");
        address.sll_protocol = protocol.to_be();
        address.sll_ifindex = c_int::try_from(device).map_err(io::Error::other)?;
        let address = (&raw const *address).cast::<libc::sockaddr>();
        libc::bind(socket.as_raw_fd(), address, length::<libc::sockaddr_ll>())
    };
    done(result)
}

fn length<T>() -> socklen_t {
    socklen_t::try_from(size_of::<T>()).expect("options are small")
}

fn done(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
