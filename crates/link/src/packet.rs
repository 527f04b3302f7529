//! A packet as links know it, and what becomes of it.

use bentpipe_units::{Span, Time};

/// A packet as links know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketMeta {
    /// The number by which the caller knows it.
    pub id: u64,
    /// Bytes of the IP packet.
    pub ip_bytes: u32,
    /// 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE (RFC 3168, section 5).
    pub ecn: u8,
    /// The same number for all packets of a flow, as its addresses, protocol and ports tell.
    pub flow: u64,
    /// Whether it carries UDP.
    pub is_udp: bool,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Comes out at the other end.
    Delivered {
        /// When its last bit is there.
        at: Time,
    },
    /// A queue drops it.
    QueueDrop,
    /// Lost on the way, after using the capacity, unless a link is configured otherwise.
    Loss,
}

/// The outcome of a packet's way over a path. Where links duplicate packets, there is one for each
/// that was under way of a packet. One of them, without `is_copy`, tells the packet's own fate:
/// that of the first that arrives, or, where none does, of the last (RFC 5560).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The packet, as it is at the end of its way.
    pub packet: PacketMeta,
    /// Its fate.
    pub fate: Fate,
    /// Whether it arrives with a mark of Congestion Experienced that it was sent without.
    pub is_marked: bool,
    /// The MTU of the link that it is too large for, if it is lost for that.
    pub exceeds_mtu: Option<u32>,
    /// Whether this is of a copy, and another outcome tells the packet's own fate.
    pub is_copy: bool,
    /// How many are still under way of the packet; their outcomes follow.
    pub copies_under_way: u32,
}

/// A further arrival of a packet, which a link has duplicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FurtherArrival {
    /// When its last bit is there.
    pub at: Time,
    /// Whether it arrives with a mark of Congestion Experienced that the packet was sent without.
    pub marked: bool,
}

/// The number of packets that met each fate, and of their bytes. `packets = delivered +
/// queue_drops + losses`, at any time: those whose fate is open are not counted yet. Copies count
/// in `duplicated` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came in.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that went out, or will.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets among them that a queue marked with Congestion Experienced.
    pub marked: u64,
    /// Packets among them that arrived behind one of their flow that was sent later (RFC 4737,
    /// section 3).
    pub reordered: u64,
    /// The largest extent of these in packets (RFC 4737, section 4.2); 0 if there are none.
    pub reorder_extent: u64,
    /// The sum of their extents.
    pub reorder_extents: u64,
    /// Arrivals of copies, each behind another one of the same packet (RFC 5560).
    pub duplicated: u64,
    /// Packets dropped by a queue.
    pub queue_drops: u64,
    /// Packets lost.
    pub losses: u64,
    /// The most bytes that ever waited for the capacity of a link.
    pub max_queue_bytes: u64,
    /// The fates of the packets of sources; None: there are none.
    pub sources: Option<SourceCounters>,
    /// The outcomes of the trial's requests for capacity; None: no link takes any.
    pub requests: Option<CapacityRequests>,
}

impl Counters {
    /// Those of several paths together. The fullest queue is that of any of them.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let sources = [self.sources, other.sources].into_iter().flatten();
        let requests = [self.requests, other.requests].into_iter().flatten();
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            delivered: self.delivered + other.delivered,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            marked: self.marked + other.marked,
            reordered: self.reordered + other.reordered,
            reorder_extent: self.reorder_extent.max(other.reorder_extent),
            reorder_extents: self.reorder_extents + other.reorder_extents,
            duplicated: self.duplicated + other.duplicated,
            queue_drops: self.queue_drops + other.queue_drops,
            losses: self.losses + other.losses,
            max_queue_bytes: self.max_queue_bytes.max(other.max_queue_bytes),
            sources: sources.reduce(SourceCounters::and),
            requests: requests.reduce(CapacityRequests::and),
        }
    }
}

/// The number of requests for capacity that the trial's terminal sent, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapacityRequests {
    /// Requests sent.
    pub sent: u64,
    /// Requests among them that were lost.
    pub lost: u64,
    /// Requests that were denied.
    pub denied: u64,
    /// Requests that collided with another terminal's.
    pub collided: u64,
    /// Requests for which something was assigned.
    pub granted: u64,
    /// The longest time from such a request to the superframe in which it was.
    pub longest_wait: Span,
    /// The sum of these times.
    pub waits: Span,
}

/// The number of packets that sources of cross traffic sent, and of their bytes. Those whose fate
/// is open are not counted yet. Of copies that links make, only the bytes that come out count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounters {
    /// Packets that came in.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that came out where their link ends, copies included.
    pub delivered_bytes: u64,
    /// Packets that a queue dropped or the link lost.
    pub lost: u64,
}

impl CapacityRequests {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            lost: self.lost + other.lost,
            denied: self.denied + other.denied,
            collided: self.collided + other.collided,
            granted: self.granted + other.granted,
            longest_wait: self.longest_wait.max(other.longest_wait),
            waits: [self.waits, other.waits].into_iter().sum(),
        }
    }

    /// The mean time until something was assigned, rounded down; None: nothing ever was.
    #[must_use]
    pub fn mean_wait(self) -> Option<Span> {
        let mean = self.waits.as_nanos().checked_div(self.granted)?;
        Some(Span::from_nanos(mean))
    }

    /// The longest such time.
    #[must_use]
    pub fn longest_wait(self) -> Option<Span> {
        (self.granted > 0).then_some(self.longest_wait)
    }

    /// Counts a grant that came so long after its request.
    pub(crate) fn grant(&mut self, after: Span) {
        self.granted += 1;
        self.longest_wait = self.longest_wait.max(after);
        self.waits = [self.waits, after].into_iter().sum();
    }
}

impl SourceCounters {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            lost: self.lost + other.lost,
        }
    }

    /// Counts a packet of that size that met with a fate.
    pub fn count(&mut self, fate: Fate, ip_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
        match fate {
            Fate::Delivered { .. } => self.delivered_bytes += u64::from(ip_bytes),
            Fate::QueueDrop | Fate::Loss => self.lost += 1,
        }
    }

    /// Counts a copy of a packet of that size that met with a fate.
    pub(crate) fn count_copy(&mut self, fate: Fate, ip_bytes: u32) {
        if let Fate::Delivered { .. } = fate {
            self.delivered_bytes += u64::from(ip_bytes);
        }
    }
}

impl Counters {
    /// Counts a packet of that size that met with a fate.
    pub fn count(&mut self, fate: Fate, ip_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(ip_bytes);
        match fate {
            Fate::Delivered { .. } => {
                self.delivered += 1;
                self.delivered_bytes += u64::from(ip_bytes);
            }
            Fate::QueueDrop => self.queue_drops += 1,
            Fate::Loss => self.losses += 1,
        }
    }

    /// Counts a packet that arrived, with its extent if it is reordered.
    pub fn reorder(&mut self, extent: Option<u64>) {
        self.reordered += u64::from(extent.is_some());
        self.reorder_extent = self.reorder_extent.max(extent.unwrap_or(0));
        self.reorder_extents += extent.unwrap_or(0);
    }
}
