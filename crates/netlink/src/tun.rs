//! TUN devices: what one sends, a program reads, and what a program writes, one receives.
//!
//! Source: `Documentation/networking/tuntap.rst` of Linux. A device that is set to persist is there
//! until its network namespace goes, whichever program is attached to it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::ioctl::{IntegerSetter, Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, socket};

/// The device file that creates TUN devices.
const CONTROL: &str = "/dev/net/tun";
const TUNSETIFF: u32 = 0x4004_54ca;
const TUNSETPERSIST: u32 = 0x4004_54cb;
const SIOCSIFMTU: u32 = 0x8922;
/// A device of IP packets, and no header before each.
const IFF_TUN_NO_PI: i32 = 0x1001;
/// One with several queues: each file that is attached has one.
const IFF_MULTI_QUEUE: i32 = 0x0100;

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

/// Makes a device in the calling thread's network namespace, to which other programs may attach.
#[expect(
    unsafe_code,
    reason = "no crate in use wraps this call, which takes a number"
)]
pub fn make(device: &str, mtu: u32) -> io::Result<()> {
    let control = open(device, mtu)?;
    unsafe { ioctl(&control, IntegerSetter::<TUNSETPERSIST>::new_usize(1))? };
    Ok(())
}

/// Makes a device that is there as long as the file: a read takes a packet from it, or says that it
/// would block, and a write gives it one.
pub fn open(device: &str, mtu: u32) -> io::Result<File> {
    let file = attach(device, IFF_TUN_NO_PI)?;
    set_mtu(device, mtu)?;
    Ok(file)
}

/// The same with several queues, for as many threads: the kernel puts packets of a flow into the
/// queue by which packets of that flow have come last.
pub fn open_queues(device: &str, mtu: u32, queues: usize) -> io::Result<Vec<File>> {
    let flags = IFF_TUN_NO_PI | IFF_MULTI_QUEUE;
    let files: io::Result<Vec<_>> = (0..queues).map(|_| attach(device, flags)).collect();
    let files = files?;
    set_mtu(device, mtu)?;
    Ok(files)
}

#[expect(
    unsafe_code,
    reason = "no crate in use wraps this call; it reads and writes a request that outlives it"
)]
fn attach(device: &str, flags: i32) -> io::Result<File> {
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nonblock)
        .open(CONTROL);
    let control =
        control.map_err(|error| io::Error::new(error.kind(), format!("{CONTROL}: {error}")))?;
    let mut request = Request::new(device, flags);
    unsafe { ioctl(&control, Updater::<TUNSETIFF, Request>::new(&mut request))? };
    Ok(control)
}

#[expect(
    unsafe_code,
    reason = "no crate in use wraps this call; it reads a request that outlives it"
)]
fn set_mtu(device: &str, mtu: u32) -> io::Result<()> {
    let mtu = i32::try_from(mtu).map_err(io::Error::other)?;
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = Request::new(device, mtu);
    unsafe { ioctl(any, Updater::<SIOCSIFMTU, Request>::new(&mut request))? };
    Ok(())
}
