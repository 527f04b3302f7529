//! Measurements of one direction.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

use crate::DecodingGap;
use crate::connection::{Connection, Fate, Frame, Nanos, Packet, Vantage};
use crate::durations::spread_ms;
use crate::ledger::LedgerEntry;
use crate::link_facts::LinkFacts;
use bentpipe_wire::quic::{End, Space};

use super::ecn::{EcnCounts, EcnUse};
use super::float;
use super::milestones::Milestones;
use super::together::Measured;

/// Measurements of one direction of a connection, or of several together. None: cannot be measured
/// from where it was captured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneWay {
    /// QUIC packets (TCP: segments).
    pub packets: u64,
    /// Datagrams that carried them.
    pub datagrams: u64,
    /// Bytes of the IP packets.
    pub ip_bytes: u64,
    /// Bytes of stream data, retransmissions included. Needs secrets, where they are encrypted.
    pub stream_bytes: Option<u64>,
    /// Bytes of stream data that had been sent before. Needs a place other than the receiver's
    /// side, where lost packets do not pass.
    pub retransmitted_bytes: Option<u64>,
    /// `retransmitted_bytes` / `stream_bytes`.
    pub retransmitted_share: Option<f64>,
    /// Packets that left the sender's side and did not reach the receiver's. Needs both sides.
    pub lost_packets: Option<u64>,
    /// `lost_packets` / `packets`.
    pub lost_share: Option<f64>,
    /// Packets that arrived after one of their packet number space with a larger number; where
    /// numbers are not known, after one that was sent later. Needs the receiver's side, and without
    /// numbers the sender's, too.
    pub reordered_packets: Option<u64>,
    /// Packets that passed the same place once more; they count nowhere else. The network doubled
    /// them, they were captured twice, or their sender repeated them as they were, as it may a
    /// `CONNECTION_CLOSE`.
    pub duplicates: u64,
    /// From leaving the sender's side to reaching the receiver's, as the next two. Needs both
    /// sides, and is wrong by what their clocks differ.
    pub one_way_delay_min_ms: Option<f64>,
    /// The middle one.
    pub one_way_delay_median_ms: Option<f64>,
    /// The longest.
    pub one_way_delay_max_ms: Option<f64>,
    /// The mean size of IP packets.
    pub mean_datagram_bytes: Option<f64>,
    /// The size of the largest IP packet.
    pub largest_datagram_bytes: Option<u32>,
    /// Packets with an ACK frame.
    pub acks_sent: u64,
    /// `acks_sent` of the other direction / packets with stream data of this.
    pub acks_per_data_packet: Option<f64>,
    /// IP bytes that passed the side of the files' receiver during the transfer, after its first
    /// packet, as a rate. Where the capture does not have its end: as far as it goes. Without
    /// secrets: from the first to the last 1-RTT packet of the end that sent more bytes.
    pub mean_rate_bps: Option<f64>,
    /// How both ends used ECN.
    pub ecn: EcnUse,
}

impl OneWay {
    /// Forward and return.
    pub(super) fn both(all: &[(Nanos, Measured<'_>)], transfer: Transfer) -> [Self; 2] {
        let [forward, back] = [End::Server, End::Client].map(|end| {
            let of_each = all.iter().map(|(offset, it)| {
                Counts::of(it.connection, it.entries, end, transfer.earlier(*offset))
            });
            of_each.reduce(Counts::joined).unwrap_or_default()
        });
        let (acks_back, acks_forward) = (back.acks, forward.acks);
        [
            forward.measured(acks_back, transfer),
            back.measured(acks_forward, transfer),
        ]
    }
}

impl OneWay {
    /// Without what needs the frames of all packets.
    pub(super) fn without_content(self) -> Self {
        Self {
            stream_bytes: None,
            retransmitted_bytes: None,
            retransmitted_share: None,
            // That of a connection that is sealed as a whole needs no numbers.
            reordered_packets: self
                .reordered_packets
                .filter(|_| self.stream_bytes.is_none()),
            acks_per_data_packet: None,
            ecn: self.ecn.without_content(),
            ..self
        }
    }
}

/// The transfer of the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    /// From when to when they arrived, or as far as was captured.
    span: Option<(Nanos, Nanos)>,
    /// Where.
    receiver: End,
}

impl Transfer {
    /// The measures of all connections, whose milestones are `times`.
    pub(super) fn of(all: &[(Nanos, Measured<'_>)], times: &Milestones, facts: &LinkFacts) -> Self {
        if let Some(whole) = times.transfer() {
            return Self {
                span: Some(whole),
                receiver: facts.files_sender().other(),
            };
        }
        let sealed = |it: &Measured<'_>| DecodingGap::of([it.connection]).is_sealed();
        let first_sealed = all.iter().find(|(_, it)| sealed(it));
        let busier = first_sealed.map(|(_, it)| it.connection.busier_end());
        let sender = facts.sender.or(busier).unwrap_or(End::Server);
        let passing = all.iter().flat_map(|(offset, it)| {
            let times = data_passing(it, sender);
            times.map(move |time| offset + time)
        });
        let (mut first, mut last) = (None, None);
        for time in passing {
            first = Some(first.map_or(time, |first: Nanos| first.min(time)));
            last = last.max(Some(time));
        }
        Self {
            span: first.zip(last).filter(|(first, last)| first < last),
            receiver: sender.other(),
        }
    }

    /// The same on an axis that begins `offset` later.
    fn earlier(self, offset: Nanos) -> Self {
        Self {
            span: self
                .span
                .map(|(first, last)| (first - offset, last - offset)),
            receiver: self.receiver,
        }
    }
}

/// When packets with data of `sender` passed its peer's side: those with stream data, and 1-RTT
/// packets whose frames are not known.
fn data_passing(it: &Measured<'_>, sender: End) -> impl Iterator<Item = Nanos> {
    let connection = it.connection;
    let packets = connection.packets.iter().zip(it.entries);
    let own = packets.filter(move |(packet, _)| packet.sender == sender && !packet.copy);
    let with_data = own.filter(|(packet, entry)| {
        let is_sealed = !packet.decoded && packet.space() == Some(Space::Application);
        entry.stream_bytes > 0 || is_sealed
    });
    with_data.filter_map(move |(packet, _)| connection.seen_at(packet, sender.other()))
}

/// Counts of one sender's packets.
#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    datagrams: u64,
    ip_bytes: u64,
    stream_bytes: u64,
    retransmitted_bytes: u64,
    lost: u64,
    largest: Option<u32>,
    acks: u64,
    with_data: u64,
    /// IP bytes during the transfer.
    during_transfer: u64,
    delays: Vec<Nanos>,
    /// None: the receiver's side was not captured.
    reordered: Option<u64>,
    /// The same by the order in which packets were sent. None: not both sides were captured.
    overtaken: Option<u64>,
    duplicates: u64,
    /// Packets of the application's space that could be decrypted, and that could not.
    decoded: u64,
    sealed: u64,
    /// Only what was not lost was seen.
    is_after_loss: bool,
    /// Both sides were captured.
    is_whole: bool,
    ecn: EcnCounts,
}

impl Counts {
    fn of(
        connection: &Connection,
        entries: &[LedgerEntry],
        sender: End,
        transfer: Transfer,
    ) -> Self {
        let mut counts = Self {
            ecn: EcnCounts::of(connection, entries, sender),
            ..Self::default()
        };
        let (mut arrivals, mut by_sending) = (Vec::new(), Vec::new());
        for (packet, entry) in connection.packets.iter().zip(entries) {
            if packet.sender == sender && packet.copy {
                counts.duplicates += 1;
            } else if packet.sender == sender {
                counts.add(connection, packet, entry);
                let during = connection
                    .seen_at(packet, transfer.receiver)
                    .zip(transfer.span);
                if during.is_some_and(|(at, (first, last))| first < at && at <= last) {
                    counts.during_transfer += u64::from(packet.ip_size.unwrap_or(0));
                }
                let arrival = packet
                    .received()
                    .zip(packet.path_space())
                    .zip(packet.number);
                arrivals.extend(arrival);
                let (order, space) = (by_sending.len() as u64, packet.path_id);
                let both = packet.sent().and(packet.received());
                by_sending.extend(both.map(|time| ((time, space), order)));
            }
        }
        if connection.vantage != Vantage::At(sender) {
            counts.reordered = Some(reordered(arrivals));
        }
        if connection.vantage == Vantage::Both {
            counts.overtaken = Some(reordered(by_sending));
        }
        counts.is_after_loss = connection.vantage == Vantage::At(sender.other());
        counts.is_whole = connection.vantage == Vantage::Both;
        counts
    }

    /// With those of another connection.
    fn joined(mut self, other: Self) -> Self {
        self.delays.extend(other.delays);
        let reordered = self.reordered.zip(other.reordered);
        Self {
            packets: self.packets + other.packets,
            datagrams: self.datagrams + other.datagrams,
            ip_bytes: self.ip_bytes + other.ip_bytes,
            stream_bytes: self.stream_bytes + other.stream_bytes,
            retransmitted_bytes: self.retransmitted_bytes + other.retransmitted_bytes,
            lost: self.lost + other.lost,
            largest: self.largest.max(other.largest),
            acks: self.acks + other.acks,
            with_data: self.with_data + other.with_data,
            during_transfer: self.during_transfer + other.during_transfer,
            delays: self.delays,
            reordered: reordered.map(|(one, other)| one + other),
            overtaken: (self.overtaken.zip(other.overtaken)).map(|(one, other)| one + other),
            duplicates: self.duplicates + other.duplicates,
            decoded: self.decoded + other.decoded,
            sealed: self.sealed + other.sealed,
            is_after_loss: self.is_after_loss || other.is_after_loss,
            is_whole: self.is_whole && other.is_whole,
            ecn: self.ecn.joined(other.ecn),
        }
    }

    fn add(&mut self, connection: &Connection, packet: &Packet, entry: &LedgerEntry) {
        self.packets += 1;
        if packet.space() == Some(Space::Application) {
            *(if packet.decoded {
                &mut self.decoded
            } else {
                &mut self.sealed
            }) += 1;
        }
        if let Some(size) = packet.ip_size {
            self.datagrams += 1;
            self.ip_bytes += u64::from(size);
            self.largest = self.largest.max(Some(size));
        }
        self.stream_bytes += u64::from(entry.stream_bytes);
        self.retransmitted_bytes += u64::from(entry.retransmitted);
        self.with_data += u64::from(entry.stream_bytes > 0);
        let frames = connection.frames(packet);
        let is_ack = |frame: &Frame| matches!(frame, Frame::Ack { .. });
        self.acks += u64::from(frames.iter().any(is_ack));
        let lost = matches!(
            packet.fate,
            Fate::QueueDrop | Fate::Loss | Fate::NotReceived
        );
        self.lost += u64::from(lost);
        if connection.vantage == Vantage::Both {
            let times = packet.sent().zip(packet.received());
            self.delays
                .extend(times.map(|(sent, received)| received - sent));
        }
    }

    /// `acks` are those of the other direction.
    fn measured(mut self, acks: u64, transfer: Transfer) -> OneWay {
        let lost = self.is_whole.then_some(self.lost);
        let [least, middle, greatest] = spread_ms(&mut self.delays);
        let stream_bytes = (self.decoded > 0 || self.sealed == 0).then_some(self.stream_bytes);
        let again = stream_bytes.map(|_| self.retransmitted_bytes);
        let again = again.filter(|_| !self.is_after_loss);
        let duration = transfer
            .span
            .and_then(|(first, last)| u64::try_from(last - first).ok());
        OneWay {
            packets: self.packets,
            datagrams: self.datagrams,
            ip_bytes: self.ip_bytes,
            stream_bytes,
            retransmitted_bytes: again,
            retransmitted_share: again.and_then(|again| share(again, self.stream_bytes)),
            lost_packets: lost,
            lost_share: lost.and_then(|lost| share(lost, self.packets)),
            reordered_packets: if self.decoded == 0 && self.sealed > 0 {
                self.overtaken
            } else {
                self.reordered
            },
            duplicates: self.duplicates,
            one_way_delay_min_ms: least,
            one_way_delay_median_ms: middle,
            one_way_delay_max_ms: greatest,
            mean_datagram_bytes: share(self.ip_bytes, self.datagrams),
            largest_datagram_bytes: self.largest,
            acks_sent: self.acks,
            acks_per_data_packet: share(acks, self.with_data),
            mean_rate_bps: duration
                .and_then(|nanos| share(8 * self.during_transfer, nanos))
                .map(|bits_per_nanosecond| bits_per_nanosecond * 1e9),
            ecn: self.ecn.measured(),
        }
    }
}

/// How many packets arrived after one of their packet number space with a larger number.
fn reordered<S: Eq + Hash>(mut arrivals: Vec<((Nanos, S), u64)>) -> u64 {
    arrivals.sort_by_key(|((time, _), _)| *time);
    let (mut reordered, mut largest) = (0, HashMap::new());
    for ((_, space), number) in arrivals {
        let largest: &mut Option<u64> = largest.entry(space).or_default();
        reordered += u64::from(*largest > Some(number));
        *largest = (*largest).max(Some(number));
    }
    reordered
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| float(part) / float(whole))
}
