//! Which bytes of a stream are there: a set of offsets, kept as disjoint intervals.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of offsets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intervals {
    /// From the start of each interval to its end. None touches the next.
    ends: BTreeMap<u64, u64>,
    sum: u64,
}

impl Intervals {
    /// Adds `range` and returns how many of its offsets were not there.
    pub(crate) fn add(&mut self, range: Range<u64>) -> u64 {
        let (mut start, mut end) = (range.start, range.end);
        if start >= end {
            return 0;
        }
        // Most data come in order.
        if let Some(mut last) = self.ends.last_entry()
            && (*last.key()..=*last.get()).contains(&start)
        {
            let added = end.saturating_sub(*last.get());
            *last.get_mut() += added;
            self.sum += added;
            return added;
        }
        let mut known = 0;
        // Those that overlap or touch become one with it, from the last to the first.
        while let Some((&first, &last)) = self.ends.range(..=end).next_back() {
            if last < start {
                break;
            }
            known += last.min(range.end).saturating_sub(first.max(range.start));
            start = start.min(first);
            end = end.max(last);
            self.ends.remove(&first);
        }
        self.ends.insert(start, end);
        let added = range.end - range.start - known;
        self.sum += added;
        added
    }

    /// The parts of `range` that are there, from the last to the first.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let before = self.ends.range(..range.end).rev();
        let touching = before.take_while(move |(_, last)| **last > range.start);
        touching.map(move |(first, last)| (*first).max(range.start)..(*last).min(range.end))
    }

    /// The intervals, the last first.
    pub(crate) fn descending(&self) -> impl Iterator<Item = Range<u64>> {
        self.ends.iter().rev().map(|(start, end)| *start..*end)
    }

    /// Whether any offset of `range` is there.
    pub(crate) fn meets(&self, range: &Range<u64>) -> bool {
        let last = self.ends.range(..range.end).next_back();
        range.start < range.end && last.is_some_and(|(_, end)| *end > range.start)
    }

    /// The number of offsets.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }

    /// The end of the first interval, if that begins at 0: how far everything is there.
    pub(crate) fn contiguous(&self) -> u64 {
        self.ends.get(&0).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_set_of_offsets(ranges in prop::collection::vec((0_u64..60, 0_u64..12), 0..40)) {
            let (mut intervals, mut set) = (Intervals::default(),
                std::collections::BTreeSet::new());
            for (start, length) in ranges {
                let before = set.len();
                let known: std::collections::BTreeSet<u64> = intervals.within(start..start
                    + length).flatten().collect();
                prop_assert!(known.iter().eq(set.range(start..start + length)));
                set.extend(start..start + length);
                let added = u64::try_from(set.len() - before).unwrap();
                prop_assert_eq!(intervals.add(start..start + length), added);
                prop_assert_eq!(intervals.sum(), u64::try_from(set.len()).unwrap());
                let gap = (0..100).find(|offset| !set.contains(offset)).unwrap();
                prop_assert_eq!(intervals.contiguous(), gap);
                let all: Vec<u64> = intervals.descending().flat_map(Iterator::rev).collect();
                prop_assert!(all.iter().eq(set.iter().rev()));
                for offset in 0..75 {
                    let meets = set.range(offset..offset + 3).next().is_some();
                    prop_assert_eq!(intervals.meets(&(offset..offset + 3)), meets);
                }
            }
        }
    }
}
