//! The TUN devices of operators' clients and proxies.

use std::io;

use bentpipe_netlink::{Netlink, tun};
use bentpipe_service::SettingsError;
use bentpipe_service::settings::{Problem, wrong};

use crate::tun::{MOST, TunFile};

/// The longest name of a device.
const LONGEST_NAME: usize = 15;

/// Refuses what is no name of a device.
pub fn check_name(key: &str, name: &str) -> Result<(), Problem> {
    let is_word = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    let is_one = (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(is_word)
        && !name.bytes().all(|it| it == b'.');
    if is_one {
        return Ok(());
    }
    let hint = "write a name of up to 15 letters and digits, such as \"masque0\"";
    wrong(
        format!("{key} = \"{name}\": no device can have this name"),
        hint,
    )
}

/// Makes a device for packets of `mtu` bytes that has a queue for each of so many threads, and
/// lets it work.
pub fn open(
    key: &'static str,
    name: &str,
    mtu: usize,
    queues: usize,
) -> Result<Vec<TunFile>, SettingsError> {
    let mtu = u32::try_from(mtu.min(MOST)).expect("65,535 is a number");
    let files = if queues == 1 {
        tun::open(name, mtu).map(|it| vec![it])
    } else {
        tun::open_queues(name, mtu, queues)
    };
    let files = files.map_err(|error| problem(key, name, &error))?;
    let working = Netlink::open().and_then(|mut netlink| netlink.set_up_silent(name));
    working.map_err(|error| problem(key, name, &error))?;
    Ok(files.into_iter().map(TunFile::new).collect())
}

/// The mistake that an error of the system shows.
pub fn problem(key: &str, name: &str, error: &io::Error) -> SettingsError {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "it needs the capability CAP_NET_ADMIN: run it as root, or give the service \
             AmbientCapabilities=CAP_NET_ADMIN, as examples/bentpipe-masque.service says; IPv6 \
             must not be switched off (net.ipv6.conf.all.disable_ipv6) where it has such addresses"
        }
        io::ErrorKind::NotFound => {
            "the kernel needs TUN devices: modprobe tun, and in a container --device=/dev/net/tun"
        }
        io::ErrorKind::ResourceBusy => "another program has this device: choose another name",
        _ => "choose another name; `ip link` lists those that are taken",
    };
    SettingsError::new(key, format!("the device {name:?}: {error}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_kernel_takes_as_they_are() {
        for (name, is_one) in [
            ("masque0", true),
            ("a-b_c.d", true),
            ("123456789012345", true),
            ("1234567890123456", false),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("tun%d", false),
            ("a b", false),
        ] {
            assert_eq!(check_name("tun.name", name).is_ok(), is_one, "{name:?}");
        }
    }
}
