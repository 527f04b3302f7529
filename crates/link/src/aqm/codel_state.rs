//! Controlled Delay (CoDel): what it knows of one queue, and what it drops.
//!
//! Source: RFC 8289, section 5; with packets that can be marked as Linux's `codel_impl.h` does it,
//! which marks where the RFC drops, and goes on to send the packet.

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
    /// `deque` of the RFC: the next packet to send, after those that are dropped.
    pub fn dequeue(
        &mut self,
        now: Time,
        fifo: &mut Fifo,
        config: &CoDelConfig,
        dropped: &mut VecDeque<Transit>,
    ) -> Option<Queued> {
        let (mut next, mut ok_to_drop) = self.do_dequeue(now, fifo, config);
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
                (next, ok_to_drop) = self.do_dequeue(now, fifo, config);
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
                next = self.do_dequeue(now, fifo, config).0;
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
    /// that controlled the queue then is a good one to start from.
    fn begin_dropping(&mut self, now: Time, config: &CoDelConfig) {
        let delta = self.count - self.last_count;
        let is_recent = now - self.drop_next < config.interval * 16;
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
        config: &CoDelConfig,
    ) -> (Option<Queued>, bool) {
        let Some(queued) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        if now - queued.arrived < config.target || fifo.bytes <= MAX_PACKET {
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
