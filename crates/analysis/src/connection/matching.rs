//! Finds the packets that were seen at both of two places.
//!
//! A packet is the same if its identity and its size are. Copies of it are matched in the order in
//! which they passed.

use std::num::NonZeroU32;

use super::copies::{beginning, index};
use super::observed::PacketObservation;

/// The packets of two places: first those that were seen here, then the others.
pub(super) struct Matches<'a> {
    here: &'a [PacketObservation],
    there: &'a [PacketObservation],
    /// For each observation here, the index of that there of the same packet, plus 1: so that none
    /// takes no further room.
    partners: Vec<Option<NonZeroU32>>,
    /// The observations there that are of no packet seen here, in order.
    rest: Vec<u32>,
}

/// The observations of a packet here and there: one at least.
#[derive(Clone, Copy)]
pub(super) struct Observed<'a> {
    pub(super) here: Option<&'a PacketObservation>,
    pub(super) there: Option<&'a PacketObservation>,
}

impl<'a> Observed<'a> {
    /// One of the observations: what does not change on the way is the same in both.
    pub(super) fn either(&self) -> &'a PacketObservation {
        let either = self.here.or(self.there);
        either.expect("a packet was seen at one place at least")
    }
}

impl<'a> Matches<'a> {
    pub(super) fn of(here: &'a [PacketObservation], there: &'a [PacketObservation]) -> Self {
        let mut matches = Self {
            here,
            there,
            partners: vec![None; here.len()],
            rest: Vec::new(),
        };
        let (ours, theirs) = (sorted(here), sorted(there));
        let mut ours = ours.iter().peekable();
        for (begins, other) in &theirs {
            let order = |(our_begins, at): &(u64, u32)| {
                let full = || key(&here[*at as usize]).cmp(&key(&there[*other as usize]));
                our_begins.cmp(begins).then_with(full)
            };
            while ours.next_if(|it| order(it).is_lt()).is_some() {}
            match ours.next_if(|it| order(it).is_eq()) {
                Some((_, at)) => matches.partners[*at as usize] = NonZeroU32::new(other + 1),
                None => matches.rest.push(*other),
            }
        }
        matches.rest.sort_unstable();
        matches
    }

    pub(super) fn len(&self) -> usize {
        self.here.len() + self.rest.len()
    }

    /// The observations of the packet of this number.
    pub(super) fn observed(&self, number: usize) -> Observed<'a> {
        let there = |at: usize| &self.there[at];
        match number.checked_sub(self.here.len()) {
            None => Observed {
                here: Some(&self.here[number]),
                there: self.partner(number).map(there),
            },
            Some(rest) => Observed {
                here: None,
                there: Some(there(self.rest[rest] as usize)),
            },
        }
    }

    /// The packets that were seen at both.
    pub(super) fn pairs(
        &self,
    ) -> impl Iterator<Item = (&'a PacketObservation, &'a PacketObservation)> {
        let all = (0..self.here.len()).map(|at| self.observed(at));
        all.filter_map(|it| Some((it.here?, it.there?)))
    }

    /// The position of a packet among all that passed its sender's side, if it was seen there; else
    /// among those at the other side.
    pub(super) fn position(&self, number: usize, is_from_there: bool) -> usize {
        match number.checked_sub(self.here.len()) {
            None if is_from_there => self.partner(number).unwrap_or(number),
            None => number,
            Some(rest) => self.rest[rest] as usize,
        }
    }

    fn partner(&self, here: usize) -> Option<usize> {
        self.partners[here].map(|it| it.get() as usize - 1)
    }
}

/// Indices of observations, sorted by what the packets are; of the same packet, in order. With the
/// beginnings of their identities, which nearly always tell the order.
fn sorted(observations: &[PacketObservation]) -> Vec<(u64, u32)> {
    let all = observations.iter().enumerate();
    let all = all.map(|(at, it)| (beginning(&it.identity), index(at)));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable_by(|(begins, at), (other_begins, other)| {
        let full = |at: u32| (key(&observations[at as usize]), at);
        begins
            .cmp(other_begins)
            .then_with(|| full(*at).cmp(&full(*other)))
    });
    all
}

fn key(observation: &PacketObservation) -> ([u8; 16], u32) {
    (observation.identity, observation.size)
}
