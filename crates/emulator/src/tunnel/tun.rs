//! TUN devices: what one sends, a program reads, and what a program writes, one receives.
//!
//! Source: `Documentation/networking/tuntap.rst` of Linux. A device that is set to persist is there
//! until its network namespace goes, whichever program is attached to it.

use std::fs::OpenOptions;
use std::io;

use rustix::ioctl::{IntegerSetter, Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, socket};

/// The device file that creates TUN devices.
const CONTROL: &str = "/dev/net/tun";
const TUNSETIFF: u32 = 0x4004_54ca;
const TUNSETPERSIST: u32 = 0x4004_54cb;
const SIOCSIFMTU: u32 = 0x8922;
/// A device of IP packets, and no header before each.
const IFF_TUN_NO_PI: i32 = 0x1001;

/// Linux's `ifreq`, with a number in it.
#[repr(C)]
struct Request {
    name: [u8; 16],
    value: i32,
    rest: [u8; 20],
}

impl Request {
    fn new(device: &str, value: i32) -> Self {
        let mut name = [0; 16];
        assert!(device.len() < name.len(), "{device}: too long for a device");
        name[..device.len()].copy_from_slice(device.as_bytes());
        Self {
            name,
            value,
            rest: [0; 20],
        }
    }
}

/// Makes a device in the calling thread's network namespace.
#[expect(
    unsafe_code,
    reason = "no crate in use wraps these calls; they read and write a request that outlives them"
)]
pub(crate) fn make(device: &str, mtu: u32) -> io::Result<()> {
    let control = OpenOptions::new().read(true).write(true).open(CONTROL);
    let control =
        control.map_err(|error| io::Error::new(error.kind(), format!("{CONTROL}: {error}")))?;
    let mut request = Request::new(device, IFF_TUN_NO_PI);
    unsafe {
        ioctl(&control, Updater::<TUNSETIFF, Request>::new(&mut request))?;
        ioctl(&control, IntegerSetter::<TUNSETPERSIST>::new_usize(1))?;
    }
    let mtu = i32::try_from(mtu).map_err(io::Error::other)?;
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = Request::new(device, mtu);
    unsafe { ioctl(any, Updater::<SIOCSIFMTU, Request>::new(&mut request))? };
    Ok(())
}
