//! Sockets of TCP, with what is set of each.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_congestion, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// What only a guest's kernel has.
const GUEST: &str = "/sys/module/ttnet";
/// Connections that wait to be accepted, with those whose handshake is under way. The kernel takes no
/// more than `somaxconn`.
const BACKLOG: i32 = 65_535;

/// A kind of sockets: what is set of each.
#[derive(Debug, Clone)]
pub struct SocketKind {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// Whether it may have any address, its host's or not (`IP_TRANSPARENT`, ip(7)).
    pub transparent: bool,
    /// Whether calls answer at once when there is nothing to do yet.
    pub nonblocking: bool,
}

impl SocketKind {
    /// A socket of the version of IP of `address`.
    pub fn make(&self, address: SocketAddr) -> Result<OwnedFd, EndpointError> {
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, self.nonblocking);
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket_with(family, SocketType::STREAM, flags, None)
            .map_err(failed("making a socket"))?;
        set_tcp_congestion(&socket, &self.congestion)
            .map_err(failed("choosing the congestion control"))?;
        set_tcp_nodelay(&socket, true).map_err(failed("making a socket"))?;
        if self.transparent {
            set_transparent(&socket, address).map_err(failed("taking other addresses"))?;
        }
        Ok(socket)
    }

    /// One that accepts connections to `local`, which inherit what is set.
    pub fn listen(&self, local: SocketAddr) -> Result<OwnedFd, EndpointError> {
        let socket = self.make(local)?;
        set_socket_reuseaddr(&socket, true).map_err(failed("listening"))?;
        bind(&socket, &local).map_err(failed("listening"))?;
        listen(&socket, BACKLOG).map_err(failed("listening"))?;
        Ok(socket)
    }
}

/// The kernel's name of a congestion control. Where it is missing, the error names those that are
/// there.
pub fn congestion_control(name: &str) -> Result<String, EndpointError> {
    let wanted = if name == "newreno" { "reno" } else { name };
    let available = fs::read_to_string(AVAILABLE).map_err(EndpointError::file(AVAILABLE))?;
    if available.split_whitespace().any(|it| it == wanted) {
        return Ok(wanted.to_owned());
    }
    let there = available
        .trim()
        .replace("reno", "newreno")
        .replace(' ', ", ");
    let hint = if Path::new(GUEST).exists() {
        "guest/kernel.config names those of guests".to_owned()
    } else {
        format!("sudo modprobe tcp_{wanted} loads one more")
    };
    Err(EndpointError::Unsupported(format!(
        "option cc = {name:?}: this kernel has {there} (hint: {hint})"
    )))
}

#[expect(unsafe_code, reason = "no crate here knows IPV6_TRANSPARENT")]
fn set_transparent(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    let (level, name) = match address {
        SocketAddr::V4(_) => (libc::SOL_IP, libc::IP_TRANSPARENT),
        SocketAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
    };
    let on: libc::c_int = 1;
    let length = libc::socklen_t::try_from(size_of_val(&on)).expect("four bytes");
    // SAFETY: the value is an int, and lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&on).cast(),
            length,
        )
    };
    if result == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// An error of a system call.
fn failed(what: &'static str) -> impl FnOnce(Errno) -> EndpointError {
    move |error| EndpointError::Io {
        what,
        source: error.into(),
    }
}
