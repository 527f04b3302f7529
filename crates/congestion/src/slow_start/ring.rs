//! The last few bins of SEARCH, and how long they last: in this, 2.0 and 4.0 are the same.

use bentpipe_units::Span;

/// Bins in a window.
pub const W: u64 = 10;
/// More bins, to look back into.
pub const EXTRA_BINS: u64 = 15;
/// A window lasts 3.5 initial round-trip times.
const WINDOW_SIZE: (u64, u64) = (35, 10);
/// A bin is no shorter than the clock of 2.0's listing.
const SHORTEST_BIN: Span = Span::from_millis(1);

/// How long a bin lasts on a path of this initial round-trip time.
pub fn bin_duration(rtt: Span) -> Span {
    let (numerator, denominator) = WINDOW_SIZE;
    Span::from_nanos(rtt.as_nanos() * numerator / (denominator * W)).max(SHORTEST_BIN)
}

/// A number of bytes for each of the last `N` bins.
#[derive(Debug, Clone)]
pub struct Ring<const N: usize>([u64; N]);

impl<const N: usize> Ring<N> {
    pub fn new() -> Self {
        Self([0; N])
    }

    fn slot(bin: u64) -> usize {
        usize::try_from(bin % N as u64).expect("below N")
    }

    pub fn get(&self, bin: u64) -> u64 {
        self.0[Self::slot(bin)]
    }

    pub fn set(&mut self, bin: u64, bytes: u64) {
        self.0[Self::slot(bin)] = bytes;
    }
}
