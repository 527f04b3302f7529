//! A worker's IP packets: from clients to the TUN device, and back.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bentpipe_endpoint::EndpointError;
use bentpipe_masque::{FlowId, Header, Problem, Refusal, destination, is_of_link};
use tracing::{info, warn};

use super::{MOST_DATAGRAMS, Message, Worker};
use crate::program::allow::allows_packet;

/// Packets that are taken from the device before it is looked for what else there is.
const AT_ONCE: usize = 64;

/// A request for IP, with what it has carried.
pub struct Tunnelled {
    client: SocketAddr,
    /// Bytes of packets of the client, and to it.
    up: u64,
    down: u64,
}

impl Worker {
    /// Takes packets of the kernel's to clients, or hands them on to their workers.
    pub(super) fn receive_of_device(&mut self, now: Duration) -> Result<(), EndpointError> {
        for _ in 0..AT_ONCE {
            let Some(device) = &mut self.device else {
                return Ok(());
            };
            let Some(packet) = device.read()? else {
                return Ok(());
            };
            // The kernel looks for neighbours there, and nobody else is on this link.
            if is_of_link(packet) {
                continue;
            }
            let to = destination(packet).ok();
            let pool = self
                .shared
                .pool
                .as_ref()
                .filter(|_| self.shared.inboxes.len() > 1);
            let owner = pool.and_then(|pool| pool.thread_of(to?));
            let packet = packet.to_vec();
            match owner.filter(|it| *it != self.number) {
                None => self.take_packet(now, &packet),
                Some(owner) => {
                    let message = Message::Packet(packet);
                    if self.shared.inboxes[owner].send_if_below(MOST_DATAGRAMS, message) {
                        self.counted.handed_on += 1;
                    } else {
                        self.counted.lost += 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends a packet to the client that has its destination.
    pub(super) fn take_packet(&mut self, now: Duration, packet: &[u8]) {
        let flow = self.proxy.handle_packet(now, packet);
        if let Some(it) = flow.and_then(|flow| self.tunnels.get_mut(&flow)) {
            it.down += packet.len() as u64;
        }
    }

    /// Hands the kernel a packet of a client, if it may go where it goes, or one of the proxy's.
    pub(super) fn send_packet(&mut self, now: Duration, flow: Option<FlowId>, packet: &[u8]) {
        if let Some(flow) = flow {
            if !self.is_allowed(packet) {
                return self.refuse_packet(now, flow, packet, Problem::Prohibited);
            }
            if let Some(it) = self.tunnels.get_mut(&flow) {
                it.up += packet.len() as u64;
            }
        }
        let written = self
            .device
            .as_mut()
            .map_or(Ok(false), |it| it.write(packet));
        if self.tolerate("send-failed", written) != Some(true) {
            self.counted.unsent_packets += 1;
        }
    }

    pub(super) fn refuse_packet(
        &mut self,
        now: Duration,
        flow: FlowId,
        packet: &[u8],
        problem: Problem,
    ) {
        self.counted.not_allowed_packets += 1;
        self.proxy.refuse(now, flow, packet, problem);
    }

    fn is_allowed(&self, packet: &[u8]) -> bool {
        Header::read(packet).is_ok_and(|header| {
            let to = header.destination;
            let is_own = self.shared.own.contains(to);
            allows_packet(&self.rules, to, header.service(packet), is_own)
        })
    }

    pub(super) fn open_tunnel(&mut self, flow: FlowId, client: SocketAddr, addresses: &[IpAddr]) {
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        info!(request = %self.key(flow), %client, ?addresses, "opened");
        let tunnelled = Tunnelled {
            client,
            up: 0,
            down: 0,
        };
        self.tunnels.insert(flow, tunnelled);
    }

    pub(super) fn close_tunnel(&mut self, flow: FlowId) {
        let Some(it) = self.tunnels.remove(&flow) else {
            return;
        };
        let (request, client, up, down) = (self.key(flow), it.client, it.up, it.down);
        info!(%request, %client, bytes_to_target = up, bytes_to_client = down, "closed");
    }

    pub(super) fn note_refused(&mut self, client: SocketAddr, refusal: Refusal) {
        match refusal {
            Refusal::NoAddressLeft => self.counted.exhausted += 1,
            _ => self.counted.not_allowed += 1,
        }
        let (status, why) = (refusal.status().as_u16(), refusal.words());
        warn!(%client, status, why, "request-refused");
    }
}
