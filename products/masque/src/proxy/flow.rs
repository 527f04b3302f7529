//! A proxy's flows, and its tasks for whoever has their sockets.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bentpipe_service::quota::OverLimit;
use bytes::Bytes;

use super::ids::{FlowId, FlowIds};
use crate::channel::Shared;
use crate::counts::Statistics;
use crate::ip::{Lease, Refused, Throttle, Towards};
use crate::refusal::Refusal;
use crate::target::Target;

/// Datagrams of a flow that wait for its socket, and bytes of those of all flows of a connection;
/// further ones are lost.
const MOST_HELD: (usize, usize) = (64, 256 << 10);

/// A task for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Open a socket for this target, and [answer](crate::MasqueProxy::answer).
    Open(FlowId, Target),
    /// Send a datagram to the flow's target, with these ECN bits: 0 Not-ECT, 1 ECT(1), 2 ECT(0),
    /// 3 CE; what comes out of the tunnel has 0 (RFC 9298, section 6.2).
    Send(FlowId, u8, Bytes),
    /// Send an IP packet by a route: a client's, or one of the proxy's own.
    Packet(Option<FlowId>, Bytes),
    /// An IP packet of a client for which there is no route: [tell](crate::MasqueProxy::refuse) it.
    Unrouted(FlowId, Bytes),
    /// Close the flow's socket.
    Close(FlowId),
    /// Tell whoever runs the proxy.
    Tell(Event),
}

/// An event that only tells what happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A client's connection has begun.
    Connected(SocketAddr),
    /// A client's connection is no more.
    Disconnected(SocketAddr),
    /// A client was turned away; `None`: since the proxy drains.
    Refused(SocketAddr, Option<OverLimit>),
    /// A request of a client was refused with this status, before its target was looked at.
    RequestRefused(SocketAddr, u16),
    /// A client's request for IP has these addresses.
    Assigned(FlowId, SocketAddr, Vec<IpAddr>),
    /// A client's request for IP was refused.
    IpRefused(SocketAddr, Refusal),
}

/// A request, and its socket once there is one.
pub struct Flow {
    /// The handle of its client's connection.
    pub client: usize,
    pub channel: Shared,
    pub is_open: bool,
    /// Datagrams that wait for the socket.
    pub held: VecDeque<Bytes>,
    pub held_bytes: usize,
    /// When there was a datagram of it the last time.
    pub touched: Duration,
    /// The addresses that the client has of a pool.
    pub lease: Option<Lease>,
    /// How many errors may be told of its packets.
    pub errors: Throttle,
    /// The connection IDs of packets that may be forwarded.
    pub ids: FlowIds,
}

/// The errors that a client is told: ten at once, and ten per second.
const CLIENT_ERRORS: (Duration, u32) = (Duration::from_millis(100), 10);

impl Flow {
    /// A request of the client with this connection that was not decided on.
    pub fn new(now: Duration, client: usize, channel: Shared) -> Self {
        let (interval, burst) = CLIENT_ERRORS;
        Self {
            client,
            channel,
            is_open: false,
            held: VecDeque::new(),
            held_bytes: 0,
            touched: now,
            lease: None,
            errors: Throttle::new(interval, burst),
            ids: FlowIds::default(),
        }
    }

    /// Passes on what has come in capsules.
    pub fn pass_capsules(
        &mut self,
        now: Duration,
        id: FlowId,
        (outputs, held): (&mut VecDeque<Output>, &mut usize),
        counts: &mut Statistics,
    ) {
        let arrived = std::mem::take(&mut self.channel.borrow_mut().arrived);
        let mut unpassed = DropCounts::default();
        for payload in arrived {
            counts.received_capsules_total += 1;
            counts.received_bytes_total += payload.len() as u64;
            unpassed.add(self.pass(now, id, payload, outputs, held));
        }
        unpassed.count(counts);
    }

    /// Passes a datagram on; before there is a socket it waits. `held`: bytes of its connection
    /// that wait.
    pub fn pass(
        &mut self,
        now: Duration,
        id: FlowId,
        payload: Bytes,
        outputs: &mut VecDeque<Output>,
        held: &mut usize,
    ) -> PassResult {
        self.touched = now;
        if let Some(sides) = &self.channel.borrow().sides {
            return match sides.judge(&payload, Towards::Servers) {
                Ok(()) => {
                    outputs.push_back(Output::Packet(Some(id), payload));
                    PassResult::Yes
                }
                Err(Refused::NoRoute(..)) if self.lease.is_some() => {
                    outputs.push_back(Output::Unrouted(id, payload));
                    PassResult::Yes
                }
                Err(_) => PassResult::Refused,
            };
        }
        if self.is_open {
            outputs.push_back(Output::Send(id, 0, payload));
            return PassResult::Yes;
        }
        let has_room = self.held.len() < MOST_HELD.0 && *held + payload.len() <= MOST_HELD.1;
        if has_room {
            *held += payload.len();
            self.held_bytes += payload.len();
            self.held.push_back(payload);
            return PassResult::Yes;
        }
        PassResult::Lost
    }
}

/// The result of passing a datagram on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassResult {
    Yes,
    /// Too much waits already.
    Lost,
    /// It is a packet that may not pass.
    Refused,
}

/// The datagrams that were not passed on.
#[derive(Debug, Default)]
pub struct DropCounts {
    lost: u64,
    refused: u64,
}

impl DropCounts {
    pub fn add(&mut self, passed: PassResult) {
        self.lost += u64::from(passed == PassResult::Lost);
        self.refused += u64::from(passed == PassResult::Refused);
    }

    pub fn count(self, counts: &mut Statistics) {
        counts.queue_full_datagrams_total += self.lost;
        counts.refused_packets_total += self.refused;
    }
}
