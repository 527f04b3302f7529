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
//! Times are those at the sender, so the side of the sender must have been captured; of others,
//! only what was retransmitted is known.

use std::collections::HashMap;

use crate::DecodingGap;
use crate::connection::{Connection, Frame, Nanos, Packet, Protocol, Vantage};
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
    spaces: [SentPackets; 3],
    in_flight: u64,
    /// Once known, RFC 9002 section 5.3.
    smoothed: Option<Nanos>,
    latest: Option<Nanos>,
}

impl<'a> Sender<'a> {
    fn new(connection: &'a Connection, end: End) -> Self {
        let spaces = [Space::Initial, Space::Handshake, Space::Application];
        Self {
            connection,
            end,
            spaces: spaces.map(|space| SentPackets::of(connection, end, space)),
            in_flight: 0,
            smoothed: None,
            latest: None,
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
        if let (Some(_), Some(space)) = (packet.number, packet.space()) {
            if is_in_flight(self.connection, packet) {
                self.in_flight += u64::from(packet.size);
                self.spaces[space as usize].in_flight += u64::from(packet.size);
            }
            entries[at].in_flight = Some(self.in_flight).into();
        }
    }

    fn received(&mut self, now: Nanos, at: usize, packet: &Packet, entries: &mut [LedgerEntry]) {
        let Some(space) = packet.space() else { return };
        for frame in self.connection.frames(packet) {
            if let Frame::Ack { ranges, .. } = frame {
                let ranges = self.connection.ranges(ranges);
                if space == Space::Application {
                    self.discard_keys();
                }
                let answered = match self.connection.protocol {
                    Protocol::Quic(_) => ranges.first().map(|(_, largest)| *largest),
                    Protocol::Tcp => echo(self.connection, packet),
                };
                let rtt = self.acked(now, space, Acknowledgement { ranges, answered }, entries);
                entries[at].rtt = entries[at].rtt.nanos().or(rtt).into();
                if let Some(rtt) = rtt {
                    // RFC 9002 section 5.3, without the correction for the delay of the ACK.
                    self.smoothed = Some(
                        self.smoothed
                            .map_or(rtt, |smoothed| (7 * smoothed + rtt) / 8),
                    );
                }
                self.declare_lost(now, space, ranges, rtt, entries);
            }
        }
    }

    /// Takes note of an ACK; returns the RTT sample that it gives.
    fn acked(
        &mut self,
        now: Nanos,
        space: Space,
        acked: Acknowledgement<'_>,
        entries: &mut [LedgerEntry],
    ) -> Option<Nanos> {
        let packets = &self.connection.packets;
        let mut newly = Vec::new();
        for (first, last) in acked.ranges {
            self.spaces[space as usize].take(*first, *last, |at| newly.push(at));
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
        space: Space,
        ranges: &[(u64, u64)],
        latest: Option<Nanos>,
        entries: &mut [LedgerEntry],
    ) {
        let Some((_, largest)) = ranges.first() else {
            return;
        };
        // The largest acknowledged and the latest sample are kept (A.3): an ACK may be overtaken by
        // a later one.
        let known = &mut self.spaces[space as usize].largest_acked;
        *known = (*known).max(*largest);
        let largest = *known;
        self.latest = latest.or(self.latest);
        let rtt = self.smoothed.max(self.latest);
        let before = rtt.map(|rtt| now - (rtt + rtt / 8).max(GRANULARITY));
        let packets = &self.connection.packets;
        let mut lost = Vec::new();
        self.spaces[space as usize].outstanding_below(largest, |at| {
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

    fn leaves_flight(&mut self, space: Space, packet: &Packet) {
        if is_in_flight(self.connection, packet) {
            let size = u64::from(packet.size);
            // A packet may be acknowledged twice, or before it was seen; then there is nothing to
            // take off.
            let of_space = &mut self.spaces[space as usize].in_flight;
            let taken = size.min(*of_space);
            *of_space -= taken;
            self.in_flight -= taken;
        }
    }

    /// RFC 9002 section 6.4: with the first ACK of 1-RTT packets, the handshake is over for the
    /// sender.
    fn discard_keys(&mut self) {
        for space in [Space::Initial, Space::Handshake] {
            self.in_flight -= std::mem::take(&mut self.spaces[space as usize].in_flight);
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
    fn of(connection: &Connection, end: End, of: Space) -> Self {
        let packets = connection.packets.iter().enumerate();
        // TCP acknowledges nothing that takes no sequence space: that would seem lost for good.
        let may_be_acked =
            |it: &Packet| connection.protocol != Protocol::Tcp || connection.is_ack_eliciting(it);
        let own = packets.filter(|(_, it)| it.sender == end && !it.copy);
        let own = own.filter(|(_, it)| it.space() == Some(of) && may_be_acked(it));
        let mut packets: Vec<_> = own.filter_map(|(at, it)| Some((it.number?, at))).collect();
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
