//! The capture of the packets that go into a tunnel and come out of it, on the devices of client
//! and server.
//!
//! The links carry nothing but what is encrypted. The kernel stamps packets when a host's stack
//! hands them to its device, and when it gets them from there: what the programs at the ends of the
//! tunnel take counts as part of the way.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bentpipe_analysis::connection::Fate;
use bentpipe_link::{Direction, HostName};
use bentpipe_units::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::capture::HopPacket;
use crate::error::{Doing, EmulatorError};
use crate::hosts::topology::Topology;
use crate::links::forwarder::Running;
use crate::packet_socket::packet_port::{ETHERNET, MTU};
use crate::packet_socket::receive_ring::{Received, Ring};
use crate::packet_socket::socket_options::{bind, take_drops};
use crate::timing::clock::{Clock, TrialClock};
use crate::tunnel::{TUNNEL, TunnelPlan};

/// All protocols.
const ETH_P_ALL: u16 = 3;

/// The running capture on the two devices of a tunnel.
#[derive(Debug)]
pub struct TunnelCapture {
    stop: Arc<OwnedFd>,
    thread: JoinHandle<io::Result<CaptureReport>>,
}

/// The packets of a tunnel, as its devices saw them.
#[derive(Debug, Default)]
pub struct CaptureReport {
    /// In order of time; each packet stands where it was sent, and where it arrived.
    pub packets: Vec<HopPacket>,
    /// Packets that overflowed the kernel's buffer, or that were merged: the capture is incomplete.
    pub missed: u64,
}

/// A device on which packets are captured.
struct Watched {
    socket: OwnedFd,
    ring: Ring,
    /// Bytes before an IP packet.
    header: usize,
    /// The direction of what its host sends.
    sends: Direction,
}

impl TunnelCapture {
    /// Watches the client's end of a tunnel, and where the server gets what came through.
    pub fn start(
        topology: &Topology,
        plan: &TunnelPlan,
        running: &Running,
    ) -> Result<Self, EmulatorError> {
        let watch = |host, device, sends| {
            let network = topology.host(host).network();
            let watched = || Watched::open(device, sends);
            network.within(|| watched().doing(format!("watching {device} of the {host}")))
        };
        let behind = Topology::behind_tunnel(plan);
        let watched = [
            watch(HostName::Client, TUNNEL, Direction::Return)?,
            watch(HostName::Server, behind, Direction::Forward)?,
        ];
        let stop = eventfd(0, EventfdFlags::CLOEXEC).doing("making an event")?;
        let stop = Arc::new(stop);
        let watching = Watching {
            watched,
            client: plan.addresses[0],
            clock: running.clock(),
            stop: Arc::clone(&stop),
            report: CaptureReport::default(),
        };
        let thread = thread::Builder::new().name("capture".into());
        let thread = thread.spawn(move || watching.run());
        Ok(Self {
            stop,
            thread: thread.doing("starting a thread that watches")?,
        })
    }

    /// Ends the capture.
    pub fn stop(self) -> Result<CaptureReport, EmulatorError> {
        rustix::io::write(&self.stop, &1_u64.to_ne_bytes())
            .doing("ending the capture of the tunnel")?;
        let watched = self.thread.join().expect("the capture does not panic");
        watched.doing("watching the tunnel")
    }
}

impl Watched {
    /// A device of the calling thread's network namespace.
    fn open(device: &str, sends: Direction) -> io::Result<Self> {
        // Without a protocol, nothing arrives before the ring is there.
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let index = netdevice::name_to_index(&socket, device)?;
        let ring = Ring::new(socket.as_fd())?;
        bind(socket.as_fd(), ETH_P_ALL, index)?;
        Ok(Self {
            socket,
            ring,
            header: if device == TUNNEL { 0 } else { ETHERNET },
            sends,
        })
    }
}

/// The state of the thread.
struct Watching {
    watched: [Watched; 2],
    client: IpAddr,
    clock: TrialClock,
    stop: Arc<OwnedFd>,
    report: CaptureReport,
}

impl Watching {
    fn run(mut self) -> io::Result<CaptureReport> {
        loop {
            let is_over = self.wait()?;
            let stamps = self.clock.stamps();
            let report = &mut self.report;
            for watched in &mut self.watched {
                let (header, sends, client) = (watched.header, watched.sends, self.client);
                let mut take = |received: Received<'_>| {
                    let at = stamps.time(received.stamp);
                    report.add(&received, header, |from| {
                        let direction = if from == client {
                            Direction::Return
                        } else {
                            Direction::Forward
                        };
                        (direction, direction == sends, at)
                    });
                };
                while watched.ring.next(&mut take) {}
            }
            if is_over {
                break;
            }
        }
        for watched in &self.watched {
            self.report.missed += take_drops(watched.socket.as_fd())?;
        }
        let packets = &mut self.report.packets;
        packets.sort_by_key(|packet| packet.sent.or(packet.arrived));
        Ok(self.report)
    }

    /// Waits until there is something to see; whether it is time to end.
    fn wait(&self) -> io::Result<bool> {
        let [client, server] = &self.watched;
        let mut events = [
            PollFd::new(&self.stop, PollFlags::IN),
            PollFd::new(&client.socket, PollFlags::IN),
            PollFd::new(&server.socket, PollFlags::IN),
        ];
        match poll(&mut events, None) {
            Ok(_) => Ok(!events[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl CaptureReport {
    /// Takes note of a packet; `place` knows its direction, whether it was sent here, and when, by
    /// where it is from.
    fn add(
        &mut self,
        received: &Received<'_>,
        header: usize,
        place: impl FnOnce(IpAddr) -> (Direction, bool, Time),
    ) {
        let Some(ip) = received.frame.get(header..) else {
            return;
        };
        if received.length > header + MTU || received.frame.len() < received.length {
            self.missed += 1;
            return;
        }
        let Some(source) = source(ip) else {
            return;
        };
        let (direction, is_sent, at) = place(source);
        let mut frame = vec![0; ETHERNET];
        frame.extend_from_slice(ip);
        self.packets.push(HopPacket {
            path: 0,
            hop: 0,
            direction,
            sent: is_sent.then_some(at),
            arrived: (!is_sent).then_some(at),
            fate: Fate::Unknown,
            marked: false,
            copies: Vec::new(),
            frame: frame.into(),
        });
    }
}

/// Where an IP packet is from.
fn source(ip: &[u8]) -> Option<IpAddr> {
    match ip.first()? >> 4 {
        4 => Some(<[u8; 4]>::try_from(ip.get(12..16)?).ok()?.into()),
        6 => Some(<[u8; 16]>::try_from(ip.get(8..24)?).ok()?.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_stand_where_they_were_seen() {
        let mut ip = [0; 28];
        ip[0] = 0x45;
        ip[12..16].copy_from_slice(&[198, 18, 0, 1]);
        let received = |length| Received {
            stamp: 0,
            frame: &ip,
            length,
            unfinished: false,
        };
        let at = Time::from_nanos(7);
        let mut report = CaptureReport::default();
        let mut from = None;
        report.add(&received(28), 0, |source| {
            from = Some(source);
            (Direction::Return, true, at)
        });
        report.add(&received(28), 0, |_| (Direction::Return, false, at));
        assert_eq!(from, Some([198, 18, 0, 1].into()));
        let seen: Vec<_> = report
            .packets
            .iter()
            .map(|it| (it.sent, it.arrived))
            .collect();
        assert_eq!(seen, [(Some(at), None), (None, Some(at))]);
        assert_eq!(report.packets[0].ip(), ip);
        report.add(&received(9000), 0, |_| (Direction::Return, true, at));
        assert_eq!((report.packets.len(), report.missed), (2, 1));
    }
}
