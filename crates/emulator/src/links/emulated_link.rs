//! An emulated link, one direction of one segment: packets meet the link when they arrive, and wait
//! until they are to come out.
//!
//! A node like those of virtual time: it is told the time, and reads no clock. What a link does to
//! a packet is decided once, by the time at which the kernel got it, so the emulator's own delays
//! change no fate.

use std::collections::VecDeque;
use std::sync::Arc;

use bentpipe_link::{Counters, Fate, Link};
use bentpipe_units::Time;

use crate::packet_socket::packet_port::ETHERNET;

/// An Ethernet frame.
pub type Frame = Arc<[u8]>;

/// An emulated link: one direction of one segment.
pub(crate) struct EmulatedLink {
    link: Link,
    /// In the order in which they arrived, in which they also come out.
    waiting: VecDeque<Waiting>,
    last_arrival: Time,
    released: u64,
    released_bytes: u64,
}

struct Waiting {
    due: Time,
    frame: Frame,
}

impl EmulatedLink {
    /// A link that nothing has passed yet.
    pub fn new(link: Link) -> Self {
        Self {
            link,
            waiting: VecDeque::new(),
            last_arrival: Time::ZERO,
            released: 0,
            released_bytes: 0,
        }
    }

    /// Takes in a frame, and tells when it arrived and what becomes of the packet in it. Two
    /// processors may stamp in another order than that in which frames come: what seems to be
    /// earlier than the one before arrives with it.
    pub fn admit(&mut self, stamped: Time, frame: &Frame) -> (Time, Fate) {
        let arrival = stamped.max(self.last_arrival);
        self.last_arrival = arrival;
        let fate = self.link.admit(arrival, ip_bytes(frame));
        if let Fate::Delivered { at: due } = fate {
            debug_assert!(self.waiting.back().is_none_or(|last| last.due <= due));
            let frame = Arc::clone(frame);
            self.waiting.push_back(Waiting { due, frame });
        }
        (arrival, fate)
    }

    /// The time at which the next packet is due to come out.
    pub fn next(&self) -> Option<Time> {
        let due = self.waiting.front()?.due;
        (due < Time::NEVER).then_some(due)
    }

    /// The frames that are due by now, at most `most`.
    pub fn due(&self, now: Time, most: usize) -> Vec<&[u8]> {
        let due = self.waiting.iter().take_while(|it| it.due <= now);
        due.take(most).map(|it| &*it.frame).collect()
    }

    /// The next packet has come out. Tells when it was to.
    pub fn release(&mut self) -> Time {
        let out = self.discard();
        self.released += 1;
        self.released_bytes += u64::from(ip_bytes(&out.frame));
        out.due
    }

    /// The next packet does not come out: the kernel did not take it.
    pub fn fail(&mut self) {
        self.discard();
    }

    fn discard(&mut self) -> Waiting {
        self.waiting.pop_front().expect("what was due waits")
    }

    /// The link's counters so far.
    pub fn counters(&self) -> Counters {
        self.link.counters()
    }

    /// The bytes that wait for the link's capacity.
    pub fn queue_bytes(&self, now: Time) -> u64 {
        self.link.queue_bytes(now)
    }

    /// Packets and bytes that came out.
    pub fn released(&self) -> (u64, u64) {
        (self.released, self.released_bytes)
    }
}

/// Bytes of the packet in a frame.
pub(crate) fn ip_bytes(frame: &[u8]) -> u32 {
    u32::try_from(frame.len() - ETHERNET).expect("a port gives frames of the MTU at most")
}
