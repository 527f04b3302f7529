//! Which segments of a sender are acknowledged, and of which an ACK gives an RTT sample.

use std::collections::BTreeSet;
use std::ops::Range;

use super::sequence::Position;
use crate::intervals::Intervals;

/// A segment that takes sequence space.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    /// Its ordinal among all segments of its sender.
    pub(super) number: u64,
    /// Its part of the sequence space.
    pub(super) extent: Range<Position>,
    /// Its timestamp.
    pub(super) timestamp: Option<u32>,
    /// Whether any of it was sent more than once.
    pub(super) again: bool,
}

/// The content of an ACK.
#[derive(Debug, Clone, Default)]
pub(super) struct Ack {
    /// All before this is acknowledged.
    pub(super) cumulative: Position,
    pub(super) sack: Vec<Range<Position>>,
    /// The echo of a timestamp.
    pub(super) echo: Option<u32>,
    /// Whether it reached the sender, as far as is known.
    pub(super) arrived: bool,
}

/// The segments of one sender while ACKs come in.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// In the order of their numbers.
    segments: Vec<Sent>,
    /// Segments that are not acknowledged and may have arrived: where they begin, and their index.
    open: BTreeSet<(Position, usize)>,
    /// Indices of those acknowledged.
    covered: Intervals,
    /// The lowest of those that the sender does not know to be acknowledged: ACKs are lost too.
    unreported: Option<u64>,
}

impl Acknowledged {
    pub(super) fn new(segments: Vec<Sent>) -> Self {
        Self {
            segments,
            ..Self::default()
        }
    }

    /// From now on, ACKs may cover the segment of this index.
    pub(super) fn arrives(&mut self, index: usize) {
        self.open.insert((self.segments[index].extent.start, index));
    }

    /// Takes an ACK. Writes what is acknowledged as ranges of numbers, the highest first, down to
    /// the lowest that is new to the sender. Returns the number of the segment that was answered,
    /// if it gives an RTT sample.
    pub(super) fn take(&mut self, ack: &Ack, ranges: &mut Vec<(u64, u64)>) -> Option<u64> {
        let mut newly = self.newly(Position::MIN..ack.cumulative);
        for block in &ack.sack {
            newly.extend(self.newly(block.clone()));
        }
        for index in &newly {
            let index = *index as u64;
            self.covered.add(index..index + 1);
            self.unreported = Some(self.unreported.map_or(index, |lowest| lowest.min(index)));
        }
        let lowest = self.unreported.unwrap_or(u64::MAX);
        if ack.arrived {
            self.unreported = None;
        }
        for (count, range) in self.covered.descending().enumerate() {
            if count > 0 && range.end <= lowest {
                break;
            }
            let number =
                |index: u64| self.segments[usize::try_from(index).expect("an index")].number;
            ranges.push((number(range.start), number(range.end - 1)));
        }
        self.answered(&newly, ack.echo).map(|it| it.number)
    }

    /// Takes out the segments that lie within `range`.
    fn newly(&mut self, range: Range<Position>) -> Vec<usize> {
        if range.start >= range.end {
            return Vec::new();
        }
        let begin_within = self.open.range((range.start, 0)..(range.end, 0));
        let within: Vec<_> = begin_within
            .copied()
            .filter(|(_, index)| self.segments[*index].extent.end <= range.end)
            .collect();
        for key in &within {
            self.open.remove(key);
        }
        within.into_iter().map(|(_, index)| index).collect()
    }

    /// RFC 6298 section 3: of what was sent twice, only a timestamp tells which copy was answered.
    fn answered(&self, newly: &[usize], echo: Option<u32>) -> Option<&Sent> {
        let segments = newly.iter().map(|index| &self.segments[*index]);
        let named = |it: &&Sent| echo.is_some() && it.timestamp == echo;
        let is_ambiguous = segments.clone().any(|it| it.again);
        segments
            .filter(|it| !is_ambiguous || named(it))
            .max_by_key(|it| it.number)
    }
}
