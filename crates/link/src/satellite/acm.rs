//! Adaptive coding and modulation (ACM): which MODCOD a carrier uses for a terminal at a time.
//!
//! The gateway knows the terminal's Es/N0 as it was a loop delay ago. It uses the MODCOD with the
//! most bits per symbol whose threshold and the margin do not exceed that; to a faster one than it
//! uses already it changes only where there is the hysteresis beside. With none left it uses the
//! most robust one.

use std::sync::Arc;

use bentpipe_units::{Decibel, Span, Time};

use super::course::Course;
use super::modcod::Modcod;

/// How a carrier adapts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// What Es/N0 must have above a threshold.
    pub margin: Decibel,
    /// What it must have besides, for a faster MODCOD.
    pub hysteresis: Decibel,
    /// From a change of Es/N0 to the first frame that takes account of it.
    pub delay: Span,
}

/// A terminal's reception: what its Es/N0 is where the sky is clear, and what rain takes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Es/N0, without the attenuation.
    pub es_n0: Course,
    /// What is subtracted from it; None: nothing.
    pub attenuation: Option<Course>,
}

impl Reception {
    /// The Es/N0 at a time, and until when it holds.
    pub(crate) fn at(&self, at: Time) -> (Decibel, Time) {
        let (es_n0, until) = self.es_n0.at(at);
        let Some(attenuation) = &self.attenuation else {
            return (es_n0, until);
        };
        let (attenuation, change) = attenuation.at(at);
        (es_n0 - attenuation, until.min(change))
    }

    /// The highest Es/N0 that it may have, and the lowest.
    pub(crate) fn extremes(&self) -> (Decibel, Decibel) {
        let (highest, lowest) = self.es_n0.extremes();
        let attenuation = self.attenuation.as_ref().map(Course::extremes);
        let (most, least) = attenuation.unwrap_or_default();
        (highest - least, lowest - most)
    }
}

/// The MODCODs among which a carrier chooses: the more robust ones first, each with more bits per
/// symbol than those before it. At least one.
pub(crate) type Choice = Arc<[&'static Modcod]>;

/// The MODCODs of some that are worth choosing, by what they carry.
pub(crate) fn worth_choosing(
    all: impl Iterator<Item = &'static Modcod>,
    carries: impl Fn(&Modcod) -> u64,
) -> Choice {
    let mut sorted: Vec<&'static Modcod> = all.filter(|it| carries(it) > 0).collect();
    sorted.sort_by_key(|it| (it.threshold, u64::MAX - carries(it)));
    let mut most = 0;
    sorted.retain(|it| {
        let carries_more = carries(it) > most;
        most = most.max(carries(it));
        carries_more
    });
    sorted.into()
}

/// The choice for an Es/N0, where one is used already: its index.
pub(crate) fn choose(choice: &Choice, used: Option<usize>, es_n0: Decibel, by: Loop) -> usize {
    let fastest = |needs: Decibel| choice.iter().rposition(|it| it.threshold + needs <= es_n0);
    let safe = fastest(by.margin).unwrap_or(0);
    match used {
        None => safe,
        Some(used) if safe <= used => safe,
        Some(used) => used.max(fastest(by.margin + by.hysteresis).unwrap_or(0)),
    }
}

/// The MODCOD over time.
pub(crate) struct Adaptation {
    choice: Choice,
    by: Loop,
    reception: Reception,
    used: usize,
    /// Until when it is known to be used.
    until: Time,
}

impl Adaptation {
    pub fn new(choice: Choice, by: Loop, reception: Reception) -> Self {
        // Es/N0 has been for long what it is at the beginning.
        let (first, until) = reception.at(Time::ZERO);
        Self {
            used: choose(&choice, None, first, by),
            until: later(until, by.delay),
            choice,
            by,
            reception,
        }
    }

    /// The MODCOD of a frame that begins at a time, and until when it stays. Times must not go
    /// back.
    pub fn at(&mut self, at: Time) -> (&'static Modcod, Time) {
        while self.until <= at {
            let (es_n0, until) = self.reception.at(self.until - self.by.delay);
            self.used = choose(&self.choice, Some(self.used), es_n0, self.by);
            self.until = later(until, self.by.delay);
        }
        (self.choice[self.used], self.until)
    }

    /// Whether a frame of a MODCOD that is sent at a time is received.
    pub fn is_received(&self, modcod: &Modcod, at: Time) -> bool {
        self.reception.at(at).0 >= modcod.threshold
    }
}

fn later(time: Time, delay: Span) -> Time {
    if time == Time::NEVER {
        time
    } else {
        time + delay
    }
}
