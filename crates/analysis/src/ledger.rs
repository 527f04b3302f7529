//! The ledger of each sender's packets: all that it could know of them, kept by the rules of loss
//! recovery, from outside.
//!
//! Source: RFC 9002 section 5.1 (RTT samples), 6.1 (loss by packet and time threshold), 6.4
//! (discarded keys), B.2 (bytes in flight). A sender's own rules may differ: it may wait longer, or
//! send anew on a probe timeout without calling anything lost. Here, a time threshold is looked at
//! when an acknowledgement arrives, and probe timeouts change nothing. Bytes in flight are those of
//! QUIC packets, headers included, without UDP and IP.
//!
//! Of TCP segments, those count that take sequence space, headers without IP included; which of
//! them give RTT samples is decided by Karn's algorithm and timestamps ([`crate::tcp`]).
//!
//! Where a connection has several paths (draft-ietf-quic-multipath-20), each has a packet number
//! space and an RTT: that of its own packets, whichever path their ACKs come on.
//!
//! Times are those at the sender, so the side of the sender must have been captured; of others,
//! only what was retransmitted is known.

use std::collections::HashMap;

use crate::DecodingGap;
use crate::connection::{Connection, Frame, Nanos, Packet, PathSpace, Protocol, Vantage};
use crate::intervals::Intervals;
use crate::optional::Optional;
use bentpipe_wire::quic::{End, Space};

/// RFC 9002 section 6.1.1: kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 section 6.1.2: kGranularity.
const GRANULARITY: Nanos = 1_000_000;

/// The entry of a packet in the ledger: what is known of it beyond what is in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Bytes of stream data in it.
    pub stream_bytes: u32,
    /// The number of these that its sender had sent before.
    pub retransmitted: u32,
    /// The time of the first ACK of it at its sender.
    pub acked: Optional,
    /// The time at which its sender had to take it for lost, and did if it follows RFC 9002.
    pub declared_lost: Optional,
    /// Bytes in flight once it was sent. None where that cannot be told: the sender's side was not
    /// captured, or packet numbers are not known.
    pub in_flight: Optional,
    /// The RTT sample that its ACK gave to its receiver, in nanoseconds.
    pub rtt: Optional,
}

impl Connection {
    /// The ledger: an entry per packet, in the same order.
    #[must_use]
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        let mut entries = vec![LedgerEntry::default(); self.packets.len()];
        for end in [End::Client, End::Server] {
            note_streams(self, end, &mut entries);
            // Between the ends, a packet and its ACK pass at times that say little of the sender.
            if self.vantage != Vantage::Between {
                Sender::new(self, end).run(&mut entries);
            }
        }
        entries
    }

    /// The end that sent more stream data; where neither sent any, the one that usually does; where
    /// none could be decrypted, the one that sent more bytes of whatever. `entries` is the ledger.
    #[must_use]
    pub fn data_sender(&self, entries: &[LedgerEntry]) -> End {
        if DecodingGap::of([self]).is_sealed() {
            return self.busier_end();
        }
        let mut bytes = [0_u64; 2];
        for (packet, entry) in self.packets.iter().zip(entries) {
            bytes[packet.sender as usize] += u64::from(entry.stream_bytes);
        }
        if bytes[End::Client as usize] > bytes[End::Server as usize] {
            End::Client
        } else {
            End::Server
        }
    }
}

/// Finds out what of each packet's stream data was sent before.
fn note_streams(connection: &Connection, sender: End, entries: &mut [LedgerEntry]) {
    let mut streams: HashMap<u64, Intervals> = HashMap::new();
    for (packet, entry) in connection.packets.iter().zip(entries) {
        if packet.sender != sender || packet.copy {
            continue;
        }
        for frame in connection.frames(packet) {
            if let Frame::Stream {
                id, offset, length, ..
            } = frame
            {
                let range = *offset..offset.saturating_add(u64::from(*length));
                let new = streams.entry(*id).or_default().add(range);
                entry.stream_bytes += length;
                entry.retransmitted +=
                    length - u32::try_from(new).expect("no more than the frame has");
            }
        }
    }
}

/// The ranges that an ACK acknowledges.
#[derive(Clone, Copy)]
struct Acknowledgement<'a> {
    ranges: &'a [(u64, u64)],
    /// The packet that an RTT sample would be of.
    answered: Option<u64>,
}

/// A sender while its packets are gone through.
struct Sender<'a> {
    connection: &'a Connection,
    end: End,
    /// Those that it sent packets in.
    spaces: HashMap<PathSpace, SentPackets>,
    in_flight: u64,
    /// Of each path.
    rtts: HashMap<u32, Rtt>,
}

/// The RTT of a path, once known.
#[derive(Debug, Clone, Copy, Default)]
struct Rtt {
    smoothed: Option<Nanos>,
    latest: Option<Nanos>,
}

impl Rtt {
    /// Takes a sample: RFC 9002 section 5.3, without the correction for the delay of the ACK.
    fn sample(&mut self, rtt: Nanos) {
        self.smoothed = Some(
            self.smoothed
                .map_or(rtt, |smoothed| (7 * smoothed + rtt) / 8),
        );
        self.latest = Some(rtt);
    }
}

impl<'a> Sender<'a> {
    fn new(connection: &'a Connection, end: End) -> Self {
        Self {
            connection,
            end,
            spaces: SentPackets::of(connection, end),
            in_flight: 0,
            rtts: HashMap::new(),
        }
    }

    /// Goes through what passed at the sender's side, in order.
    fn run(mut self, entries: &mut [LedgerEntry]) {
        let packets = &self.connection.packets;
        let originals = packets.iter().enumerate().filter(|(_, it)| !it.copy);
        // A packet that arrives at an instant is known to one that is sent at the same instant.
        let events = originals.filter_map(|(at, packet)| {
            let time = packet.seen[self.end as usize]?;
            Some((time, packet.sender == self.end, at))
        });
        let mut events: Vec<(Nanos, bool, usize)> = events.collect();
        events.sort_unstable();
        for (now, _, at) in events {
            let packet = &packets[at];
            if packet.sender == self.end {
                self.sent(at, packet, entries);
            } else {
                self.received(now, at, packet, entries);
            }
        }
    }

    fn sent(&mut self, at: usize, packet: &Packet, entries: &mut [LedgerEntry]) {
        if let (Some(_), Some(space)) = (packet.number, packet.path_space()) {
            if let Some(of_space) = self.spaces.get_mut(&space)
                && is_in_flight(self.connection, packet)
            {
                self.in_flight += u64::from(packet.size);
                of_space.in_flight += u64::from(packet.size);
            }
            entries[at].in_flight = Some(self.in_flight).into();
        }
    }

    fn received(&mut self, now: Nanos, at: usize, packet: &Packet, entries: &mut [LedgerEntry]) {
        for frame in self.connection.frames(packet) {
            if let Frame::Ack {
                ranges, path_id, ..
            } = frame
            {
                let space = packet.acknowledged_space(*path_id);
                let Some(space) = space.filter(|it| self.spaces.contains_key(it)) else {
                    continue; // of a path that was not seen
                };
                let ranges = self.connection.ranges(ranges);
                if space.0 == Space::Application {
                    self.discard_keys();
                }
                let answered = match self.connection.protocol {
                    Protocol::Quic(_) => ranges.first().map(|(_, largest)| *largest),
                    Protocol::Tcp => echo(self.connection, packet),
                };
                let rtt = self.acked(now, space, Acknowledgement { ranges, answered }, entries);
                entries[at].rtt = entries[at].rtt.nanos().or(rtt).into();
                if let Some(rtt) = rtt {
                    self.rtts.entry(space.1).or_default().sample(rtt);
                }
                self.declare_lost(now, space, ranges, entries);
            }
        }
    }

    /// Takes note of an ACK; returns the RTT sample that it gives.
    fn acked(
        &mut self,
        now: Nanos,
        space: PathSpace,
        acked: Acknowledgement<'_>,
        entries: &mut [LedgerEntry],
    ) -> Option<Nanos> {
        let packets = &self.connection.packets;
        let mut newly = Vec::new();
        let of_space = self.spaces.get_mut(&space)?;
        for (first, last) in acked.ranges {
            of_space.take(*first, *last, |at| newly.push(at));
        }
        let mut eliciting = false;
        for at in &newly {
            let packet = &packets[*at];
            entries[*at].acked = Some(now).into();
            eliciting |= self.connection.is_ack_eliciting(packet);
            if !entries[*at].declared_lost.is_some() {
                self.leaves_flight(space, packet);
            }
        }
        // RFC 9002 section 5.1: a sample needs the largest to be newly acknowledged, and one that
        // asked for an ACK.
        let answered = newly
            .iter()
            .map(|at| &packets[*at])
            .find(|it| it.number.is_some() && it.number == acked.answered)?;
        let rtt = now - answered.seen[self.end as usize]?;
        eliciting.then_some(rtt)
    }

    /// RFC 9002 section 6.1: lost is what was sent before an acknowledged packet, three numbers or
    /// 9/8 of an RTT earlier.
    fn declare_lost(
        &mut self,
        now: Nanos,
        space: PathSpace,
        ranges: &[(u64, u64)],
        entries: &mut [LedgerEntry],
    ) {
        let (Some((_, largest)), Some(of_space)) = (ranges.first(), self.spaces.get_mut(&space))
        else {
            return;
        };
        // The largest acknowledged and the latest sample are kept (A.3): an ACK may be overtaken by
        // a later one.
        of_space.largest_acked = of_space.largest_acked.max(*largest);
        let largest = of_space.largest_acked;
        let known = self.rtts.get(&space.1).copied().unwrap_or_default();
        let rtt = known.smoothed.max(known.latest);
        let before = rtt.map(|rtt| now - (rtt + rtt / 8).max(GRANULARITY));
        let packets = &self.connection.packets;
        let mut lost = Vec::new();
        of_space.outstanding_below(largest, |at| {
            let packet = &packets[at];
            let sent = packet.seen[self.end as usize];
            let is_behind = packet
                .number
                .is_some_and(|number| number + PACKET_THRESHOLD <= largest);
            let is_late = before
                .zip(sent)
                .is_some_and(|(before, sent)| sent <= before);
            if is_behind || is_late {
                lost.push(at);
            }
            // Packets sent later are neither.
            is_behind || is_late
        });
        for at in lost {
            entries[at].declared_lost = Some(now).into();
            self.leaves_flight(space, &packets[at]);
        }
    }

    fn leaves_flight(&mut self, space: PathSpace, packet: &Packet) {
        if let Some(of_space) = self.spaces.get_mut(&space)
            && is_in_flight(self.connection, packet)
        {
            let size = u64::from(packet.size);
            // A packet may be acknowledged twice, or before it was seen; then there is nothing to
            // take off.
            let taken = size.min(of_space.in_flight);
            of_space.in_flight -= taken;
            self.in_flight -= taken;
        }
    }

    /// RFC 9002 section 6.4: with the first ACK of 1-RTT packets, the handshake is over for the
    /// sender.
    fn discard_keys(&mut self) {
        for space in [Space::Initial, Space::Handshake] {
            if let Some(of_space) = self.spaces.get_mut(&(space, 0)) {
                self.in_flight -= std::mem::take(&mut of_space.in_flight);
            }
        }
    }
}

/// The packets of one sender in one packet number space, by their numbers.
struct SentPackets {
    /// Number and index of each, sorted.
    packets: Vec<(u64, usize)>,
    /// For each, the next that is not acknowledged: itself, or a later one. One more than there are
    /// packets.
    next: Vec<usize>,
    /// All before this one are acknowledged or declared lost.
    settled: usize,
    largest_acked: u64,
    in_flight: u64,
}

impl SentPackets {
    /// Those of each space.
    fn of(connection: &Connection, end: End) -> HashMap<PathSpace, Self> {
        let packets = connection.packets.iter().enumerate();
        // TCP acknowledges nothing that takes no sequence space: that would seem lost for good.
        let may_be_acked =
            |it: &Packet| connection.protocol != Protocol::Tcp || connection.is_ack_eliciting(it);
        let own = packets.filter(|(_, it)| it.sender == end && !it.copy);
        let mut spaces: HashMap<PathSpace, Vec<(u64, usize)>> = HashMap::new();
        for (at, packet) in own.filter(|(_, it)| may_be_acked(it)) {
            if let (Some(space), Some(number)) = (packet.path_space(), packet.number) {
                spaces.entry(space).or_default().push((number, at));
            }
        }
        let spaces = spaces.into_iter();
        spaces
            .map(|(space, packets)| (space, Self::new(packets)))
            .collect()
    }

    fn new(mut packets: Vec<(u64, usize)>) -> Self {
        packets.sort_unstable();
        Self {
            next: (0..=packets.len()).collect(),
            packets,
            settled: 0,
            largest_acked: 0,
            in_flight: 0,
        }
    }

    /// Tells `sink` of the packets from `first` to `last` that were not acknowledged before.
    fn take(&mut self, first: u64, last: u64, mut sink: impl FnMut(usize)) {
        let start = self.packets.partition_point(|(number, _)| *number < first);
        let mut at = self.unacked(start);
        while at < self.packets.len() && self.packets[at].0 <= last {
            sink(self.packets[at].1);
            self.next[at] = at + 1;
            at = self.unacked(at + 1);
        }
    }

    /// The first from `at` on that is not acknowledged; shortens the way there.
    fn unacked(&mut self, at: usize) -> usize {
        let mut root = at;
        while self.next[root] != root {
            root = self.next[root];
        }
        let mut walk = at;
        while self.next[walk] != root {
            walk = std::mem::replace(&mut self.next[walk], root);
        }
        root
    }

    /// Tells `is_lost` of the packets below number `largest` that are neither acknowledged nor
    /// lost, from the smallest on, until one is not lost.
    fn outstanding_below(&mut self, largest: u64, mut is_lost: impl FnMut(usize) -> bool) {
        loop {
            self.settled = self.unacked(self.settled);
            match self.packets.get(self.settled) {
                Some((number, at)) if *number < largest && is_lost(*at) => self.settled += 1,
                _ => return,
            }
        }
    }
}

/// Whether a packet counts as in flight: if it asks for an ACK, or has PADDING (RFC 9002 section
/// 2).
pub(crate) fn is_in_flight(connection: &Connection, packet: &Packet) -> bool {
    let mut frames = connection.frames(packet).iter();
    connection.is_ack_eliciting(packet) || frames.any(|it| it.name() == "PADDING")
}

/// The segment of which a TCP segment gives an RTT sample.
fn echo(connection: &Connection, packet: &Packet) -> Option<u64> {
    let frames = connection.frames(packet).iter();
    let mut echoes = frames.filter_map(|it| match it {
        Frame::Echo(number) => Some(*number),
        _ => None,
    });
    echoes.next()
}
