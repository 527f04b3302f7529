//! Coupled dual queues under PI2 (`DualPI2`): packets of L4S wait in a separate queue, whose marks
//! are coupled to what the others are dropped and marked by.
//!
//! Source: RFC 9332, appendix A, with overload and low link rates (appendix A.2). ECT(1) and CE go
//! to the L queue, Not-ECT and ECT(0) to the C queue; both share one buffer. The scheduler is the
//! one that the RFC recommends, weighted round robin with 1/16 for the C queue. It counts bytes, so
//! that small packets have no disadvantage, and only while packets of both queues wait. A packet of
//! the L queue counts itself when it is asked whether more than one waits (figure 7, line 5a). A
//! packet is dropped if it would take the buffer above its limit, as in other queues here, and not
//! if the largest one would (figure 3, line 2).
//!
//! A flow whose packets differ in that bit of ECN is in both queues, and may be reordered.

use std::collections::VecDeque;

use bentpipe_units::Time;

use super::pi_controller::{ONE, PiController, Recurrence};
use super::{Discipline, DualPi2Config, Fifo, Queued};
use crate::node::Transit;
use crate::waiting::Limit;

/// The bytes that the L queue sends for one of the C queue, while both have packets.
const SHARE: u64 = 15;
/// `Th_len`: the native L4S AQM does not mark while no more packets than this wait.
const SHORTEST: usize = 1;

/// Two queues under `DualPI2`, which drop at their tails where both together are full.
pub(crate) struct DualPi2 {
    config: DualPi2Config,
    limit: Limit,
    controller: PiController,
    l4s: Side,
    classic: Side,
    scheduler: Scheduler,
}

/// One of the two queues.
#[derive(Default)]
struct Side {
    fifo: Fifo,
    count: Recurrence,
}

/// Weighted round robin, by bytes.
#[derive(Default)]
struct Scheduler {
    /// Bytes that the L queue sent while packets of the C queue waited, and for which that has not
    /// been served yet.
    ahead: u64,
}

impl DualPi2 {
    pub fn new(config: DualPi2Config, limit: Limit) -> Self {
        Self {
            config,
            limit,
            controller: PiController::new(config.pi, config.coupling),
            l4s: Side::default(),
            classic: Side::default(),
            scheduler: Scheduler::default(),
        }
    }

    fn update_until(&mut self, now: Time) {
        let oldest = [&self.l4s, &self.classic].map(|queue| queue.fifo.oldest());
        let oldest = oldest.into_iter().flatten().min();
        self.controller.update_until(now, oldest);
    }

    fn is_full_for(&self, queued: &Queued) -> bool {
        let packets = self.l4s.fifo.packets.len() + self.classic.fifo.packets.len();
        let bytes = self.bytes() + queued.bytes();
        packets > 0 && self.limit.is_exceeded_by(packets as u64 + 1, bytes)
    }

    /// Decides on a packet of the L queue (figure 7, lines 4b to 8j): true if it is sent, marked or
    /// not; false if it is dropped.
    fn lets_l4s_pass(&mut self, packet: &mut Queued, now: Time) -> bool {
        let count = &mut self.l4s.count;
        if self.controller.is_overloaded() {
            if count.acts(self.controller.classic()) {
                return false;
            }
            // The coupled probability is 1.
            packet.mark();
            return true;
        }
        let waited = self.l4s.fifo.packets.len() + 1;
        let native = if waited > SHORTEST {
            native_probability(&self.config, packet, now)
        } else {
            0
        };
        if count.acts(native.max(self.controller.coupled())) {
            packet.mark();
        }
        true
    }
}

/// `laqm` of the RFC: the probability of the native L4S AQM (figure 5).
fn native_probability(config: &DualPi2Config, packet: &Queued, now: Time) -> i128 {
    let nanos = i128::from((now - packet.arrived).as_nanos());
    let above = nanos - i128::from(config.mark_above.as_nanos());
    let range = i128::from(config.range.as_nanos());
    if above >= range {
        return ONE;
    }
    ONE * above.max(0) / range.max(1)
}

impl Scheduler {
    /// Whether the L queue is served; one of the two has packets.
    fn chooses_l4s(&mut self, l4s: &Fifo, classic: &Fifo) -> bool {
        let (Some(of_l4s), Some(of_classic)) = (l4s.packets.front(), classic.packets.front())
        else {
            return !l4s.is_empty();
        };
        let cost = SHARE * of_classic.bytes();
        let chooses_l4s = self.ahead < cost;
        if chooses_l4s {
            self.ahead += of_l4s.bytes();
        } else {
            self.ahead -= cost;
        }
        chooses_l4s
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, queued: Queued, dropped: &mut VecDeque<Transit>) {
        self.update_until(queued.arrived);
        if self.is_full_for(&queued) {
            dropped.push_back(queued.transit);
        } else if queued.transit.packet.ecn % 2 == 1 {
            self.l4s.fifo.push(queued);
        } else {
            self.classic.fifo.push(queued);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut VecDeque<Transit>) -> Option<Queued> {
        self.update_until(now);
        loop {
            let (l4s, classic) = (&mut self.l4s.fifo, &mut self.classic.fifo);
            let is_l4s = self.scheduler.chooses_l4s(l4s, classic);
            let mut packet = (if is_l4s { l4s } else { classic }).pop()?;
            if self.bytes() == 0 {
                self.scheduler.ahead = 0;
            }
            let passes = if is_l4s {
                self.lets_l4s_pass(&mut packet, now)
            } else {
                let count = &mut self.classic.count;
                self.controller.lets_pass(count, &mut packet, true)
            };
            if passes {
                return Some(packet);
            }
            dropped.push_back(packet.transit);
        }
    }

    fn bytes(&self) -> u64 {
        self.l4s.fifo.bytes + self.classic.fifo.bytes
    }

    /// Where a flow's packets are of both queues.
    fn reorders(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_units::Span;

    use super::*;
    use crate::PiConfig;

    const US: u64 = 1000;

    /// Queues with this base probability, which stays as it is.
    fn queues(base: i128) -> DualPi2 {
        let never = Span::from_secs(100);
        let pi = PiConfig {
            target: never,
            update: never,
            rtt_max: never,
        };
        let config = DualPi2Config {
            pi,
            coupling: 2,
            mark_above: Span::from_nanos(800 * US),
            range: Span::from_nanos(400 * US),
        };
        let mut queues = DualPi2::new(config, Limit::Packets(1000));
        queues.controller.set_base(base);
        queues
    }

    /// Numbers, from 1 on, of those of `packets` packets that are marked and dropped, where each
    /// leaves as soon as it comes.
    fn marked_and_dropped(queues: &mut DualPi2, ecn: u8, packets: u64) -> [Vec<u64>; 2] {
        let (mut marked, mut dropped) = (Vec::new(), VecDeque::new());
        for id in 1..=packets {
            queues.enqueue(Queued::arriving(id, ecn, 1500, Time::ZERO), &mut dropped);
            let sent = queues.dequeue(Time::ZERO, &mut dropped);
            marked.extend(sent.filter(|it| it.transit.is_marked));
        }
        let dropped = dropped.iter().map(|it| it.packet.id).collect();
        [
            marked.iter().map(|it| it.transit.packet.id).collect(),
            dropped,
        ]
    }

    /// p' = 1/8: the coupled probability is 2/8, the Classic one 1/64.
    #[test]
    fn marks_are_coupled_and_squared() {
        let none: Vec<u64> = Vec::new();
        let mut queues = queues(ONE / 8);
        let found = marked_and_dropped(&mut queues, 1, 9);
        assert_eq!(found, [vec![4, 8], none.clone()]);
        let found = marked_and_dropped(&mut queues, 2, 130);
        assert_eq!(found, [vec![64, 128], none.clone()]);
        // Two more are in the count already.
        let found = marked_and_dropped(&mut queues, 0, 130);
        assert_eq!(found, [none, vec![62, 126]]);
    }

    /// p' = 1/2: the coupled probability is 1, the Classic one 1/4. Every fourth packet is dropped
    /// whatever its ECN, and the others of the L queue are marked. Just below, all of L4S are
    /// marked, and ECT(0) still is.
    #[test]
    fn overload_drops_from_both_queues() {
        let mut overloaded = queues(ONE / 2);
        let found = marked_and_dropped(&mut overloaded, 1, 8);
        assert_eq!(found, [vec![1, 2, 3, 5, 6, 7], vec![4, 8]]);
        let found = marked_and_dropped(&mut overloaded, 2, 8);
        assert_eq!(found, [vec![], vec![4, 8]]);
        let mut below = queues(ONE / 2 - 1);
        let found = marked_and_dropped(&mut below, 1, 8);
        assert_eq!(found, [vec![2, 3, 4, 5, 6, 7, 8], vec![]]);
        let found = marked_and_dropped(&mut below, 2, 8);
        assert_eq!(found, [vec![5], vec![]]);
    }

    /// The ramp from 800 us to 1200 us, of which 900 us are a quarter.
    #[test]
    fn the_native_probability_is_a_ramp_or_a_step() {
        let mut config = queues(0).config;
        let packet = Queued::arriving(0, 1, 1500, Time::ZERO);
        let at = |config: &DualPi2Config, micros| {
            native_probability(config, &packet, Time::from_nanos(micros * US))
        };
        let ramp = [0, 800, 900, 1100, 1200, 5000].map(|micros| at(&config, micros));
        assert_eq!(ramp, [0, 0, ONE / 4, ONE * 3 / 4, ONE, ONE]);
        config.range = Span::ZERO;
        let step = [799, 800, 801].map(|micros| at(&config, micros));
        assert_eq!(step, [0, ONE, ONE]);
    }

    /// Large packets of L4S and small ones of others. One of 1500 bytes is worth 15 of 100: with
    /// 1500 bytes sent one of them is owed, and so on, until nothing waits.
    #[test]
    fn the_scheduler_counts_bytes() {
        let mut queues = queues(0);
        let mut dropped = VecDeque::new();
        for id in 0..3 {
            queues.enqueue(Queued::arriving(id, 1, 1500, Time::ZERO), &mut dropped);
        }
        for id in 3..7 {
            queues.enqueue(
                Queued::arriving(id, 0, if id < 5 { 100 } else { 50 }, Time::ZERO),
                &mut dropped,
            );
        }
        let mut sent = Vec::new();
        while let Some(packet) = queues.dequeue(Time::ZERO, &mut dropped) {
            sent.push(packet.transit.packet.id);
        }
        // After 0, 15 * 100 are paid for with 3. After 1 the same with 4; after 2 only the others
        // are left.
        assert_eq!(sent, [0, 3, 1, 4, 2, 5, 6]);
        assert_eq!(queues.scheduler.ahead, 0, "L4S is first again");
    }
}
