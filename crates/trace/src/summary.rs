//! How much of a capture was decoded, and what was not, and why.

use std::collections::BTreeMap;
use std::fmt::Display;

use bentpipe_wire::DecapsulationError;
use bentpipe_wire::quic::{FrameError, PacketType, Reason};

/// Counts of one capture file.
#[derive(Debug, Default)]
pub struct Summary {
    packets: usize,
    missing: BTreeMap<String, Missing>,
}

/// The parts that were left out for one reason.
#[derive(Debug, Clone, Copy)]
struct Missing {
    count: usize,
    first_frame: usize,
}

impl Summary {
    /// Counts a packet that was decoded, and notes if its frames could not be read to the end.
    pub fn packet(&mut self, frame: usize, kind: PacketType, frames: Result<(), FrameError>) {
        self.packets += 1;
        if let Err(error) = frames {
            self.note_undecodable(frame, format!("frames of {} packets: {error}", kind.name()));
        }
    }

    /// Counts a captured packet that is no datagram.
    pub fn no_datagram(&mut self, frame: usize, reason: DecapsulationError) {
        self.note_undecodable(frame, format!("captured packets: {reason}"));
    }

    /// Counts what an observer could not decode.
    pub fn undecoded(&mut self, frame: usize, interface: &str, reason: Reason) {
        self.note_undecodable(frame, format!("QUIC packets on {interface}: {reason}"));
    }

    fn note_undecodable(&mut self, frame: usize, what: String) {
        let missing = self.missing.entry(what).or_insert(Missing {
            count: 0,
            first_frame: frame,
        });
        missing.count += 1;
        missing.first_frame = missing.first_frame.min(frame); // packets that waited come late
    }

    /// Prints the summary of the capture called `name` on standard error.
    pub fn print(&self, name: &impl Display) {
        eprintln!("{name}: {} packets decoded", self.packets);
        for (what, missing) in &self.missing {
            let Missing { count, first_frame } = missing;
            eprintln!("{name}: not decoded: {count} {what} (first in frame {first_frame})");
        }
    }
}
