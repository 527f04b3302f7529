//! The ranges of an ACK frame, read from the frame when asked for.
//!
//! Source: RFC 9000 sections 19.3.1 and 19.3.2.

use std::ops::RangeInclusive;

use serde::ser::{Serialize, Serializer};

use crate::cursor::Cursor;

/// The packet numbers that an ACK frame acknowledges, as ranges from the largest down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRanges<'a> {
    largest: u64,
    first_range: u64,
    /// Pairs of gap and length; checked when the frame was parsed.
    rest: &'a [u8],
}

/// The counts of packets that came with each ECN mark, RFC 9000 section 19.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct EcnCounts {
    /// ECT(0).
    pub ect0: u64,
    /// ECT(1).
    pub ect1: u64,
    /// Congestion experienced.
    pub ce: u64,
}

impl<'a> AckRanges<'a> {
    /// Largest acknowledged, ACK delay and ranges. None if the frame ends early or a range begins
    /// below 0.
    pub(super) fn parse(cursor: &mut Cursor<'a>) -> Option<(Self, u64)> {
        let largest = cursor.varint()?;
        let delay = cursor.varint()?;
        let count = cursor.varint()?;
        let first_range = cursor.varint()?;
        let start = cursor.rest();
        let mut smallest = largest.checked_sub(first_range)?;
        for _ in 0..count {
            let largest = smallest.checked_sub(cursor.varint()?.checked_add(2)?)?;
            smallest = largest.checked_sub(cursor.varint()?)?;
        }
        let ranges = Self {
            largest,
            first_range,
            rest: &start[..start.len() - cursor.rest().len()],
        };
        Some((ranges, delay))
    }

    /// The largest packet number that is acknowledged.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The ranges, each from its smallest to its largest packet number, the highest range first.
    pub fn iter(&self) -> impl Iterator<Item = RangeInclusive<u64>> + use<'a> {
        let mut cursor = Cursor::new(self.rest);
        let mut next = Some(self.largest - self.first_range..=self.largest);
        std::iter::from_fn(move || {
            let range = next.take()?;
            next = (|| {
                let largest = range.start() - cursor.varint()? - 2;
                Some(largest - cursor.varint()?..=largest)
            })();
            Some(range)
        })
    }
}

impl Serialize for AckRanges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(|range| [*range.start(), *range.end()]))
    }
}
