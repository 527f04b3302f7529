//! Real time, for an end that carries IP packets: between a TUN device and the tunnel's socket.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use bentpipe_endpoint::driver::{Port, ReceiveBuffer};
use bentpipe_endpoint::{Clock, EndpointError};
use bentpipe_masque::{Output, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::device::{self, Taken};
use super::end::{End, Kind};
use super::real_time::{Outbox, open, say, tick};
use crate::tun::TunFile;

/// Packets that are taken from the device before it is looked for what else there is.
const AT_ONCE: usize = 64;

/// Carries packets until the signal comes; the end, to be finished.
/// `inner`: the socket of the tunnel's packets, if they do not leave this host by themselves.
pub fn carry(
    end: End,
    inner: Option<Port>,
    clock: Clock,
    ended: &UnixStream,
) -> Result<End, EndpointError> {
    let [own, _] = end.job.tunnel.expect("it was looked for");
    let is_client = matches!(end.kind, Kind::Client(_));
    let taken = Taken {
        from: if is_client {
            end.job.local.ip()
        } else {
            end.job.next_hop.ip()
        },
        server: end.job.next_hop,
        is_reply: !is_client,
    };
    let mut packets = Packets {
        port: inner.map_or_else(|| open(own), Ok)?,
        device: device::open(&taken, end.largest_packet())?,
        outbox: Outbox::default(),
        landing: ReceiveBuffer::default(),
        end,
        clock,
    };
    say("ready")?;
    while !packets.wait(ended)? {
        packets.live()?;
    }
    let now = tick(&packets.clock);
    packets.end.close(now);
    // Where the path is gone already, nobody is told.
    let _ = packets
        .outbox
        .send(&mut packets.end, &mut packets.port, now);
    Ok(packets.end)
}

struct Packets {
    end: End,
    clock: Clock,
    port: Port,
    device: TunFile,
    outbox: Outbox,
    landing: ReceiveBuffer,
}

impl Packets {
    /// Waits for packets or a timer; true: for the signal, which came.
    fn wait(&self, ended: &UnixStream) -> Result<bool, EndpointError> {
        let timeout = self.end.next_timeout();
        let timeout = timeout.map(|at| at.saturating_sub(self.clock.elapsed()));
        let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
        let of_port = if self.outbox.is_blocked() {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut descriptors = [
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.port.as_fd(), of_port),
            PollFd::from_borrowed_fd(self.device.as_fd(), PollFlags::IN),
        ];
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => Ok(!descriptors[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(EndpointError::io("waiting for packets")(error.into())),
        }
    }

    /// Takes what came, does what is due, and sends what leaves.
    fn live(&mut self) -> Result<(), EndpointError> {
        let now = tick(&self.clock);
        let end = &mut self.end;
        self.port
            .receive_to(&mut self.landing, |it| end.handle_datagram(now, it))?;
        for _ in 0..AT_ONCE {
            let Some(packet) = self.device.read()? else {
                break;
            };
            match &mut end.kind {
                Kind::Client(client) => client.send_packet(now, packet),
                Kind::Proxy(proxy, _) => drop(proxy.handle_packet(now, packet)),
            }
        }
        if end.next_timeout().is_some_and(|at| at <= now) {
            end.handle_timeout(now);
        }
        match &mut end.kind {
            Kind::Client(client) => {
                // A packet for which the kernel has no room is lost.
                while let Some(packet) = client.poll_packet() {
                    self.device.write(&packet)?;
                }
            }
            Kind::Proxy(proxy, _) => {
                while let Some(output) = proxy.poll_output() {
                    match output {
                        Output::Packet(_, packet) => {
                            self.device.write(&packet)?;
                        }
                        Output::Open(flow, _) => {
                            proxy.answer(now, flow, Err(Refusal::NotAllowed));
                        }
                        Output::Send(..)
                        | Output::Close(_)
                        | Output::Tell(_)
                        | Output::Unrouted(..) => {}
                    }
                }
            }
        }
        self.outbox.send(end, &mut self.port, now)
    }
}
