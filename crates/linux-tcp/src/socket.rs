//! Sockets of TCP, with what is set of each.

use std::fs;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_congestion, set_tcp_nodelay};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// A folder that only a guest's kernel has.
const GUEST: &str = "/sys/module/ttnet";
/// Connections that wait to be accepted, with those whose handshake is under way. The kernel takes
/// no more than `somaxconn`.
const BACKLOG: i32 = 65_535;

/// A kind of sockets: what is set of each.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the kernel's, on or off"
)]
pub struct SocketKind {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// Whether it may have any address, its host's or not (`IP_TRANSPARENT`, ip(7)).
    pub transparent: bool,
    /// Whether calls answer at once when there is nothing to do yet.
    pub nonblocking: bool,
    /// Bytes per second that the kernel paces packets to at most (`SO_MAX_PACING_RATE`); with
    /// [`UNBOUNDED`] it paces at a rate of its own. None: it paces if the congestion control asks.
    pub pacing: Option<u64>,
    /// Whether a SYN carries what is written first, where the namespace allows it
    /// ([`NamespaceSettings::fast_open`](crate::NamespaceSettings::fast_open)).
    pub fast_open: bool,
    /// Whether a connection may have several subflows (`IPPROTO_MPTCP`). One whose peer has no
    /// MPTCP is one of TCP.
    pub multipath: bool,
}

/// A bound of pacing that is none. The kernel takes one more for no wish to be paced.
pub const UNBOUNDED: u64 = u64::MAX - 1;

impl SocketKind {
    /// A socket of the version of IP of `address`.
    pub fn make(&self, address: SocketAddr) -> Result<OwnedFd, EndpointError> {
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, self.nonblocking);
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let protocol = self.multipath.then_some(ipproto::MPTCP);
        let socket = socket_with(family, SocketType::STREAM, flags, protocol)
            .map_err(failed("making a socket"))?;
        set_tcp_congestion(&socket, &self.congestion)
            .map_err(failed("choosing the congestion control"))?;
        set_tcp_nodelay(&socket, true).map_err(failed("making a socket"))?;
        if self.transparent {
            set_transparent(&socket, address).map_err(failed("taking other addresses"))?;
        }
        if let Some(rate) = self.pacing {
            set_pacing(&socket, rate).map_err(failed("pacing"))?;
        }
        if self.fast_open {
            let on: libc::c_int = 1;
            set_option(&socket, (libc::SOL_TCP, libc::TCP_FASTOPEN_CONNECT), on)
                .map_err(failed("opening fast"))?;
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

fn set_transparent(socket: &OwnedFd, address: SocketAddr) -> Result<(), Errno> {
    let option = match address {
        SocketAddr::V4(_) => (libc::SOL_IP, libc::IP_TRANSPARENT),
        SocketAddr::V6(_) => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT),
    };
    let on: libc::c_int = 1;
    set_option(socket, option, on)
}

/// Has a connection send no more than `rate` bytes per second (`SO_MAX_PACING_RATE`, socket(7)).
pub fn set_pacing(socket: &OwnedFd, rate: u64) -> Result<(), Errno> {
    set_option(socket, (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE), rate)
}

/// Marks what leaves by a socket, for rules of routing (`SO_MARK`, socket(7)).
pub fn set_mark(socket: &OwnedFd, mark: u32) -> Result<(), Errno> {
    set_option(socket, (libc::SOL_SOCKET, libc::SO_MARK), mark)
}

/// An instruction of a filter: code, jumps if it holds and if not, and its number (linux/filter.h).
pub type Instruction = (u32, u8, u8, u32);

/// Lets a socket have only packets that a program of the classic packet filter returns not 0 for
/// (`SO_ATTACH_FILTER`, socket(7)).
pub fn attach_filter(socket: &OwnedFd, program: &[Instruction]) -> Result<(), Errno> {
    let step = |&(code, jt, jf, k): &Instruction| libc::sock_filter {
        code: u16::try_from(code).expect("codes are of 16 bits"),
        jt,
        jf,
        k,
    };
    let steps: Vec<_> = program.iter().map(step).collect();
    let program = libc::sock_fprog {
        len: u16::try_from(steps.len()).expect("a short program"),
        filter: steps.as_ptr().cast_mut(), // which the kernel copies
    };
    set_option(socket, (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER), program)
}

/// Takes the filter off again.
pub fn detach_filter(socket: &OwnedFd) -> Result<(), Errno> {
    let nothing: libc::c_int = 0;
    set_option(socket, (libc::SOL_SOCKET, libc::SO_DETACH_FILTER), nothing)
}

/// An option of a socket, by its level and name, of which the kernel reads a `T`.
#[expect(unsafe_code, reason = "no crate here knows these options")]
fn set_option<T: Copy>(
    socket: &OwnedFd,
    (level, name): (libc::c_int, libc::c_int),
    value: T,
) -> Result<(), Errno> {
    let length = libc::socklen_t::try_from(size_of_val(&value)).expect("a few bytes");
    // SAFETY: the value has this length, and lives until the call returns.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(&value).cast(),
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
