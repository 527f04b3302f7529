//! The devices of segments: made in pairs, given addresses, and waited for until they work.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use crate::error::{Doing, EmulatorError};
use crate::hosts::addresses::SegmentEnd;
use crate::hosts::namespace::Namespace;
use crate::hosts::offload::switch_off;
use bentpipe_link::SegmentName;
use bentpipe_netlink::{Netlink, PairEnd};

/// A host's device of a segment.
pub(crate) struct Device<'a> {
    pub name: &'a str,
    pub mac: [u8; 6],
    pub end: &'a SegmentEnd,
}

impl Device<'_> {
    /// The device as one end of a pair, in the namespace of its host.
    pub fn at<'a>(&'a self, namespace: &'a Namespace) -> PairEnd<'a> {
        PairEnd {
            name: self.name,
            mac: self.mac,
            namespace: namespace.as_fd(),
        }
    }

    /// Gives the device its addresses, and tells it of its one neighbour.
    pub fn configure(&self, namespace: &Namespace, neighbour: &Self) -> Result<(), EmulatorError> {
        namespace.within(|| {
            bring_up(self.name)?;
            let mut netlink = Netlink::open().doing("opening netlink")?;
            for version in 0..2 {
                let own = self.end.addresses[version];
                netlink
                    .add_address(self.name, own)
                    .doing(format!("giving {} to the {}", own.address, self.end.host))?;
                let other = neighbour.end.addresses[version].address;
                netlink
                    .add_neighbour(self.name, other, neighbour.mac)
                    .doing(format!("telling the {} of {other}", self.end.host))?;
            }
            Ok(())
        })
    }
}

/// The emulator's two devices of one segment, in the emulator's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentPorts {
    /// The number of the path that it is part of, in the order of the scenario; the first is 0.
    pub path: usize,
    /// The name of the segment.
    pub name: SegmentName,
    /// The device towards the client.
    pub client_side: String,
    /// The device towards the server.
    pub server_side: String,
}

/// Makes a pair of devices. The kernel asks for rights where it is asked, too, and outside an
/// ordinary user has none: so it is asked where the emulator is.
pub(crate) fn pair(
    emulator: &Namespace,
    one: PairEnd,
    other: PairEnd,
) -> Result<(), EmulatorError> {
    emulator.within(|| {
        let mut netlink = Netlink::open().doing("opening netlink")?;
        netlink.add_pair(one, other).doing(format!(
            "making the devices {} and {}",
            one.name, other.name
        ))
    })
}

/// A device of the emulator as one end of a pair.
pub(crate) fn port<'a>(name: &'a str, namespace: &'a Namespace) -> PairEnd<'a> {
    PairEnd {
        name,
        mac: [2, 0, 0, 0, 0xff, 0],
        namespace: namespace.as_fd(),
    }
}

/// Sets up a device of the calling thread's namespace that does nothing but carry packets.
pub(crate) fn bring_up(device: &str) -> Result<(), EmulatorError> {
    switch_off(device).doing(format!("switching off what {device} does for the kernel"))?;
    let mut netlink = Netlink::open().doing("opening netlink")?;
    netlink
        .set_up_silent(device)
        .doing(format!("setting up {device}"))
}

/// Waits until packets can leave a device. Until then the kernel drops them silently.
pub(crate) fn wait_until_running(namespace: &Namespace, device: &str) -> Result<(), EmulatorError> {
    namespace.within(|| {
        let mut netlink = Netlink::open().doing("opening netlink")?;
        ready(device, || netlink.is_running(device))
    })
}

/// Waits until packets to an address of a host arrive there.
pub(crate) fn wait_until_heard(
    namespace: &Namespace,
    address: IpAddr,
) -> Result<(), EmulatorError> {
    namespace.within(|| ready(&address.to_string(), || hears_itself(address)))
}

/// Whether a packet to an address of this host arrives.
fn hears_itself(address: IpAddr) -> io::Result<bool> {
    let Ok(socket) = UdpSocket::bind((address, 0)) else {
        return Ok(false);
    };
    socket.set_read_timeout(Some(HEAR))?;
    let sent = socket.send_to(b"?", socket.local_addr()?);
    Ok(sent.is_ok() && socket.recv(&mut [0]).is_ok())
}

/// How often, and as many times, is looked whether something works.
const LOOK: Duration = Duration::from_millis(2);
const LOOKS: u32 = 5000;
/// How long a packet may take from a host to itself on a busy machine, before another one is sent.
const HEAR: Duration = Duration::from_millis(10);

/// Waits until `works`.
fn ready(what: &str, mut works: impl FnMut() -> io::Result<bool>) -> Result<(), EmulatorError> {
    for _ in 0..LOOKS {
        if works().doing(format!("looking whether {what} works"))? {
            return Ok(());
        }
        pause(LOOK);
    }
    Err(io::Error::from(io::ErrorKind::TimedOut)).doing(format!("waiting until {what} works"))
}

#[expect(clippy::disallowed_methods, reason = "the kernel needs real time")]
fn pause(span: Duration) {
    thread::sleep(span);
}
