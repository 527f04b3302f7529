//! One end of the tunnel: datagrams on one side, packets of the tunnel on the other.

use std::time::Duration;

use bentpipe_endpoint::contract::Statistics;

use crate::packet::Packet;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::settings::Settings;

/// The side of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Datagrams, as they are.
    Plain,
    /// Packets of the tunnel.
    Tunnel,
}

/// A packet that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// The side at which it leaves.
    pub side: Side,
    /// Its ECN bits.
    pub ecn: u8,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// An end of the tunnel.
#[derive(Debug)]
pub struct Tunnel {
    sender: Sender,
    receiver: Receiver,
}

impl Tunnel {
    /// An end that nothing has passed yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            sender: Sender::new(settings),
            receiver: Receiver::new(&settings),
        }
    }

    /// Takes a packet that came at a side; `departures` takes what leaves for it.
    pub fn arrive(
        &mut self,
        now: Duration,
        (side, ecn, payload): (Side, u8, &[u8]),
        departures: &mut Vec<Departure>,
    ) {
        let mut plain = Vec::new();
        let mut hand_on =
            |ecn: u8, payload: &[u8]| plain.push(departure(Side::Plain, ecn, payload));
        match side {
            Side::Plain => self.sender.send(now, ecn, payload, &mut |ecn, packet| {
                departures.push(departure(Side::Tunnel, ecn, packet));
            }),
            Side::Tunnel => match Packet::read(payload) {
                Some(Packet::Source {
                    esi,
                    ecn: sent,
                    payload,
                }) => {
                    let source = (esi, sent, payload);
                    self.receiver.source(now, source, ecn, &mut hand_on);
                }
                Some(Packet::Repair(repair)) => self.receiver.repair(now, &repair, &mut hand_on),
                Some(Packet::Report(report)) => self.sender.report(report),
                Some(Packet::Request(esis)) => self.sender.resend(esis, &mut |ecn, packet| {
                    departures.push(departure(Side::Tunnel, ecn, packet));
                }),
                None => self.receiver.seen.odd_packets += 1,
            },
        }
        departures.append(&mut plain);
        self.ask(now, departures);
    }

    /// Asks for what is missing, if it is set so.
    fn ask(&mut self, now: Duration, departures: &mut Vec<Departure>) {
        loop {
            let esis = self.receiver.requests(now);
            if esis.is_empty() {
                return;
            }
            let packet = Packet::Request(&esis).write();
            self.sender.sent.overhead_bytes += packet.len() as u64;
            departures.push(departure(Side::Tunnel, 0, &packet));
        }
    }

    /// The time at which [`Self::handle_timeout`] is to be called.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let timeouts = [self.sender.next_timeout(), self.receiver.next_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Duration, departures: &mut Vec<Departure>) {
        let mut tunnel = Vec::new();
        self.sender.handle_timeout(now, &mut |ecn, packet| {
            tunnel.push(departure(Side::Tunnel, ecn, packet));
        });
        let report = self.receiver.handle_timeout(now, &mut |ecn, payload| {
            departures.push(departure(Side::Plain, ecn, payload));
        });
        if let Some(report) = report {
            let packet = Packet::Report(report).write();
            self.sender.sent.overhead_bytes += packet.len() as u64;
            tunnel.push(departure(Side::Tunnel, 0, &packet));
        }
        departures.append(&mut tunnel);
        self.ask(now, departures);
    }

    /// Its counts, for the record.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let (sent, seen) = (self.sender.sent, &self.receiver.seen);
        let mut said = Statistics::default();
        said.say("source_packets", sent.source_packets);
        said.say("source_bytes", sent.source_bytes);
        said.say("sent_repair_packets", sent.repair_packets);
        said.say("resent_packets", sent.resent_packets);
        said.say("overhead_bytes", sent.overhead_bytes);
        said.say("too_large_packets", sent.too_large_packets);
        said.say("reported_loss_share", self.sender.reported_loss());
        said.say("received_packets", seen.received_packets);
        said.say("received_repair_packets", seen.repair_packets);
        said.say("repaired_packets", seen.repaired_packets);
        said.say("answered_packets", seen.answered_packets);
        said.say("late_packets", seen.late_packets);
        said.say("hidden_losses", seen.hidden_losses);
        said.say("repaired_in_50_ms_packets", seen.in_time_packets);
        said.say("marks", seen.marks);
        said.say("dropped_for_marks", seen.dropped_for_marks);
        said.say("lost_packets", self.receiver.lost_packets());
        said.say("most_waiting_packets", seen.most_waiting);
        said.say("copied_packets", seen.copied_packets);
        said.say("stale_packets", seen.stale_packets);
        said.say("odd_packets", seen.odd_packets);
        let mut delays = seen.repair_delays.clone();
        delays.sort();
        for (name, share) in [("median", 50), ("p95", 95), ("max", 100)] {
            let at = (delays.len() * share).div_ceil(100).max(1) - 1;
            let delay = delays.get(at).map(Duration::as_secs_f64);
            said.say(&format!("repair_delay_{name}_s"), delay);
        }
        said
    }
}

fn departure(side: Side, ecn: u8, payload: &[u8]) -> Departure {
    let payload = payload.to_vec();
    Departure { side, ecn, payload }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use bentpipe_endpoint::Options;
    use proptest::prelude::*;

    use super::*;

    const DELAY: Duration = Duration::from_millis(300);

    fn settings(options: &str) -> Settings {
        Settings::take(&mut Options::parse(options).unwrap(), Settings::default()).unwrap()
    }

    /// The datagrams that come out, each with its time, of those that go in every `every`, over a
    /// link that loses the packets of which `is_lost` says so by their number.
    fn carry(
        settings: Settings,
        (count, every): (u32, Duration),
        is_lost: impl Fn(usize) -> bool,
    ) -> (Vec<(Duration, u32)>, Tunnel) {
        let mut ends = [Tunnel::new(settings), Tunnel::new(settings)];
        let mut link: VecDeque<(Duration, usize, Departure)> = VecDeque::new();
        let (mut out, mut passed) = (Vec::new(), 0);
        let mut inputs = (0..count).map(|number| (every * number, number)).peekable();
        loop {
            let coming = inputs.peek().map(|(at, _)| *at);
            let on_link = link.front().map(|(at, ..)| *at);
            let timers = ends.each_ref().map(Tunnel::next_timeout);
            let all = [coming, on_link, timers[0], timers[1]];
            let Some(now) = all.into_iter().flatten().min() else {
                return (out, ends.into_iter().nth(1).unwrap());
            };
            let mut left = [Vec::new(), Vec::new()];
            if let Some((_, number)) = inputs.next_if(|(at, _)| *at == now) {
                // Datagrams of all sizes.
                let mut payload = number.to_be_bytes().to_vec();
                payload.resize(4 + (number as usize * 37) % 1300, 0x5a);
                ends[0].arrive(now, (Side::Plain, 2, &payload), &mut left[0]);
            }
            while let Some((at, to, packet)) = link.pop_front() {
                if at > now {
                    link.push_front((at, to, packet));
                    break;
                }
                let came = (Side::Tunnel, packet.ecn, &packet.payload[..]);
                ends[to].arrive(now, came, &mut left[to]);
            }
            for (end, left) in ends.iter_mut().zip(&mut left) {
                if end.next_timeout().is_some_and(|at| at <= now) {
                    end.handle_timeout(now, left);
                }
            }
            for (end, left) in left.into_iter().enumerate() {
                for packet in left {
                    if packet.side == Side::Plain {
                        assert_eq!((end, packet.ecn), (1, 2));
                        let number = u32::from_be_bytes(*packet.payload.first_chunk().unwrap());
                        assert_eq!(packet.payload.len(), 4 + (number as usize * 37) % 1300);
                        out.push((now, number));
                        continue;
                    }
                    // Reports, which go back, are not lost here.
                    let is_forward = end == 0;
                    passed += usize::from(is_forward);
                    if !is_forward || !is_lost(passed - 1) {
                        link.push_back((now + DELAY, 1 - end, packet));
                    }
                }
            }
        }
    }

    #[test]
    fn without_losses_nothing_is_late_or_out_of_order() {
        let (arrived, receiver) = carry(settings(""), (500, Duration::from_millis(1)), |_| false);
        let expected = (0..500).map(|it| (Duration::from_millis(1) * it + DELAY, it));
        assert!(arrived.into_iter().eq(expected));
        let seen = &receiver.receiver.seen;
        assert_eq!((seen.received_packets, seen.repair_packets), (500, 101));
    }

    #[test]
    fn one_loss_in_a_hundred_is_repaired_within_the_goal() {
        // 1 % of loss by a generator with a fixed seed, and a fifth more packets.
        let is_lost =
            |number: usize| (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < 1 << 25;
        let (mut arrived, receiver) =
            carry(settings(""), (20_000, Duration::from_millis(1)), is_lost);
        let delays = &receiver.receiver.seen.repair_delays;
        let lost = 20_000 - receiver.receiver.seen.received_packets;
        assert!((100..300).contains(&lost), "{lost}");
        let in_time = delays.iter().filter(|it| **it <= Duration::from_millis(50));
        assert!(in_time.count() as u64 * 100 >= lost * 95, "{delays:?}");
        arrived.sort_by_key(|(_, number)| *number);
        arrived.dedup_by_key(|(_, number)| *number);
        assert!(arrived.len() as u64 * 1000 >= 20_000 * 999);
    }

    #[test]
    fn a_pause_is_filled_with_the_repair_that_is_due() {
        // One datagram in 33 ms, and the third packet, a datagram, is lost.
        let every = Duration::from_millis(33);
        let (arrived, _) = carry(settings("rate=100% hold_ms=0"), (10, every), |number| {
            number == 2
        });
        let late = arrived.iter().find(|(_, number)| *number == 1).unwrap();
        // With a repair for each datagram it comes right behind it.
        assert_eq!(late.0, every + DELAY);
    }

    /// The datagrams that an end hands on of packets of the tunnel, which come with these ECN bits.
    fn handed_on(packets: &[(u8, Vec<u8>)]) -> Vec<(u8, Vec<u8>)> {
        let mut end = Tunnel::new(settings("hold_ms=0"));
        let mut out = Vec::new();
        for (ecn, packet) in packets {
            end.arrive(Duration::ZERO, (Side::Tunnel, *ecn, packet), &mut out);
        }
        out.into_iter().map(|it| (it.ecn, it.payload)).collect()
    }

    #[test]
    fn a_mark_on_the_way_is_handed_on_and_breaks_no_repair() {
        let mut end = Tunnel::new(settings("rate=100%"));
        let mut left = Vec::new();
        for (ecn, payload) in [(2, b"one"), (1, b"two"), (0, b"six"), (2, b"ten")] {
            end.arrive(Duration::ZERO, (Side::Plain, ecn, payload), &mut left);
        }
        // Source, repair, source, repair and so on; the second source is lost, and of the others
        // all are marked.
        let packets = left
            .into_iter()
            .enumerate()
            .filter(|(number, _)| *number != 2);
        let packets: Vec<_> = packets.map(|(_, it)| (3, it.payload)).collect();
        let expected = [(3, &b"one"[..]), (1, b"two"), (3, b"ten")];
        let found = handed_on(&packets);
        let found: Vec<_> = found.iter().map(|(ecn, it)| (*ecn, &it[..])).collect();
        assert_eq!(
            found, expected,
            "six cannot be told of the mark, and is lost"
        );
    }

    #[test]
    fn what_comes_twice_is_handed_on_once_and_what_is_too_large_not_at_all() {
        let source = |esi: u32, size: usize| {
            let payload = &vec![7; size];
            (
                0,
                Packet::Source {
                    esi,
                    ecn: 0,
                    payload,
                }
                .write(),
            )
        };
        let found = handed_on(&[source(0, 9), source(0, 9), source(1, 1441), source(1, 1440)]);
        let sizes: Vec<usize> = found.iter().map(|(_, payload)| payload.len()).collect();
        assert_eq!(sizes, [9, 1440]);
    }

    #[test]
    fn adaptive_rates_follow_the_loss() {
        let run = |lossy: bool| {
            let is_lost = move |number: usize| lossy && number.is_multiple_of(20);
            let (_, end) = carry(
                settings("rate=adaptive"),
                (5000, Duration::from_millis(1)),
                is_lost,
            );
            end.receiver.seen.repair_packets
        };
        let (clean, lossy) = (run(false), run(true));
        assert!(clean < 400, "{clean}");
        assert!((800..2600).contains(&lossy), "{lossy}");
    }

    #[test]
    fn what_is_asked_for_comes_a_round_trip_later_and_in_order() {
        // Of the packets that are sent again every seventh is lost too.
        let is_lost = |number: usize| number.is_multiple_of(7) && number < 2000;
        let hold = Duration::from_secs(3);
        let asking = Settings {
            hold,
            ..Settings::asking()
        };
        let (arrived, end) = carry(asking, (2000, Duration::from_millis(1)), is_lost);
        assert!(arrived.iter().map(|(_, number)| *number).eq(0..2000));
        let seen = &end.receiver.seen;
        assert!(seen.answered_packets > 200, "{seen:?}");
        let delays = &seen.repair_delays;
        assert_eq!(delays.iter().min(), Some(&(DELAY * 2)));
    }

    #[test]
    fn interleaved_blocks_repair_a_burst_that_one_block_does_not() {
        // 40 packets in a row are lost, repairs too; a block of 50 has 10 repairs.
        let is_lost = |number: usize| (100..140).contains(&number);
        let arrived = |interleave: u8| {
            let options = format!("code=reed-solomon interleave={interleave} hold_ms=0");
            let (arrived, _) = carry(settings(&options), (400, Duration::from_millis(1)), is_lost);
            arrived.len()
        };
        assert_eq!((arrived(8), arrived(1)), (400, 370));
    }

    proptest! {
        #[test]
        fn all_arrive_once_if_repairs_are_enough(
            lost in prop::collection::vec(prop::bool::weighted(0.1), 240),
            hold in 0_u64..40,
            code in prop::sample::select(vec!["rlc", "reed-solomon", "reed-solomon interleave=3"]),
        ) {
            let options = format!("rate=100% hold_ms={hold} code={code}");
            // The last ones are not lost: nothing comes behind them that could bring them back.
            let is_lost = |number: usize| lost.get(number).copied().unwrap_or(false);
            let (arrived, _) = carry(settings(&options), (148, Duration::from_millis(1)), is_lost);
            let mut numbers: Vec<u32> = arrived.iter().map(|(_, number)| *number).collect();
            if hold > 30 && code == "rlc" {
                prop_assert!(numbers.is_sorted());
            }
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..148).collect::<Vec<_>>());
        }

        #[test]
        fn any_packets_do_no_harm_and_take_bounded_memory(
            packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..24), 0..60),
            esis in prop::collection::vec(any::<u32>(), 60),
        ) {
            let mut end = Tunnel::new(settings(""));
            let mut left = Vec::new();
            for (at, (packet, esi)) in (0..).zip(packets.into_iter().zip(esis)) {
                let now = Duration::from_millis(at);
                let (kind, small) = (u8::try_from(at % 6).unwrap(), esi % 7000);
                let known = [&[kind][..], &small.to_be_bytes(), &packet].concat();
                for bytes in [&known, &packet] {
                    end.arrive(now, (Side::Tunnel, 0, bytes), &mut left);
                }
                if end.next_timeout().is_some_and(|at| at <= now) {
                    end.handle_timeout(now, &mut left);
                }
            }
            let _ = end.statistics();
        }
    }
}
