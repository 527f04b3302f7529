//! Offloads of devices, switched off: with it, packets of a virtual device arrive
//! merged, or without checksums.

use std::io;

use rustix::ioctl::{Updater, ioctl};
use rustix::net::{AddressFamily, SocketType, socket};

/// Linux's `SIOCETHTOOL`, and the commands of `linux/ethtool.h` that take 0 or 1.
const SIOCETHTOOL: u32 = 0x8946;
const RECEIVE_CHECKSUMS: u32 = 0x15;
const SEND_CHECKSUMS: u32 = 0x17;
const SCATTER: u32 = 0x19;
const TCP_SEGMENTATION: u32 = 0x1f;
const SEGMENTATION: u32 = 0x24;
const MERGING: u32 = 0x2c;

#[repr(C)]
struct Setting {
    command: u32,
    value: u32,
}

/// Linux's `ifreq`.
#[repr(C)]
struct Request {
    name: [u8; 16],
    setting: *mut Setting,
    rest: [u8; 16],
}

/// Switches all of it off, for a device of the calling thread's network namespace.
pub(crate) fn switch_off(device: &str) -> io::Result<()> {
    for command in [
        SEND_CHECKSUMS,
        RECEIVE_CHECKSUMS,
        TCP_SEGMENTATION,
        SEGMENTATION,
        MERGING,
        SCATTER,
    ] {
        set(device, Setting { command, value: 0 })?;
    }
    Ok(())
}

#[expect(
    unsafe_code,
    reason = "no crate in use wraps this call; it reads a name and a setting that both outlive it"
)]
fn set(device: &str, mut setting: Setting) -> io::Result<()> {
    let mut name = [0; 16];
    assert!(device.len() < name.len(), "{device}: too long for a device");
    name[..device.len()].copy_from_slice(device.as_bytes());
    let mut request = Request {
        name,
        setting: &raw mut setting,
        rest: [0; 16],
    };
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    unsafe { ioctl(any, Updater::<SIOCETHTOOL, Request>::new(&mut request))? };
    Ok(())
}
