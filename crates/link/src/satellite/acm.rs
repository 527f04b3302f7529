//! Adaptive coding and modulation (ACM): which mode, a MODCOD or a waveform, a carrier uses for a
//! terminal at a time.
//!
//! The gateway knows the terminal's Es/N0 as it was a loop delay ago. It uses the mode with the
//! most bits per symbol whose threshold and the margin do not exceed that; to a faster one than it
//! uses already it changes only where there is the hysteresis beside. With none left it uses the
//! most robust one.

use std::path::Path;
use std::sync::Arc;

use bentpipe_units::{Decibel, Span, Time};
use serde::ser::SerializeMap;

use super::decibel_steps::DecibelSteps;
use crate::fields::{Fields, Problem};

/// A modulation with its code.
pub(crate) trait Mode: 'static {
    /// The least Es/N0 at which what is sent with it is received.
    fn threshold(&self) -> Decibel;
}

/// The defaults of a carrier.
const USUAL: Loop = Loop {
    margin: Decibel::from_thousandths(500),
    hysteresis: Decibel::from_thousandths(300),
    delay: Span::from_millis(600),
};

/// The settings of adaptive coding and modulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The distance that Es/N0 must keep above a threshold.
    pub margin: Decibel,
    /// The distance that it must have besides, for a faster mode.
    pub hysteresis: Decibel,
    /// From a change of Es/N0 to the first frame that takes account of it.
    pub delay: Span,
}

impl Loop {
    pub(crate) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let mut decibel = |name, usual| {
            let Some(entry) = fields.take(name) else {
                return Ok(usual);
            };
            let value: Decibel = entry.parse()?;
            if value < Decibel::ZERO {
                return Err(entry.problem("must not be negative; write \"0.5 dB\""));
            }
            Ok(value)
        };
        Ok(Self {
            margin: decibel("margin", USUAL.margin)?,
            hysteresis: decibel("hysteresis", USUAL.hysteresis)?,
            delay: fields.optional("loop_delay")?.unwrap_or(USUAL.delay),
        })
    }

    pub(crate) fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("margin", &self.margin)?;
        map.serialize_entry("hysteresis", &self.hysteresis)?;
        map.serialize_entry("loop_delay", &self.delay)
    }
}

/// A terminal's reception: what its Es/N0 is where the sky is clear, and what rain takes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Es/N0, without the attenuation.
    pub es_n0: DecibelSteps,
    /// The attenuation to subtract from it; None: none.
    pub attenuation: Option<DecibelSteps>,
}

impl Reception {
    /// Reads a reception; `usual` is what a terminal has of that which it does not name.
    pub(crate) fn read(
        fields: &mut Fields,
        folder: &Path,
        usual: Option<&Self>,
    ) -> Result<Self, Problem> {
        let mut steps = |name| {
            let entry = fields.take(name);
            entry
                .map(|entry| DecibelSteps::read(entry, folder))
                .transpose()
        };
        let (es_n0, attenuation) = (steps("es_n0")?, steps("attenuation")?);
        let es_n0 = es_n0.or_else(|| Some(usual?.es_n0.clone()));
        Ok(Self {
            es_n0: es_n0.ok_or_else(|| fields.missing("es_n0", "\"12 dB\""))?,
            attenuation: attenuation.or_else(|| usual?.attenuation.clone()),
        })
    }

    pub(crate) fn serialize_into<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("es_n0", &self.es_n0)?;
        match &self.attenuation {
            Some(attenuation) => map.serialize_entry("attenuation", attenuation),
            None => Ok(()),
        }
    }
    /// The Es/N0 at a time, and until when it holds.
    pub(crate) fn at(&self, at: Time) -> (Decibel, Time) {
        let (es_n0, until) = self.es_n0.at(at);
        let Some(attenuation) = &self.attenuation else {
            return (es_n0, until);
        };
        let (attenuation, change) = attenuation.at(at);
        (es_n0 - attenuation, until.min(change))
    }

    /// Whether it never changes.
    pub(crate) fn is_steady(&self) -> bool {
        let (highest, lowest) = self.extremes();
        highest == lowest
    }

    /// The highest Es/N0 that it ever has, and the lowest.
    pub(crate) fn extremes(&self) -> (Decibel, Decibel) {
        let Some(attenuation) = &self.attenuation else {
            return self.es_n0.extremes();
        };
        let end = self.es_n0.repeats_with(attenuation);
        let (mut highest, mut until) = self.at(Time::ZERO);
        let mut lowest = highest;
        while until < end {
            let (value, next) = self.at(until);
            (highest, lowest, until) = (highest.max(value), lowest.min(value), next);
        }
        (highest, lowest)
    }
}

/// The modes among which a carrier chooses: the more robust ones first, each with more bits per
/// symbol than those before it. At least one.
pub(crate) type Choice<M> = Arc<[&'static M]>;

/// The modes of some that are worth choosing, by what they carry.
pub(crate) fn worth_choosing<M: Mode>(
    all: impl Iterator<Item = &'static M>,
    carries: impl Fn(&M) -> u64,
) -> Choice<M> {
    let mut sorted: Vec<&'static M> = all.filter(|it| carries(it) > 0).collect();
    sorted.sort_by_key(|it| (it.threshold(), u64::MAX - carries(it)));
    let mut most = 0;
    sorted.retain(|it| {
        let carries_more = carries(it) > most;
        most = most.max(carries(it));
        carries_more
    });
    sorted.into()
}

/// The choice for an Es/N0, where one is used already: its index.
pub(crate) fn choose<M: Mode>(
    choice: &Choice<M>,
    used: Option<usize>,
    es_n0: Decibel,
    by: Loop,
) -> usize {
    let fastest = |needs: Decibel| {
        choice
            .iter()
            .rposition(|it| it.threshold() + needs <= es_n0)
    };
    let safe = fastest(by.margin).unwrap_or(0);
    match used {
        None => safe,
        Some(used) if safe <= used => safe,
        Some(used) => used.max(fastest(by.margin + by.hysteresis).unwrap_or(0)),
    }
}

/// The mode over time.
pub(crate) struct Adaptation<M: Mode> {
    choice: Choice<M>,
    by: Loop,
    reception: Reception,
    used: usize,
    /// Until when it is known to be used.
    until: Time,
}

impl<M: Mode> Adaptation<M> {
    pub fn new(choice: Choice<M>, by: Loop, reception: Reception) -> Self {
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

    /// The mode of what is sent from a time on, and until when it stays. Times must not go back.
    pub fn at(&mut self, at: Time) -> (&'static M, Time) {
        while self.until <= at {
            let (es_n0, until) = self.reception.at(self.until - self.by.delay);
            self.used = choose(&self.choice, Some(self.used), es_n0, self.by);
            self.until = later(until, self.by.delay);
        }
        (self.choice[self.used], self.until)
    }

    /// Whether what is sent with a mode at a time is received.
    pub fn is_received(&self, mode: &M, at: Time) -> bool {
        self.reception.at(at).0 >= mode.threshold()
    }

    /// The mode of what is sent from a time on, whether that is received, and until when neither
    /// changes. Times must not go back.
    pub fn received_at(&mut self, at: Time) -> (&'static M, bool, Time) {
        let (mode, until) = self.at(at);
        let (es_n0, change) = self.reception.at(at);
        (mode, es_n0 >= mode.threshold(), until.min(change))
    }

    /// The Es/N0 at a time.
    pub fn es_n0(&self, at: Time) -> Decibel {
        self.reception.at(at).0
    }
}

fn later(time: Time, delay: Span) -> Time {
    if time == Time::NEVER {
        time
    } else {
        time + delay
    }
}
