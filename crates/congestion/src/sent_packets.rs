//! The packets in flight, and what their ACKs tell: bytes delivered, delivery rate, round trips.
//!
//! Source of the rate samples: draft-ietf-ccwg-bbr, section 4.1. A stack that plugs us in names a
//! packet by its number and the time at which it was sent; numbers begin anew in each packet number
//! space (RFC 9000, section 12.3), so a number alone is ambiguous during the handshake.

use std::collections::VecDeque;

use bentpipe_units::{Span, Time};

use crate::acks::{AckedPacket, Acks, LostPacket, MAX_ACK_DELAY, RateSample};
use crate::path::PathState;

#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    bytes: u64,
    sent: Time,
    sent_before: u64,
    delivered_before: u64,
    delivered_at: Time,
    flight_began: Time,
    limited: bool,
    resolved: bool,
}

/// Entries that are looked at one by one before a search by time.
const NEAR: usize = 4;

/// The ack-eliciting packets that are neither acknowledged nor lost.
#[derive(Debug, Clone, Default)]
pub struct SentPackets {
    /// In the order in which they were sent.
    entries: VecDeque<Entry>,
    /// When the last ACK came that delivered something.
    delivered_at: Time,
    /// When the packet was sent that was acknowledged last.
    flight_began: Time,
    /// The packets that an ACK has acknowledged so far; emptied when it has been read to its end.
    acked: Vec<AckedPacket>,
    /// The one among them that was sent last.
    newest: Option<Entry>,
    /// When the packet was sent that is the newest of all acknowledged ones.
    newest_sent: Option<Time>,
    /// The round ends with the ACK of a packet that was sent after so many bytes had been
    /// delivered.
    round_ends: u64,
}

impl SentPackets {
    /// A packet leaves.
    pub fn send(&mut self, path: &PathState, number: u64, bytes: u64) {
        if path.in_flight == 0 {
            (self.delivered_at, self.flight_began) = (path.now, path.now);
        }
        self.entries.push_back(Entry {
            number,
            bytes,
            sent: path.now,
            sent_before: path.sent,
            delivered_before: path.delivered,
            delivered_at: self.delivered_at,
            flight_began: self.flight_began,
            limited: path.limited,
            resolved: false,
        });
    }

    /// A packet is acknowledged, by an ACK that [`SentPackets::read_acks`] will end. False: no such
    /// packet is in flight.
    pub fn acknowledge(&mut self, path: &mut PathState, number: u64, sent: Time) -> bool {
        let Some(index) = self.find(number, sent) else {
            return false;
        };
        let entry = &mut self.entries[index];
        if entry.resolved {
            return false;
        }
        entry.resolved = true;
        let entry = *entry;
        path.delivered += entry.bytes;
        path.in_flight = path.in_flight.saturating_sub(entry.bytes);
        self.acked.push(AckedPacket {
            sent: entry.sent,
            bytes: entry.bytes,
            delivered_before: entry.delivered_before,
            sent_before: entry.sent_before,
        });
        if self
            .newest
            .is_none_or(|newest| newest.sent_before <= entry.sent_before)
        {
            self.newest = Some(entry);
        }
        true
    }

    fn find(&self, number: u64, sent: Time) -> Option<usize> {
        let is_it = |entry: &Entry| entry.number == number && entry.sent == sent;
        // An ACK names packets in the order in which they were sent, and those before it are
        // resolved: the first entries are the usual place.
        let near = self.entries.iter().take(NEAR).position(is_it);
        near.or_else(|| {
            let from = self.entries.partition_point(|entry| entry.sent < sent);
            let same_time = self.entries.range(from..);
            let after = same_time
                .take_while(|entry| entry.sent == sent)
                .position(is_it)?;
            Some(from + after)
        })
    }

    /// All that an ACK acknowledges has been told: takes samples, and hands the packets to `hear`.
    ///
    /// `recovery` is when the last congestion event was noticed.
    pub fn read_acks<T>(
        &mut self,
        path: &mut PathState,
        recovery: Option<Time>,
        hear: impl FnOnce(&PathState, &Acks<'_>) -> T,
    ) -> Option<T> {
        let newest = self.newest.take()?;
        let now = path.now;
        let mut acked = std::mem::take(&mut self.acked);
        acked.sort_by_key(|packet| packet.sent_before);
        let rtt = self
            .newest_sent
            .is_none_or(|sent| newest.sent > sent)
            .then_some(now - newest.sent);
        if let Some(sample) = rtt {
            self.newest_sent = Some(newest.sent);
            path.rtt.add(sample);
        }
        self.delivered_at = now;
        self.flight_began = newest.sent;
        let new_round = newest.delivered_before >= self.round_ends;
        if new_round {
            path.round += 1;
            self.round_ends = path.delivered;
        }
        let eligible = |packet: &&AckedPacket| recovery.is_none_or(|start| packet.sent > start);
        let sum =
            |packets: &mut dyn Iterator<Item = &AckedPacket>| packets.map(|it| it.bytes).sum();
        let acks = Acks {
            now,
            packets: &acked,
            bytes: sum(&mut acked.iter()),
            credit: if path.limited {
                0
            } else {
                sum(&mut acked.iter().filter(eligible))
            },
            rtt,
            rate: rate_sample(path, &newest),
            new_round,
        };
        let answer = hear(path, &acks);
        acked.clear();
        self.acked = acked;
        self.forget(path);
        Some(answer)
    }

    /// A packet is lost. Its number is all that is known; one that is not in flight is ignored.
    pub fn lose(&mut self, path: &mut PathState, number: u64, bytes: u64) -> Option<LostPacket> {
        let fits =
            |entry: &Entry| entry.number == number && entry.bytes == bytes && !entry.resolved;
        // Numbers rise, but for the handshake, where few packets are in flight.
        let guess = self.entries.partition_point(|entry| entry.number < number);
        let index = match self.entries.get(guess) {
            Some(entry) if fits(entry) => guess,
            _ => self.entries.iter().position(fits)?,
        };
        let entry = &mut self.entries[index];
        entry.resolved = true;
        path.lost += bytes;
        path.in_flight = path.in_flight.saturating_sub(bytes);
        Some(LostPacket {
            now: path.now,
            sent: entry.sent,
            bytes,
            sent_before: entry.sent_before,
        })
    }

    /// Lets go of what has been resolved, and of packets whose fate nobody will tell: those in
    /// flight when their space's keys were discarded (RFC 9002, section 6.4). The last packets of a
    /// flight are found lost by the ACK of a probe, a round trip after the first or the second
    /// probe timeout, thus after up to three of them and a round trip (section 6.2); what is older
    /// is persistent congestion.
    fn forget(&mut self, path: &PathState) {
        let probe_timeout = path.rtt.smoothed + path.rtt.variation * 4 + MAX_ACK_DELAY;
        let forget_after = probe_timeout * 3 + path.rtt.smoothed.max(path.rtt.latest);
        while let Some(front) = self.entries.front()
            && (front.resolved || path.now - front.sent > forget_after)
        {
            self.entries.pop_front();
        }
    }
}

fn rate_sample(path: &PathState, newest: &Entry) -> Option<RateSample> {
    let sending = newest.sent - newest.flight_began;
    let interval = sending.max(path.now - newest.delivered_at);
    // Shorter than the path is long: ACKs came compressed, or were for packets thought lost.
    if path.rtt.samples == 0 || interval < path.rtt.min || interval == Span::ZERO {
        return None;
    }
    Some(RateSample {
        bytes: path.delivered - newest.delivered_before,
        interval,
        limited: newest.limited,
    })
}
