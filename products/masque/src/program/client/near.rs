//! The side of a client towards those behind it: a UDP port, or a TUN device.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_masque::{Client, Delivery, is_of_link};

use super::network::Interface;
use crate::program::batch::Batch;
use crate::tun::TunFile;

/// Packets that are taken from the device before it is looked for what else there is.
const AT_ONCE: usize = 64;

/// The side towards those behind a client.
pub enum Near {
    /// Datagrams of one target.
    Udp(UdpSide),
    /// IP packets of this machine.
    Tun(TunSide),
}

/// A UDP port.
pub struct UdpSide {
    port: Port,
    landing: ReceiveBuffer,
    /// The datagrams for one of those behind the client that leave together.
    batch: Batch,
    batch_to: Option<SocketAddr>,
}

/// A device, with its addresses and routes.
pub struct TunSide {
    file: TunFile,
    interface: Interface,
}

/// The payloads and packets that the side did not take, and why if that is an error.
#[derive(Debug, Default)]
pub struct Unsent {
    pub datagrams: u64,
    pub packets: u64,
    pub errors: Vec<EndpointError>,
}

impl Near {
    pub fn udp(port: Port) -> Self {
        Self::Udp(UdpSide {
            port,
            landing: ReceiveBuffer::default(),
            batch: Batch::default(),
            batch_to: None,
        })
    }

    pub fn tun(file: TunFile, interface: Interface) -> Self {
        Self::Tun(TunSide { file, interface })
    }

    /// Whether it is a device.
    pub fn is_device(&self) -> bool {
        matches!(self, Self::Tun(_))
    }

    /// Sends into the tunnel what has come.
    pub fn receive(&mut self, now: Duration, client: &mut Client) -> Result<(), EndpointError> {
        match self {
            Self::Udp(side) => side.port.receive_to(&mut side.landing, |datagram| {
                client.send(now, datagram.remote, datagram.ecn, &datagram.payload);
            }),
            Self::Tun(side) => {
                for _ in 0..AT_ONCE {
                    let Some(packet) = side.file.read()? else {
                        return Ok(());
                    };
                    // The kernel looks for neighbours there, and nobody else is on this link.
                    if !is_of_link(packet) {
                        client.send_packet(now, packet);
                    }
                }
                Ok(())
            }
        }
    }

    /// Hands on what has come out of the tunnel.
    pub fn hand_on(&mut self, client: &mut Client) -> Unsent {
        match self {
            Self::Udp(side) => side.hand_on(client),
            Self::Tun(side) => side.hand_on(client),
        }
    }
}

impl AsFd for Near {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(side) => side.port.as_fd(),
            Self::Tun(side) => side.file.as_fd(),
        }
    }
}

impl UdpSide {
    fn hand_on(&mut self, client: &mut Client) -> Unsent {
        let mut unsent = Unsent::default();
        while let Some(Delivery { to, ecn, payload }) = client.poll_arrived() {
            let most = self.port.most_segments();
            if self.batch_to == Some(to) && self.batch.add(ecn, &payload, most) {
                continue;
            }
            self.flush(&mut unsent);
            self.batch_to = Some(to);
            self.batch.add(ecn, &payload, most);
        }
        self.flush(&mut unsent);
        unsent
    }

    fn flush(&mut self, unsent: &mut Unsent) {
        let Some(to) = self.batch_to.filter(|_| !self.batch.is_empty()) else {
            return;
        };
        let count = self.batch.count();
        match self.batch.send(&mut self.port, to) {
            Ok(true) => {}
            Ok(false) => unsent.datagrams += count,
            Err(error) => {
                unsent.datagrams += count;
                unsent.errors.push(error);
            }
        }
    }
}

impl TunSide {
    fn hand_on(&mut self, client: &mut Client) -> Unsent {
        if let Some(network) = client.poll_network() {
            self.interface.apply(&network);
        }
        let mut unsent = Unsent::default();
        while let Some(packet) = client.poll_packet() {
            match self.file.write(&packet) {
                Ok(true) => {}
                Ok(false) => unsent.packets += 1,
                Err(error) => {
                    unsent.packets += 1;
                    unsent.errors.push(error);
                }
            }
        }
        unsent
    }
}
