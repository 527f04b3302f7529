//! An emulated link, one direction of one segment: packets meet the link when they arrive, and wait
//! until they are to come out.
//!
//! A node like those of virtual time: the time is an argument, and it reads no clock. What a link
//! does to a packet is decided by the time at which the kernel got it. Where the link's queue holds
//! packets it decides no earlier than it must, when the first of them is to come out: by then all
//! that arrived before has been taken in, so the emulator's own delays change no fate.

use std::collections::VecDeque;
use std::sync::Arc;

use bentpipe_link::{Counters, Fate, Outcome, PacketMeta, Path};
use bentpipe_units::Time;
use bentpipe_wire::{flow_hash, mark};

use crate::packet_socket::packet_port::ETHERNET;

/// An Ethernet frame.
pub type Frame = Arc<[u8]>;

/// An emulated link: one direction of one segment.
pub(crate) struct EmulatedLink {
    link: Path,
    /// The frames from the first on of packets whose fate, or that of a copy, is open, in the order
    /// of arrival.
    open: VecDeque<Option<Frame>>,
    /// The number of the first of them.
    first: u64,
    /// ICMP messages to senders, in the order of decision.
    messages: Vec<Vec<u8>>,
    /// In the order in which they come out.
    waiting: VecDeque<Waiting>,
    last_arrival: Time,
    released: u64,
    released_bytes: u64,
}

struct Waiting {
    due: Time,
    number: u64,
    frame: Frame,
}

impl EmulatedLink {
    /// A link that nothing has passed yet.
    pub fn new(link: Path) -> Self {
        Self {
            link,
            open: VecDeque::new(),
            first: 0,
            messages: Vec::new(),
            waiting: VecDeque::new(),
            last_arrival: Time::ZERO,
            released: 0,
            released_bytes: 0,
        }
    }

    /// Takes in a frame, and tells when it arrived. Two processors may stamp in another order than
    /// that in which frames come: what seems to be earlier than the one before arrives with it.
    pub fn enqueue(&mut self, stamped: Time, frame: &Frame) -> Time {
        let arrival = stamped.max(self.last_arrival);
        self.last_arrival = arrival;
        let ip = &frame[ETHERNET..];
        let packet = PacketMeta {
            id: self.first + self.open.len() as u64,
            ip_bytes: ip_bytes(frame),
            ecn: bentpipe_wire::ecn(ip),
            flow: flow_hash(ip),
            is_udp: bentpipe_wire::is_udp(ip),
        };
        self.open.push_back(Some(Arc::clone(frame)));
        self.link.enqueue(arrival, packet);
        arrival
    }

    /// Time has come to `now`: has the link decide about packets that come out by then. All that
    /// arrived before `taken` has been taken in; None: only up to the last one.
    pub fn advance(&mut self, now: Time, taken: Option<Time>) {
        if self.link.next_deadline() <= now {
            let until = now - self.link.min_delay();
            let until = until.min(taken.unwrap_or(self.last_arrival));
            self.link.advance(until);
            self.last_arrival = self.last_arrival.max(until);
        }
    }

    /// The next packet, or copy, about which the link has decided. One that is delivered waits from
    /// now on until it is due.
    pub fn outcome(&mut self) -> Option<Outcome> {
        let outcome = self.link.outcome()?;
        let number = outcome.packet.id;
        let index = usize::try_from(number - self.first).expect("they are in memory");
        let frame = match outcome.copies_under_way {
            0 => self.open[index].take(),
            _ => self.open[index].clone(),
        };
        let frame = frame.expect("a fate is decided once");
        while self.open.front().is_some_and(Option::is_none) {
            self.open.pop_front();
            self.first += 1;
        }
        if let Some(mtu) = outcome.exceeds_mtu.filter(|_| !outcome.is_copy) {
            self.messages.extend(too_big(&frame, mtu));
        }
        if let Fate::Delivered { at: due } = outcome.fate {
            debug_assert!(self.waiting.back().is_none_or(|last| last.due <= due));
            let frame = if outcome.is_marked {
                marked(&frame)
            } else {
                frame
            };
            self.waiting.push_back(Waiting { due, number, frame });
        }
        Some(outcome)
    }

    /// Takes the frames that tell senders that packets were larger than the link's MTU.
    pub fn messages(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.messages)
    }

    /// When the next packet is to come out, at the earliest.
    pub fn next(&self) -> Option<Time> {
        let held = self.link.next_deadline();
        let due = self.waiting.front().map_or(held, |it| it.due.min(held));
        (due < Time::NEVER).then_some(due)
    }

    /// The frames that are due by now, at most `most`.
    pub fn due(&self, now: Time, most: usize) -> Vec<&[u8]> {
        let due = self.waiting.iter().take_while(|it| it.due <= now);
        due.take(most).map(|it| &*it.frame).collect()
    }

    /// The next packet has come out. Tells its number, and when it was to.
    pub fn release(&mut self) -> (u64, Time) {
        let out = self.discard();
        self.released += 1;
        self.released_bytes += u64::from(ip_bytes(&out.frame));
        (out.number, out.due)
    }

    /// The next packet does not come out: the kernel did not take it. Tells its number.
    pub fn fail(&mut self) -> u64 {
        self.discard().number
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

/// The same frame, with the packet in it marked with Congestion Experienced.
pub(crate) fn marked(frame: &Frame) -> Frame {
    let mut bytes = frame.to_vec();
    mark(&mut bytes[ETHERNET..]);
    bytes.into()
}

/// The frame to the sender that tells that the packet in a frame is larger than the MTU.
fn too_big(frame: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let (ethernet, packet) = frame.split_at(ETHERNET);
    let (addresses, kind) = ethernet.split_at(12);
    let (destination, source) = addresses.split_at(6);
    let message = bentpipe_wire::too_big(packet, mtu)?;
    Some([source, destination, kind, &message].concat())
}

/// Bytes of the packet in a frame.
pub(crate) fn ip_bytes(frame: &[u8]) -> u32 {
    u32::try_from(frame.len() - ETHERNET).expect("a port gives frames of the MTU at most")
}
