//! When to ask quiche for an ACK.
//!
//! quiche has no delayed acknowledgements: it acknowledges what has come whenever it is asked for
//! datagrams, and so leaves it to the application how often that is. Its own programs ask after
//! each batch that the socket had, which is one datagram where the link is slow. The option `ack`
//! makes the application wait for a number of them, as RFC 9000, section 13.2.2 describes it, but
//! for one thing: the application doesn't see gaps, which section 13.2.1 wants acknowledged at
//! once.

use std::time::{Duration, Instant};

/// The `max_ack_delay` that quiche sends to the peer.
const LONGEST_DELAY: Duration = Duration::from_millis(25);

/// Datagrams that quiche has not had the chance to acknowledge.
pub struct DelayedAcks {
    every: u64,
    waiting: u64,
    since: Option<Instant>,
    /// There may be more to send than an ACK.
    urgent: bool,
}

impl DelayedAcks {
    /// An ACK after `every` datagrams.
    pub fn new(every: u64) -> Self {
        Self {
            every,
            waiting: 0,
            since: None,
            urgent: false,
        }
    }

    pub fn receive(&mut self, now: Instant) {
        self.waiting += 1;
        self.since.get_or_insert(now);
    }

    /// Lets nothing delay the packets to be sent.
    pub fn send_now(&mut self) {
        self.urgent = true;
    }

    /// All that there was has been sent.
    pub fn sent(&mut self) {
        *self = Self::new(self.every);
    }

    /// Until when an ACK may wait; `None`: it may not, or there is none to be sent.
    pub fn wait_until(&self, now: Instant) -> Option<Instant> {
        let latest = self.since? + LONGEST_DELAY;
        let waits = self.waiting < self.every && !self.urgent;
        (waits && now < latest).then_some(latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ack_waits_for_datagrams_or_for_its_time() {
        #[expect(
            clippy::disallowed_methods,
            reason = "an origin; only differences count"
        )]
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut acks = DelayedAcks::new(3);
        assert_eq!(acks.wait_until(start), None);
        acks.receive(start);
        acks.receive(after(1));
        assert_eq!(acks.wait_until(after(1)), Some(after(25)));
        assert_eq!(acks.wait_until(after(25)), None);
        acks.receive(after(2));
        assert_eq!(acks.wait_until(after(2)), None);
        acks.sent();
        acks.receive(after(3));
        assert_eq!(acks.wait_until(after(3)), Some(after(28)));
        acks.send_now();
        assert_eq!(acks.wait_until(after(3)), None);
    }

    #[test]
    fn one_datagram_is_acknowledged_at_once() {
        #[expect(
            clippy::disallowed_methods,
            reason = "an origin; only differences count"
        )]
        let start = Instant::now();
        let mut acks = DelayedAcks::new(1);
        acks.receive(start);
        assert_eq!(acks.wait_until(start), None);
    }
}
