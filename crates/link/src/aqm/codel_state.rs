//! Controlled Delay (CoDel): what it knows of one queue, and what it drops.
//!
//! Source: RFC 8289, section 5; with packets that can be marked as Linux's `codel_impl.h` does it,
//! which marks where the RFC drops, and goes on to send the packet. The RFC spares the last packets
//! so that the link does not fall idle: where flows have separate queues, what waits in all of them
//! counts, as in Linux, else flows of one packet each would keep a delay that nobody controls.

use std::collections::VecDeque;

use bentpipe_units::{Span, Time};

use super::CoDelConfig;
use super::{Fifo, Queued};
use crate::node::Transit;

/// Bytes that may always wait: the largest packet of Ethernet (`maxpacket_` of the RFC).
const MAX_PACKET: u64 = 1500;

/// The state of CoDel over one queue, in the RFC's words.
#[derive(Debug, Default)]
pub(crate) struct CoDelState {
    /// When the sojourn time will have been above the target for an interval; None: it is not.
    first_above: Option<Time>,
    /// Whether it drops.
    dropping: bool,
    /// When it drops next.
    drop_next: Time,
    /// Packets dropped since it began to drop.
    count: u64,
    /// `count` when it began to drop the last time.
    last_count: u64,
}

impl CoDelState {
    /// `deque` of the RFC: the next packet to send, after those that are dropped. `beside` is how
    /// many bytes wait for the same link in other queues.
    pub fn dequeue(
        &mut self,
        now: Time,
        fifo: &mut Fifo,
        beside: u64,
        config: &CoDelConfig,
        dropped: &mut VecDeque<Transit>,
    ) -> Option<Queued> {
        let (mut next, mut ok_to_drop) = self.do_dequeue(now, fifo, beside, config);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while self.dropping && now >= self.drop_next {
                let mut packet = next?;
                self.count += 1;
                if config.ecn && packet.mark() {
                    self.drop_next = control_law(self.drop_next, self.count, config.interval);
                    return Some(packet);
                }
                dropped.push_back(packet.transit);
                (next, ok_to_drop) = self.do_dequeue(now, fifo, beside, config);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, self.count, config.interval);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let mut packet = next?;
            if config.ecn && packet.mark() {
                next = Some(packet);
            } else {
                dropped.push_back(packet.transit);
                next = self.do_dequeue(now, fifo, beside, config).0;
            }
            self.begin_dropping(now, config);
        }
        next
    }

    /// Its queue was too long, and lost packets from its head: as many as if it had dropped them
    /// (Linux's `fq_codel_drop`).
    pub fn overflow(&mut self, drops: u64) {
        self.count += drops;
    }

    /// Where the delay went above the target soon after it had last gone below, the rate of drops
    /// that controlled the queue then is a good one to start from. Before the first time there is
    /// no such rate, whatever an overload has counted.
    fn begin_dropping(&mut self, now: Time, config: &CoDelConfig) {
        let delta = self.count - self.last_count;
        let has_dropped = self.last_count > 0;
        let is_recent = has_dropped && now - self.drop_next < config.interval * 16;
        self.count = if delta > 1 && is_recent { delta } else { 1 };
        self.dropping = true;
        self.drop_next = control_law(now, self.count, config.interval);
        self.last_count = self.count;
    }

    /// `dodequeue` of the RFC: the next packet, and whether it may be dropped.
    fn do_dequeue(
        &mut self,
        now: Time,
        fifo: &mut Fifo,
        beside: u64,
        config: &CoDelConfig,
    ) -> (Option<Queued>, bool) {
        let Some(queued) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let is_all = beside + fifo.bytes <= MAX_PACKET;
        if now - queued.arrived < config.target || is_all {
            self.first_above = None;
            return (Some(queued), false);
        }
        let first_above = *self.first_above.get_or_insert(now + config.interval);
        (Some(queued), now >= first_above)
    }
}

/// The time of the next drop: `interval / sqrt(count)` after `time`, rounded down.
fn control_law(time: Time, count: u64, interval: Span) -> Time {
    let squared = u128::from(interval.as_nanos()).pow(2) / u128::from(count);
    time + Span::from_nanos(u64::try_from(squared.isqrt()).expect("no longer than the interval"))
}

#[cfg(test)]
mod tests {
    use bentpipe_units::Size;

    use super::*;

    const CONFIG: CoDelConfig = CoDelConfig {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        ecn: false,
    };

    fn ms(time: u64) -> Time {
        Time::ZERO + Span::from_millis(time)
    }

    /// Milliseconds at which a packet is dropped, of those that leave one every 10 ms, when each
    /// has waited for 10 ms alone in its queue.
    fn drops(state: &mut CoDelState, beside: Size) -> Vec<u64> {
        let mut fifo = Fifo::default();
        let mut found = Vec::new();
        for at in (10..=500).step_by(10) {
            fifo.push(Queued::arriving(at, 0, 1000, ms(at - 10)));
            let mut dropped = VecDeque::new();
            state.dequeue(ms(at), &mut fifo, beside.bytes(), &CONFIG, &mut dropped);
            found.extend(dropped.iter().map(|it| it.packet.id));
        }
        found
    }

    /// Above the target from 10 ms on. A drop leaves the queue empty, which ends the state: an
    /// interval begins at the next packet.
    #[test]
    fn the_last_packet_of_a_queue_is_spared_only_if_none_waits_beside_it() {
        let alone = drops(&mut CoDelState::default(), Size::from_bytes(1500));
        assert_eq!(alone, [0; 0]);
        let beside = drops(&mut CoDelState::default(), Size::from_bytes(1501));
        assert_eq!(beside, [110, 220, 330, 440]);
    }

    /// The count of an overload before CoDel ever dropped is no rate to go on with: the first time
    /// counts from 1.
    #[test]
    fn an_overload_before_the_first_drop_does_not_set_its_rate() {
        let mut state = CoDelState::default();
        state.overflow(50);
        state.begin_dropping(ms(110), &CONFIG);
        assert_eq!((state.count, state.drop_next), (1, ms(210)));
        state.overflow(50);
        state.begin_dropping(ms(300), &CONFIG);
        assert_eq!(state.count, 50);
    }
}
