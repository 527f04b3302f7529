//! The set-up by a guest's first process: files, settings of the kernel, an address.

use std::fs;
use std::io;
use std::iter;
use std::net::IpAddr;
use std::path::Path;

use bentpipe_endpoint::EndpointError;
use bentpipe_netlink::{Netlink, Prefix};
use rustix::mount::{MountFlags, mount, mount_bind};

use super::{SHARED, set};
use crate::task::{Part, Task};

/// The place of the shared folder on the host, by the kernel's working directory: the same words in
/// each guest.
const SHARED_OUTSIDE: &str = "/proc/self/cwd";
const DEVICE: &str = "tt0";
/// A proxy's device towards the server.
const SERVER_SIDE: &str = "tt1";

/// Mounts what programs expect, and the shared folder.
pub(super) fn mount_all() -> Result<(), EndpointError> {
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
    ] {
        mount_one(kind, kind, place, None)?;
    }
    for place in [SHARED, "/run/home", "/run/tmp", "/dev/shm"] {
        fs::create_dir_all(place).map_err(EndpointError::file(place))?;
    }
    mount_one("tmpfs", "tmpfs", "/dev/shm", None)?;
    mount_one("hostfs", "none", SHARED, Some(SHARED_OUTSIDE))
}

/// Has folders of the host at places that are called the same in every guest.
pub(super) fn bind(task: &Task) -> Result<(), EndpointError> {
    for (place, folder) in &task.folders {
        fs::create_dir_all(place).map_err(EndpointError::file(place))?;
        mount_bind(folder, place)
            .map_err(io::Error::from)
            .map_err(EndpointError::file(folder))?;
    }
    Ok(())
}

pub(super) fn mount_one(
    kind: &str,
    what: &str,
    place: &str,
    words: Option<&str>,
) -> Result<(), EndpointError> {
    let words = words.map(|words| std::ffi::CString::new(words).expect("no zero in it"));
    mount(what, place, kind, MountFlags::empty(), words.as_deref())
        .map_err(|error| EndpointError::file(place)(error.into()))
}

/// Settings of the kernel that every program needs.
pub(super) fn configure() -> Result<(), EndpointError> {
    for device in ["default", DEVICE, SERVER_SIDE] {
        let place = format!("/proc/sys/net/ipv6/conf/{device}");
        for (setting, value) in [
            ("accept_dad", "0"),
            ("accept_ra", "0"),
            ("router_solicitations", "0"),
            ("addr_gen_mode", "1"),
        ] {
            if Path::new(&place).exists() {
                set(&format!("{place}/{setting}"), value)?;
            }
        }
    }
    for (setting, value) in [
        // Of this kernel only. Unless they are set, they depend on its memory, which must not limit
        // a window.
        ("net/ipv4/tcp_mem", "786432 1048576 1572864"),
        ("net/ipv4/udp_mem", "786432 1048576 1572864"),
        // By the guest's memory its kernel would allow some hundred.
        ("kernel/threads-max", "65536"),
        // A frame of the link brings many packets at one instant.
        ("net/core/netdev_max_backlog", "1000000"),
        // The packets of a run come in one interrupt, in which nothing can be given back.
        ("vm/min_free_kbytes", "65536"),
        // Dirty pages are written out early, while the program waits for packets: a writer that had
        // to wait for that would sleep, and virtual time would go on.
        ("vm/dirty_background_bytes", "1048576"),
        ("vm/dirty_bytes", "67108864"),
    ] {
        set(&format!("/proc/sys/{setting}"), value)?;
    }
    Ok(())
}

/// Gives the guest its address, and sends all packets to the coordinator.
pub(super) fn connect(task: &Task) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    netlink.set_up("lo")?;
    netlink.set_up(DEVICE)?;
    if let Part::Proxy { client, .. } = task.part {
        netlink.set_up(SERVER_SIDE)?;
        netlink.add_device_route(only(client), DEVICE)?;
        return netlink.add_device_route(Prefix::everything(client), SERVER_SIDE);
    }
    for address in iter::once(task.local).chain(task.further.iter().copied()) {
        netlink.add_address(DEVICE, only(address))?;
    }
    netlink.add_device_route(Prefix::everything(task.local), DEVICE)
}

fn only(address: IpAddr) -> Prefix {
    let length = if address.is_ipv4() { 32 } else { 128 };
    Prefix { address, length }
}
