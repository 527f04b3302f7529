//! The algorithms by the words of a variant.

use thiserror::Error;

use bentpipe_units::Time;

use crate::avoidance::{Avoidance, Bentpipe, Cubic, Hybla, NewReno, Pico, Tolerant};
use crate::controller::{Controller, Settings};
use crate::slow_start::{
    self, HyStart, HyStartPlusPlus, JumpStart, RapidStart, Search, Search4, SlowStart, Standard,
    Trains,
};

/// A word that names no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{option} = {word:?}: write {}", choices(.known))]
pub struct UnknownName {
    /// `cc` or `ss`.
    pub option: &'static str,
    /// The word as it was written.
    pub word: String,
    /// The words that there are.
    pub known: Vec<&'static str>,
}

fn choices(known: &[&str]) -> String {
    match known {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => known.concat(),
    }
}

type NewSlowStart = fn() -> Box<dyn SlowStart>;
type NewAvoidance = fn() -> Box<dyn Avoidance>;

const SLOW_STARTS: &[NewSlowStart] = &[
    || Box::new(Standard),
    || Box::<HyStart>::default(),
    || Box::<HyStartPlusPlus>::default(),
    || Box::<slow_start::Hybla>::default(),
    || Box::new(Search::new()),
    || Box::new(Search::keeping()),
    || Box::new(Search::log_only()),
    || Box::new(Search::with_hybla()),
    || Box::new(Search::below()),
    || Box::new(Search::with_rtt_growth()),
    || Box::new(Search::with_jump_start()),
    || Box::<Search4>::default(),
    || Box::<Trains>::default(),
    || Box::new(Trains::in_a_flight()),
    || Box::<RapidStart>::default(),
    || Box::<JumpStart>::default(),
];

const AVOIDANCES: [NewAvoidance; 6] = [
    || Box::<NewReno>::default(),
    || Box::<Cubic>::default(),
    || Box::<Hybla>::default(),
    || Box::<Pico>::default(),
    || Box::<Tolerant>::default(),
    || Box::<Bentpipe>::default(),
];

/// The two algorithms of a controller: a slow start and an avoidance.
#[derive(Debug, Clone, Copy)]
pub struct Algorithms {
    slow_start: NewSlowStart,
    avoidance: NewAvoidance,
}

impl Algorithms {
    /// By the values of the options `cc` and `ss`.
    ///
    /// # Errors
    ///
    /// Either names nothing.
    pub fn new(cc: &str, ss: &str) -> Result<Self, UnknownName> {
        let avoidance = AVOIDANCES.into_iter().find(|make| make().name() == cc);
        let slow_start = SLOW_STARTS.iter().copied().find(|make| make().name() == ss);
        Ok(Self {
            avoidance: avoidance.ok_or_else(|| UnknownName {
                option: "cc",
                word: cc.to_owned(),
                known: Self::avoidances(),
            })?,
            slow_start: slow_start.ok_or_else(|| UnknownName {
                option: "ss",
                word: ss.to_owned(),
                known: Self::slow_starts(),
            })?,
        })
    }

    /// The words for `ss`.
    #[must_use]
    pub fn slow_starts() -> Vec<&'static str> {
        SLOW_STARTS.iter().map(|make| make().name()).collect()
    }

    /// The words for `cc`.
    #[must_use]
    pub fn avoidances() -> Vec<&'static str> {
        AVOIDANCES.into_iter().map(|make| make().name()).collect()
    }

    /// A controller for a new path.
    #[must_use]
    pub fn controller(&self, settings: Settings, datagram: u64, now: Time) -> Controller {
        Controller::new(
            (self.slow_start)(),
            (self.avoidance)(),
            settings,
            datagram,
            now,
        )
    }
}
