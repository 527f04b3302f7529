//! PI2 and `DualPI2` as scenario files describe them.

use bentpipe_units::Span;

use super::keys::{is_on, on_or_off, within};
use crate::fields::{Fields, Problem};

/// The parameters of a Proportional Integral controller (RFC 9332, appendix A, figure 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PiConfig {
    /// The delay to keep, `target`; 15 ms if left out.
    pub target: Span,
    /// How often the probability is updated, `Tupdate`; the target, or a third of `rtt_max` if that
    /// is shorter, if left out.
    pub update: Span,
    /// The longest round trip for which the controller is made, `RTT_max`; 100 ms if left out.
    pub rtt_max: Span,
}

/// The parameters of PI2 (RFC 9332, appendix A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pi2Config {
    /// The controller.
    pub pi: PiConfig,
    /// Whether packets are marked in place of dropped while the probability is below 25 %; on if
    /// left out.
    pub ecn: bool,
}

/// The parameters of `DualPI2` (RFC 9332, appendix A, figure 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DualPi2Config {
    /// The controller.
    pub pi: PiConfig,
    /// The marking probability of L4S in base probabilities, `k`, 1 to 255; 2 if left out.
    pub coupling: u64,
    /// The sojourn time above which packets of the L queue are marked, `minTh`; 800 us if left out.
    pub mark_above: Span,
    /// How much longer a packet must wait to be marked for certain, `range`; 400 us if left out, 0
    /// for a step.
    pub range: Span,
}

const SHORTEST: Span = Span::from_nanos(1000);
const LONGEST: Span = Span::from_secs(100);
/// A third of it is as long as the shortest update, at least.
const SHORTEST_RTT: Span = Span::from_nanos(10_000);

impl PiConfig {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let target = within(fields, "target", Span::from_millis(15), [SHORTEST, LONGEST])?;
        let usual = Span::from_millis(100);
        let rtt_max = within(fields, "rtt_max", usual, [SHORTEST_RTT, LONGEST])?;
        let usual = target.min(Span::from_nanos(rtt_max.as_nanos() / 3));
        Ok(Self {
            target,
            update: within(fields, "update", usual, [SHORTEST, LONGEST])?,
            rtt_max,
        })
    }

    fn parameters(&self) -> [(&'static str, String); 3] {
        [
            ("target", self.target.to_string()),
            ("update", self.update.to_string()),
            ("rtt_max", self.rtt_max.to_string()),
        ]
    }
}

impl Pi2Config {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            pi: PiConfig::read(fields)?,
            ecn: is_on(fields, "ecn")?,
        })
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let own = [("ecn", on_or_off(self.ecn))];
        self.pi.parameters().into_iter().chain(own).collect()
    }
}

impl DualPi2Config {
    pub(super) fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let micros = |micros: u64| Span::from_nanos(micros * 1000);
        let any = [Span::ZERO, LONGEST];
        Ok(Self {
            pi: PiConfig::read(fields)?,
            coupling: within(fields, "coupling", 2, [1, 255])?,
            mark_above: within(fields, "mark_above", micros(800), any)?,
            range: within(fields, "range", micros(400), any)?,
        })
    }

    pub(super) fn parameters(&self) -> Vec<(&'static str, String)> {
        let own = [
            ("coupling", self.coupling.to_string()),
            ("mark_above", self.mark_above.to_string()),
            ("range", self.range.to_string()),
        ];
        self.pi.parameters().into_iter().chain(own).collect()
    }
}
