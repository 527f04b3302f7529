//! Moves the packets of all segments, both ways, one step at a time.
//!
//! It does what it is told the time for and waits for nothing; [`Clock`] and [`Port`] are what tests put in the place of
//! this machine's.

use std::io;
use std::sync::Arc;

use bentpipe_link::{Direction, SegmentName};
use bentpipe_units::{Span, Time};

use crate::capture::{PacketEvent, Record};
use crate::clock::Clock;
use crate::histogram::Histogram;
use crate::lane::{Frame, Lane};
use crate::port::{ETHERNET, MTU, Port, Received};
use crate::segment_counters::Meter;

/// Frames that a lane takes in or lets out until it is another's turn.
const BATCH: usize = 32;
/// How often meters are brought up to date.
const SHOW: Span = Span::from_millis(10);

/// What should not come to an emulated link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// Frames without an IP packet to one host: handed on at once.
    pub others: u64,
    /// Frames above the MTU, which a host has merged: dropped.
    pub merged: u64,
    /// Frames whose checksum a host has left open.
    pub unfinished: u64,
    /// Frames that the kernel did not take from us.
    pub refused: u64,
}

/// A segment with its two ports.
pub(crate) struct Crossing<P> {
    pub name: SegmentName,
    pub client_side: P,
    pub server_side: P,
    pub forward: Line,
    pub return_: Line,
}

/// A lane and what is noted of it.
pub(crate) struct Line {
    lane: Lane,
    meter: Arc<Meter>,
    late: Histogram,
}

/// Everything that the forwarding thread moves.
pub(crate) struct Engine<P> {
    pub crossings: Vec<Crossing<P>>,
    pub record: Option<Record>,
    oddities: Oddities,
    show: Time,
}

impl Line {
    /// A lane that nothing has passed yet.
    pub fn new(lane: Lane, meter: Arc<Meter>) -> Self {
        Self {
            lane,
            meter,
            late: Histogram::default(),
        }
    }

    /// By how much packets came out too late.
    pub fn late(&self) -> &Histogram {
        &self.late
    }
}

impl<P> Crossing<P> {
    /// The line of a direction, where its packets come in, and where they go out.
    fn parts(&mut self, direction: Direction) -> (&mut Line, &mut P, &mut P) {
        let (client, server) = (&mut self.client_side, &mut self.server_side);
        match direction {
            Direction::Forward => (&mut self.forward, server, client),
            Direction::Return => (&mut self.return_, client, server),
        }
    }

    /// The line of a direction.
    pub fn line(&self, direction: Direction) -> &Line {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Return => &self.return_,
        }
    }
}

impl<P: Port> Engine<P> {
    /// Nothing has moved yet.
    pub fn new(crossings: Vec<Crossing<P>>, record: Option<Record>) -> Self {
        Self {
            crossings,
            record,
            oddities: Oddities::default(),
            show: Time::ZERO,
        }
    }

    /// What came that should not.
    pub fn oddities(&self) -> Oddities {
        self.oddities
    }

    /// Takes in what has come and lets out what is due, a batch per lane at most. Tells when the next packet is due.
    pub fn step(&mut self, clock: &impl Clock) -> io::Result<Option<Time>> {
        let mut next = None;
        for (number, crossing) in self.crossings.iter_mut().enumerate() {
            for direction in Direction::BOTH {
                let (line, from, to) = crossing.parts(direction);
                let mut turn = Turn {
                    number: 2 * number + usize::from(direction == Direction::Return),
                    line,
                    record: &mut self.record,
                    oddities: &mut self.oddities,
                };
                turn.take_in(from, to, clock)?;
                turn.let_out(to, clock)?;
                let due = turn.line.lane.next();
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
        for crossing in &self.crossings {
            for line in [&crossing.forward, &crossing.return_] {
                line.meter.show(&line.lane, now);
            }
        }
    }
}

/// A lane whose turn it is.
struct Turn<'a> {
    number: usize,
    line: &'a mut Line,
    record: &'a mut Option<Record>,
    oddities: &'a mut Oddities,
}

impl Turn<'_> {
    fn take_in<P: Port>(&mut self, from: &mut P, to: &mut P, clock: &impl Clock) -> io::Result<()> {
        let mut stamps = None;
        let mut others = Vec::new();
        for _ in 0..BATCH {
            let taken = from.receive(&mut |received| {
                self.oddities.unfinished += u64::from(received.unfinished);
                if received.length > ETHERNET + MTU || received.frame.len() < received.length {
                    self.oddities.merged += 1;
                } else if !is_for_a_host(&received) {
                    self.oddities.others += 1;
                    others.push(received.frame.to_vec());
                } else {
                    let stamps = stamps.get_or_insert_with(|| clock.stamps());
                    self.admit(stamps.time(received.stamp), &Frame::from(received.frame));
                }
            });
            if !taken {
                break;
            }
        }
        for frame in others {
            if let Err(error) = to.send(&[&frame]) {
                self.refused(error)?;
            }
        }
        Ok(())
    }

    fn admit(&mut self, stamped: Time, frame: &Frame) {
        let (at, fate) = self.line.lane.admit(stamped, frame);
        if let Some(record) = self.record {
            record.add(PacketEvent::Arrived {
                lane: self.number,
                at,
                fate,
                frame: Arc::clone(frame),
            });
        }
    }

    fn let_out<P: Port>(&mut self, to: &mut P, clock: &impl Clock) -> io::Result<()> {
        let before = clock.now();
        let frames = self.line.lane.due(before, BATCH);
        if frames.is_empty() {
            return Ok(());
        }
        let result = to.send(&frames);
        // The time behind the call counts as that of all its packets: an error is rather overstated.
        let after = clock.now();
        match result {
            Ok(sent) => {
                for _ in 0..sent {
                    let due = self.line.lane.release();
                    self.line.late.add(after - due);
                    self.left(Some(before));
                }
            }
            Err(error) => {
                self.refused(error)?;
                self.line.lane.fail();
                self.left(None);
            }
        }
        Ok(())
    }

    /// Counts a frame that the kernel had no room for. Any other error is one of the device.
    fn refused(&mut self, error: io::Error) -> io::Result<()> {
        if error.raw_os_error() != Some(libc::ENOBUFS) {
            return Err(error);
        }
        self.oddities.refused += 1;
        Ok(())
    }

    fn left(&mut self, at: Option<Time>) {
        if let Some(record) = self.record {
            let lane = self.number;
            record.add(PacketEvent::Left { lane, at });
        }
    }
}

/// Whether there is an IP packet in it that goes to one host. What goes to all on the wire, as the routers' multicast
/// reports do, is a matter of the wire and not of the path.
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
