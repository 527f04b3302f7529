//! The bottleneck's rate, from the ACKs of packet trains.
//!
//! Packets that leave together reach the bottleneck together and leave it one after another, at its
//! rate. The ACKs keep that distance:
//!
//! ```text
//! rate = bytes acknowledged after a train's first ACK / time from its first ACK to its last one
//! ```
//!
//! Source: the dispersion of packet trains is a measure as old as congestion control (Jacobson,
//! Congestion Avoidance and Control, 1988, figure 1, shows it for one window); the formula leaves
//! out what the first ACK covers, so that it does not matter how many packets that were. ACK delays
//! are kept out by [`Train::hear`]; several trains are summed, bytes and times apart, because the
//! mean of their rates would be drawn up by those whose ACKs came compressed; of three or more,
//! those that are far faster than the median are left out.

use bentpipe_units::{Span, Time};

use crate::acks::{Acks, per_second};

/// A train that seems faster than the median one by half again had its ACKs compressed, by
/// something large that they waited behind on their way back: a probe of the path MTU takes as long
/// on a slow return link as a whole train's ACKs. Such a train is left out.
const COMPRESSED_PERCENT: u64 = 150;

/// Packets sent back to back.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Train {
    /// Bytes that had been sent before it.
    from: u64,
    bytes: u64,
    packets: u64,
    first_sent: Time,
    last_sent: Time,
    first_ack: Option<Time>,
    last_ack: Time,
    /// Acknowledged between these two.
    spread_bytes: u64,
    /// Acknowledged since, by ACKs that may have waited for a timer.
    late_bytes: u64,
    /// The most packets of it that one ACK covered.
    most_packets: u64,
    /// Acknowledged in all.
    acked: u64,
    /// A packet sent later has been acknowledged.
    overtaken: bool,
}

impl Train {
    fn new(now: Time, from: u64) -> Self {
        Self {
            from,
            bytes: 0,
            packets: 0,
            first_sent: now,
            last_sent: now,
            first_ack: None,
            last_ack: now,
            spread_bytes: 0,
            late_bytes: 0,
            most_packets: 0,
            acked: 0,
            overtaken: false,
        }
    }

    /// An ACK covers so many bytes and packets of it.
    ///
    /// A receiver acknowledges every so many packets. What is left over at the end of a train waits
    /// for the receiver's timer, or for the next train: an ACK of less than the usual number counts
    /// only once a full one follows.
    fn hear(&mut self, now: Time, bytes: u64, packets: u64) {
        self.acked += bytes;
        if self.first_ack.is_none() {
            self.first_ack = Some(now);
            self.last_ack = now;
        } else if packets >= self.most_packets {
            self.spread_bytes += self.late_bytes + bytes;
            self.late_bytes = 0;
            self.last_ack = now;
        } else {
            self.late_bytes += bytes;
        }
        self.most_packets = self.most_packets.max(packets);
    }

    fn complete(&self) -> bool {
        self.overtaken || self.acked >= self.bytes
    }

    fn dispersion(&self) -> Span {
        self.first_ack
            .map_or(Span::ZERO, |first| self.last_ack - first)
    }

    /// Bytes per second.
    fn rate(&self) -> u64 {
        per_second(self.spread_bytes, self.dispersion())
    }

    /// Whether it says something: most of it left within half of the time in which it was
    /// acknowledged, or else the sender was what spread it out; and a third of it lies between its
    /// first and its last ACK.
    fn valid(&self, length: u64) -> bool {
        // ACKs that come at once say nothing.
        let spread = self.dispersion() > Span::ZERO;
        let burst = spread && (self.last_sent - self.first_sent) * 2 <= self.dispersion();
        self.packets * 2 > length && burst && self.spread_bytes * 3 >= self.bytes
    }
}

/// The rate of the bottleneck as trains have shown it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Bytes per second.
    pub rate: u64,
    /// Trains that it is made of.
    pub trains: usize,
    /// The rates of the fastest and the slowest of them.
    pub fastest: u64,
    /// See `fastest`.
    pub slowest: u64,
}

/// The trains sent so far.
#[derive(Debug, Clone)]
pub struct Dispersion {
    /// Packets in a full train.
    length: u64,
    /// A pause of that length ends a train.
    pause: Span,
    trains: Vec<Train>,
}

impl Dispersion {
    pub fn new(length: u64, pause: Span) -> Self {
        Self {
            length,
            pause,
            trains: Vec::new(),
        }
    }

    /// A packet leaves; `sent` counts it.
    pub fn on_sent(&mut self, now: Time, sent: u64, bytes: u64) {
        let begins = |train: &Train| now - train.last_sent >= self.pause;
        if self.trains.last().is_none_or(begins) {
            // Who sends little sends many short trains. They say nothing, and need not be kept once
            // they have been acknowledged.
            let length = self.length;
            let may_count = |train: &Train| train.packets * 2 > length || !train.complete();
            self.trains.retain(may_count);
            self.trains.push(Train::new(now, sent - bytes));
        }
        let train = self.trains.last_mut().expect("there is one now");
        train.last_sent = now;
        train.packets += 1;
        train.bytes += bytes;
    }

    pub fn on_acks(&mut self, acks: &Acks<'_>) {
        let newest = acks.newest().sent_before;
        for train in &mut self.trains {
            let end = train.from + train.bytes;
            let of_train = |sent_before: u64| sent_before >= train.from && sent_before < end;
            let packets = || acks.packets.iter().filter(|it| of_train(it.sent_before));
            let bytes = packets().map(|packet| packet.bytes).sum();
            if bytes > 0 && !train.overtaken {
                train.hear(acks.now, bytes, packets().count() as u64);
            }
            train.overtaken |= newest >= end;
        }
    }

    /// Trains begun so far.
    pub fn trains(&self) -> u64 {
        self.trains.len() as u64
    }

    /// Packets of the train that is being sent; 0 before the first one.
    pub fn packets_of_last(&self) -> u64 {
        self.trains.last().map_or(0, |train| train.packets)
    }

    /// When the last packet of the last train left.
    pub fn last_sent(&self) -> Option<Time> {
        self.trains.last().map(|train| train.last_sent)
    }

    /// Full trains of which nothing more is to be heard.
    pub fn complete(&self) -> usize {
        let full = |train: &&Train| train.packets * 2 > self.length && train.complete();
        self.trains.iter().filter(full).count()
    }

    /// Nothing more is to be heard of any train, short ones included.
    pub fn all_are_complete(&self) -> bool {
        self.trains.iter().all(Train::complete)
    }

    /// None: no train was valid.
    pub fn estimate(&self) -> Option<Estimate> {
        let trains = self.trains.iter().filter(|train| train.complete());
        let mut valid: Vec<&Train> = trains.filter(|train| train.valid(self.length)).collect();
        valid.sort_by_key(|train| train.rate());
        let median = valid.get(valid.len().saturating_sub(1) / 2)?.rate();
        // Of two that differ nobody knows which is wrong.
        if valid.len() > 2 {
            let limit = median / 100 * COMPRESSED_PERCENT;
            valid.retain(|train| train.rate() <= limit);
        }
        let bytes = valid.iter().map(|train| train.spread_bytes).sum();
        let time: Span = valid.iter().map(|train| train.dispersion()).sum();
        if time == Span::ZERO {
            return None;
        }
        Some(Estimate {
            rate: per_second(bytes, time),
            trains: valid.len(),
            fastest: valid.last()?.rate(),
            slowest: valid.first()?.rate(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acks::AckedPacket;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * MS)
    }

    /// Trains of `length` packets of 1000 bytes; each begins at one of these times.
    fn sent(length: u64, starts: &[u64]) -> Dispersion {
        let mut dispersion = Dispersion::new(length, Span::from_millis(10));
        for number in 0..length * starts.len() as u64 {
            let start = starts[usize::try_from(number / length).unwrap()];
            dispersion.on_sent(at(start), (number + 1) * 1000, 1000);
        }
        dispersion
    }

    /// An ACK of the packets with these numbers.
    fn acknowledge(dispersion: &mut Dispersion, ms: u64, numbers: std::ops::Range<u64>) {
        let packet = |number| AckedPacket {
            sent: at(0),
            bytes: 1000,
            delivered_before: 0,
            sent_before: number * 1000,
        };
        let packets: Vec<AckedPacket> = numbers.map(packet).collect();
        dispersion.on_acks(&Acks {
            now: at(ms),
            packets: &packets,
            bytes: packets.len() as u64 * 1000,
            credit: 0,
            rtt: None,
            rate: None,
            new_round: false,
        });
    }

    #[test]
    fn the_rate_is_what_follows_the_first_ack_over_its_time() {
        let mut dispersion = sent(8, &[0, 30]);
        for pair in 0..4 {
            acknowledge(&mut dispersion, 600 + pair * 2, pair * 2..pair * 2 + 2);
        }
        // 3 ACKs of 2000 bytes each in 6 ms after the first one: 1000 bytes per ms.
        let estimate = dispersion.estimate().unwrap();
        assert_eq!((estimate.rate, estimate.trains), (1_000_000, 1));
        // The second train takes twice as long: 12,000 bytes in 18 ms altogether.
        for pair in 4..8 {
            acknowledge(
                &mut dispersion,
                630 + (pair - 4) * 4,
                pair * 2..pair * 2 + 2,
            );
        }
        let estimate = dispersion.estimate().unwrap();
        assert_eq!((estimate.rate, estimate.trains), (666_666, 2));
        assert_eq!((estimate.fastest, estimate.slowest), (1_000_000, 500_000));
    }

    #[test]
    fn an_ack_that_waited_for_a_timer_does_not_count() {
        let mut dispersion = sent(9, &[0]);
        for pair in 0..4 {
            acknowledge(&mut dispersion, 600 + pair * 2, pair * 2..pair * 2 + 2);
        }
        acknowledge(&mut dispersion, 633, 8..9);
        assert_eq!(dispersion.estimate().unwrap().rate, 1_000_000);
    }

    #[test]
    fn a_lost_packet_makes_a_train_no_slower() {
        let mut dispersion = sent(10, &[0, 30]);
        // Packet 4 is lost, and was on the link nevertheless.
        for (ms, numbers) in [
            (600, 0..2),
            (602, 2..4),
            (604, 5..6),
            (605, 6..8),
            (607, 8..10),
        ] {
            acknowledge(&mut dispersion, ms, numbers);
        }
        acknowledge(&mut dispersion, 640, 10..12);
        let estimate = dispersion.estimate().unwrap();
        assert_eq!(estimate.rate, 1_000_000);
    }

    #[test]
    fn what_was_not_sent_at_once_or_is_too_short_says_nothing() {
        let mut slow = Dispersion::new(4, Span::from_millis(10));
        for number in 0..4 {
            slow.on_sent(at(number * 2), (number + 1) * 1000, 1000);
        }
        for number in 0..4 {
            acknowledge(&mut slow, 600 + number * 2, number..number + 1);
        }
        assert_eq!((slow.complete(), slow.estimate()), (1, None));
        let mut short = sent(20, &[0]);
        short.trains[0].packets = 10;
        for pair in 0..10 {
            acknowledge(&mut short, 600 + pair * 2, pair * 2..pair * 2 + 2);
        }
        assert_eq!((short.complete(), short.estimate()), (0, None));
    }

    #[test]
    fn a_train_whose_acks_came_compressed_is_left_out_of_three() {
        let mut dispersion = sent(8, &[0, 30, 60]);
        for (train, gap) in [(0, 4), (1, 1), (2, 4)] {
            for pair in 0..4 {
                let first = train * 8 + pair * 2;
                acknowledge(
                    &mut dispersion,
                    600 + train * 30 + pair * gap,
                    first..first + 2,
                );
            }
            if train == 1 {
                // Of two nobody knows which is wrong: 12,000 bytes in 15 ms.
                assert_eq!(dispersion.estimate().unwrap().rate, 800_000);
            }
        }
        let estimate = dispersion.estimate().unwrap();
        assert_eq!((estimate.rate, estimate.trains), (500_000, 2));
    }

    #[test]
    fn acks_that_come_at_once_say_nothing() {
        let mut dispersion = sent(8, &[0]);
        for pair in 0..4 {
            acknowledge(&mut dispersion, 600, pair * 2..pair * 2 + 2);
        }
        assert_eq!(dispersion.estimate(), None);
        // Nor do they beside a train whose ACKs are spread.
        let mut dispersion = sent(8, &[0, 30]);
        for pair in 0..4 {
            acknowledge(&mut dispersion, 600, pair * 2..pair * 2 + 2);
        }
        for pair in 4..8 {
            acknowledge(&mut dispersion, 630 + pair * 2, pair * 2..pair * 2 + 2);
        }
        let estimate = dispersion.estimate().unwrap();
        assert_eq!((estimate.fastest, estimate.trains), (1_000_000, 1));
    }
}
