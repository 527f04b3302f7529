//! The nodes of a link, which packets pass one after the other, and which live in time.

use bentpipe_units::{Span, Time};

use crate::events::RequestWait;
use crate::packet::{CapacityRequests, PacketMeta};

/// A packet between two nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transit {
    pub packet: PacketMeta,
    /// Its number in the order in which packets were sent over the path.
    pub number: u64,
    /// Whether it is lost. It goes on until its link's delay, which is drawn for it, too.
    pub is_lost: bool,
    /// Whether a queue has marked it.
    pub is_marked: bool,
    /// Whether a link has made it of another packet.
    pub is_copy: bool,
    /// The number of the node before which it leaves the path, as a source's packet does; None: it
    /// goes to the path's end.
    pub leaves_before: Option<usize>,
    /// The number of the terminal that it is for, or from, where terminals share a link; that of
    /// the trial is 0.
    pub terminal: usize,
}

/// A node's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It lets the packet go on to the next node, which it reaches at that time.
    Leave { at: Time },
    /// The same, and it keeps a copy: [`Node::release`] will say when that goes on, not before.
    LeaveTwice { at: Time },
    /// Its queue drops the packet.
    Drop,
    /// The packet is lost here.
    Lose,
    /// The packet is lost here, for it is larger than the link's MTU, in bytes of IP packets.
    LoseForSize { mtu: u32 },
    /// It keeps the packet: [`Node::release`] will say what becomes of it.
    Hold,
}

/// A part of a link that does one thing to packets, which arrive in the order of time and leave in
/// the order of time.
///
/// A node says as soon as it can what becomes of a packet. Where nothing that comes later can
/// change that, as in a drop-tail queue, it does so at arrival, and the time at which the packet
/// leaves lies ahead. Else it holds the packet, and decides when the packet leaves.
pub(crate) trait Node: Send {
    /// A packet arrives now. What was to leave by now has been released.
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step;

    /// Whether packets of a flow ever leave it in another order than that in which they came.
    fn reorders(&self) -> bool {
        false
    }

    /// Whether it has a separate place for each terminal that shares the link.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether it ever holds packets.
    fn holds(&self) -> bool {
        false
    }

    /// When the next of the packets that it holds leaves, at the earliest.
    fn next_event(&self) -> Time {
        Time::NEVER
    }

    /// The same if no packet arrives before, which could let others go.
    fn next_deadline(&self) -> Time {
        self.next_event()
    }

    /// The next of the packets that it holds about which it decides at `until` or before.
    fn release(&mut self, until: Time) -> Option<(Transit, Step)> {
        let _ = until;
        None
    }

    /// The least time that it takes a packet to pass.
    fn min_delay(&self) -> Span {
        Span::ZERO
    }

    /// The bytes that wait in it at a time not before the last packet's arrival.
    fn queue_bytes(&self, now: Time) -> u64 {
        let _ = now;
        0
    }

    /// The most bytes that ever waited in it.
    fn max_queue_bytes(&self) -> u64 {
        0
    }

    /// The trial's requests for capacity; None: there are none in it.
    fn requests(&self) -> Option<CapacityRequests> {
        None
    }

    /// Requests among them that have been answered, in the order of the answers.
    fn answered_requests(&self) -> &[RequestWait] {
        &[]
    }
}
