//! The rights that interception needs, checked before anything starts.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use bentpipe_linux_tcp::SocketKind;
use bentpipe_netlink::Netlink;
use bentpipe_service::SettingsError;
use rustix::process::geteuid;

use super::settings::{Intercept, Settings};
use crate::config::Accept;

/// The place of what is missing.
const PLACE: &str = "the system";
/// The bit of `CAP_NET_ADMIN` (capabilities(7)).
const NET_ADMIN: u32 = 12;
/// The bit of `CAP_NET_RAW`.
const NET_RAW: u32 = 13;
/// The bit of `CAP_NET_BIND_SERVICE`.
const NET_BIND_SERVICE: u32 = 10;
/// Ports below this need that right.
const UNPRIVILEGED: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";

/// Says what is missing for these settings.
pub fn check(settings: &Settings) -> Result<(), SettingsError> {
    let Some(intercept) = &settings.intercept else {
        return Ok(());
    };
    check_capabilities(intercept, settings.accept)?;
    check_devices(intercept)?;
    check_transparent()
}

fn check_capabilities(intercept: &Intercept, accept: Accept) -> Result<(), SettingsError> {
    let has = effective_capabilities();
    let first = fs::read_to_string(UNPRIVILEGED).ok();
    let first: u16 = first.and_then(|it| it.trim().parse().ok()).unwrap_or(1024);
    let lowest = intercept.ports.iter().min().copied().unwrap_or_default();
    let mut missing = Vec::new();
    if has & (1 << NET_ADMIN) == 0 {
        missing.push("CAP_NET_ADMIN, to use addresses of others and set rules of routing");
    }
    if accept == Accept::Late && has & (1 << NET_RAW) == 0 {
        missing.push("CAP_NET_RAW, to hear of SYNs that wait (accept = \"late\")");
    }
    if lowest < first && has & (1 << NET_BIND_SERVICE) == 0 {
        missing.push("CAP_NET_BIND_SERVICE, to listen at a port below 1024");
    }
    if missing.is_empty() {
        return Ok(());
    }
    let what = format!("intercept: missing {}", missing.join("; "));
    let hint = if geteuid().is_root() {
        "this is root of a container or a namespace without these rights: give them to it"
    } else {
        "start it with sudo, or as examples/bentpipe-tcp-pep.service does with \
         AmbientCapabilities; in a user namespace (`unshare -Urn`, `bentpipe shell`) there are \
         these rights for that namespace's own devices; --listen and --next-hop take none"
    };
    Err(SettingsError::new(PLACE, what, hint))
}

fn check_devices(intercept: &Intercept) -> Result<(), SettingsError> {
    let problem = |what: String, hint: &str| SettingsError::new(PLACE, what, hint);
    let netlink = Netlink::open().map_err(|error| {
        problem(
            format!("intercept: netlink: {error}"),
            "it takes a kernel with CONFIG_NETLINK and routes",
        )
    })?;
    for (key, device) in [
        ("intercept.clients", &intercept.clients),
        ("intercept.servers", &intercept.servers),
    ] {
        netlink.device(device).map_err(|error| {
            let what = format!("{key} = {device:?}: {error}");
            problem(what, "`ip link` lists the devices that are there")
        })?;
    }
    Ok(())
}

/// Whether the kernel lets this process have addresses that are not the host's.
fn check_transparent() -> Result<(), SettingsError> {
    let kind = SocketKind {
        congestion: "reno".to_owned(), // which every kernel has
        transparent: true,
        nonblocking: true,
        pacing: None,
        fast_open: false,
        multipath: false,
    };
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    kind.make(any).map(drop).map_err(|error| {
        let what = format!("intercept: IP_TRANSPARENT: {error}");
        SettingsError::new(
            PLACE,
            what,
            "it takes CAP_NET_ADMIN in this network namespace",
        )
    })
}

/// As bits, by number.
fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok())
        .unwrap_or_default()
}

/// Whether the kernel has IPv6 at all.
pub fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6").exists()
}
