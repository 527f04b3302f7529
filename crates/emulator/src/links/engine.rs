//! Moves the packets of all segments, both ways, one step at a time.
//!
//! It does what is due at the given time and waits for nothing; [`Clock`] and [`Port`] are what
//! tests put in the place of this machine's.

use std::io;
use std::sync::Arc;

use bentpipe_link::{Direction, SegmentName};
use bentpipe_units::{Span, Time};

use crate::capture::{PacketEvent, Record};
use crate::links::emulated_link::{EmulatedLink, Frame};
use crate::links::segment_counters::Meter;
use crate::packet_socket::packet_port::{ETHERNET, MTU, Port, Received};
use crate::timing::clock::Clock;
use crate::timing::histogram::Histogram;

/// Frames that a link takes in or lets out before the next link is served.
const BATCH: usize = 32;
/// How often meters are brought up to date.
const SHOW: Span = Span::from_millis(10);

/// Frames that an emulated link should not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Anomalies {
    /// Frames without an IP packet to one host: handed on at once.
    pub others: u64,
    /// Frames above the MTU, which a host has merged: dropped.
    pub merged: u64,
    /// Frames whose checksum a host has left open.
    pub unfinished: u64,
    /// Frames that the kernel did not take from us.
    pub refused: u64,
}

/// A segment that is emulated: its two ports, and its link in each direction.
pub(crate) struct EmulatedSegment<P> {
    /// The number of the path that it is part of.
    pub path: usize,
    pub name: SegmentName,
    pub client_side: P,
    pub server_side: P,
    pub forward: MeteredLink,
    pub return_: MeteredLink,
}

/// A link, its counters and how late its packets were released.
pub(crate) struct MeteredLink {
    link: EmulatedLink,
    meter: Arc<Meter>,
    release_delays: Histogram,
}

/// The state of the forwarding thread.
pub(crate) struct Engine<P> {
    pub segments: Vec<EmulatedSegment<P>>,
    pub record: Option<Record>,
    anomalies: Anomalies,
    show: Time,
}

impl MeteredLink {
    /// A link that nothing has passed yet.
    pub fn new(link: EmulatedLink, meter: Arc<Meter>) -> Self {
        Self {
            link,
            meter,
            release_delays: Histogram::default(),
        }
    }

    /// The lateness of the packets that were released.
    pub fn release_delays(&self) -> &Histogram {
        &self.release_delays
    }
}

impl<P> EmulatedSegment<P> {
    /// The link of a direction, the port where its packets arrive, and the one where they leave.
    fn parts(&mut self, direction: Direction) -> (&mut MeteredLink, &mut P, &mut P) {
        let (client, server) = (&mut self.client_side, &mut self.server_side);
        match direction {
            Direction::Forward => (&mut self.forward, server, client),
            Direction::Return => (&mut self.return_, client, server),
        }
    }

    /// The link of a direction.
    pub fn metered_link(&self, direction: Direction) -> &MeteredLink {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Return => &self.return_,
        }
    }
}

impl<P: Port> Engine<P> {
    /// Nothing has moved yet.
    pub fn new(segments: Vec<EmulatedSegment<P>>, record: Option<Record>) -> Self {
        Self {
            segments,
            record,
            anomalies: Anomalies::default(),
            show: Time::ZERO,
        }
    }

    /// The frames that should not have arrived.
    pub fn anomalies(&self) -> Anomalies {
        self.anomalies
    }

    /// Takes in what has come and lets out what is due, a batch per link at most. Tells when the
    /// next packet is due.
    pub fn step(&mut self, clock: &impl Clock) -> io::Result<Option<Time>> {
        let mut next = None;
        for (number, segment) in self.segments.iter_mut().enumerate() {
            for direction in Direction::BOTH {
                let (metered, from, to) = segment.parts(direction);
                let mut step = LinkStep {
                    number: 2 * number + usize::from(direction == Direction::Return),
                    metered,
                    record: &mut self.record,
                    anomalies: &mut self.anomalies,
                };
                let begun = clock.now();
                let has_all = step.take_in(from, to, clock)?;
                step.let_out(to, clock, has_all.then_some(begun))?;
                step.answer(from)?;
                let due = step.metered.link.next();
                next = [next, due].into_iter().flatten().min();
            }
        }
        let now = clock.now();
        if now >= self.show || next.is_none() {
            self.show = now + SHOW;
            self.show(now);
        }
        if let Some(record) = &mut self.record {
            record.flush(now);
        }
        Ok(next)
    }

    /// Brings the meters up to date.
    pub fn show(&self, now: Time) {
        for segment in &self.segments {
            for metered in [&segment.forward, &segment.return_] {
                metered.meter.show(&metered.link, now);
            }
        }
    }
}

/// One step of one link: it takes in what arrived, and lets out what is due.
struct LinkStep<'a> {
    number: usize,
    metered: &'a mut MeteredLink,
    record: &'a mut Option<Record>,
    anomalies: &'a mut Anomalies,
}

impl LinkStep<'_> {
    /// Takes in a batch; says whether that was all that had come.
    fn take_in<P: Port>(
        &mut self,
        from: &mut P,
        to: &mut P,
        clock: &impl Clock,
    ) -> io::Result<bool> {
        let mut stamps = None;
        let mut others = Vec::new();
        let mut has_all = false;
        for _ in 0..BATCH {
            let taken = from.receive(&mut |received| {
                self.anomalies.unfinished += u64::from(received.unfinished);
                if received.length > ETHERNET + MTU || received.frame.len() < received.length {
                    self.anomalies.merged += 1;
                } else if !is_for_a_host(&received) {
                    self.anomalies.others += 1;
                    others.push(received.frame.to_vec());
                } else {
                    let stamps = stamps.get_or_insert_with(|| clock.stamps());
                    self.enqueue(stamps.time(received.stamp), &Frame::from(received.frame));
                }
            });
            if !taken {
                has_all = true;
                break;
            }
        }
        for frame in others {
            if let Err(error) = to.send(&[&frame]) {
                self.refused(error)?;
            }
        }
        Ok(has_all)
    }

    fn enqueue(&mut self, stamped: Time, frame: &Frame) {
        let at = self.metered.link.enqueue(stamped, frame);
        if let Some(record) = self.record {
            record.add(PacketEvent::Arrived {
                link: self.number,
                at,
                frame: Arc::clone(frame),
            });
        }
        self.settle();
    }

    /// Takes note of what the link has decided.
    fn settle(&mut self) {
        let link = self.number;
        while let Some(outcome) = self.metered.link.outcome() {
            if let Some(record) = self.record {
                record.add(PacketEvent::Decided { link, outcome });
            }
        }
    }

    /// Lets out what is due. `taken` is as in [`EmulatedLink::advance`].
    fn let_out<P: Port>(
        &mut self,
        to: &mut P,
        clock: &impl Clock,
        taken: Option<Time>,
    ) -> io::Result<()> {
        let before = clock.now();
        self.metered.link.advance(before, taken);
        self.settle();
        let frames = self.metered.link.due(before, BATCH);
        if frames.is_empty() {
            return Ok(());
        }
        let result = to.send(&frames);
        // The time behind the call counts as that of all its packets: an error is rather
        // overstated.
        let after = clock.now();
        match result {
            Ok(sent) => {
                for _ in 0..sent {
                    let (number, due) = self.metered.link.release();
                    self.metered.release_delays.add(after - due);
                    self.left(number, Some(before));
                }
            }
            Err(error) => {
                self.refused(error)?;
                let number = self.metered.link.fail();
                self.left(number, None);
            }
        }
        Ok(())
    }

    /// Tells senders of packets that were too large, by what they sent them over.
    fn answer<P: Port>(&mut self, from: &mut P) -> io::Result<()> {
        for message in self.metered.link.messages() {
            if let Err(error) = from.send(&[&message]) {
                self.refused(error)?;
            }
        }
        Ok(())
    }

    /// Counts a frame that did not fit into the kernel's buffer. Any other error is one of the
    /// device.
    fn refused(&mut self, error: io::Error) -> io::Result<()> {
        if error.raw_os_error() != Some(libc::ENOBUFS) {
            return Err(error);
        }
        self.anomalies.refused += 1;
        Ok(())
    }

    fn left(&mut self, number: u64, at: Option<Time>) {
        if let Some(record) = self.record {
            let link = self.number;
            record.add(PacketEvent::Left { link, number, at });
        }
    }
}

/// Whether there is an IP packet in it that goes to one host. What goes to all on the wire, as the
/// routers' multicast reports do, is a matter of the wire and not of the path.
fn is_for_a_host(received: &Received<'_>) -> bool {
    const IPV4: [u8; 2] = [0x08, 0x00];
    const IPV6: [u8; 2] = [0x86, 0xdd];
    const GROUP: u8 = 1;
    let Some(header) = received.frame.get(..ETHERNET) else {
        return false;
    };
    header[0] & GROUP == 0 && (header.ends_with(&IPV4) || header.ends_with(&IPV6))
}

#[cfg(test)]
mod tests;
