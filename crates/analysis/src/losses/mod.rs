//! The losses of each direction, from captures of both sides.
//!
//! Packets are taken in the order in which they were sent ([`LossSequence`]). Three models are
//! fitted: each packet alike, the simplified Gilbert model, and Gilbert–Elliott. Which of them the
//! losses support is said by the Bayesian information criterion (G. Schwarz, 1978); that of Akaike
//! stands beside it. Tests say whether losses are independent, whether a Markov chain of order 1 is
//! enough, and whether they return in time.

mod chance;
mod gilbert;
mod gilbert_elliott;
mod lengths;
mod markov;
mod maximum;
mod path;
mod periodicity;
mod sequence;
mod spectrum;
mod statistics;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::connection::{Connection, Vantage};
use crate::durations::seconds;
use bentpipe_wire::quic::End;

pub use gilbert::{SimplifiedGilbert, Transitions};
pub use gilbert_elliott::{GilbertElliott, Parameters};
pub use lengths::{LengthCount, Lengths};
pub use markov::{Answer, MarkovTests, Test};
pub use path::MeasuredPath;
pub use periodicity::Periodicity;
pub use sequence::{LossRun, LossSequence};
pub use statistics::Estimate;

use statistics::count;

/// Bins of time in which losses are counted, for drawing.
const TIME_BINS: i64 = 100;

/// The losses between two sides.
#[derive(Debug, Serialize)]
pub struct Losses {
    /// The number of connections that were captured at both sides.
    pub connections: usize,
    /// The number of connections that were captured at one place alone, and are left out.
    pub one_sided: usize,
    /// Server to client.
    pub forward: DirectionLosses,
    /// Client to server.
    #[serde(rename = "return")]
    pub return_: DirectionLosses,
}

impl Losses {
    /// The losses of connections, which share the path.
    #[must_use]
    pub fn of(connections: &[Connection]) -> Self {
        let both = connections.iter().filter(|it| it.vantage == Vantage::Both);
        let both = both.count();
        Self {
            connections: both,
            one_sided: connections.len() - both,
            forward: DirectionLosses::of(connections, End::Server),
            return_: DirectionLosses::of(connections, End::Client),
        }
    }
}

/// The losses of a direction. What there are too few losses for is None.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DirectionLosses {
    /// Packets that were delivered or lost.
    pub packets: u64,
    /// Packets that were lost.
    pub losses: u64,
    /// Packets that a queue dropped, which are left out.
    pub queue_drops: u64,
    /// Losses which may be drops by a queue: the capture does not tell them apart.
    pub unexplained: u64,
    /// Packets of which it is not known what became of them, which are left out.
    pub undecided: u64,
    /// From the first packet to the last.
    pub duration_s: f64,
    /// The share that was lost, with the interval of independent losses.
    pub rate: Option<Estimate>,
    /// The same, with an interval for losses that come in bursts, as in the simplified Gilbert
    /// model.
    pub rate_in_bursts: Option<Estimate>,
    /// The simplified Gilbert model.
    pub simplified_gilbert: Option<SimplifiedGilbert>,
    /// The Gilbert–Elliott model.
    pub gilbert_elliott: Option<GilbertElliott>,
    /// The fit of each model.
    pub models: Vec<ModelFit>,
    /// The model with the least BIC.
    pub preferred: Option<Model>,
    /// The lengths of bursts.
    pub bursts: Option<Lengths>,
    /// The lengths of gaps.
    pub gaps: Option<Lengths>,
    /// Whether losses are independent, and whether a Markov chain is enough.
    pub tests: Option<MarkovTests>,
    /// Whether losses return in time.
    pub periodicity: Option<Periodicity>,
    /// Losses over time.
    pub over_time: Vec<TimeBin>,
    /// The delay and the rate of the path, by its packets.
    pub path: MeasuredPath,
}

/// A model of losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Each packet alike, independent of the others.
    Uniform,
    /// The simplified Gilbert model.
    SimplifiedGilbert,
    /// The Gilbert–Elliott model.
    GilbertElliott,
}

/// A model with how well it fits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModelFit {
    /// The model.
    pub model: Model,
    /// The number of its parameters.
    pub parameters: u32,
    /// The natural logarithm of its likelihood.
    pub log_likelihood: f64,
    /// Akaike's information criterion.
    pub aic: f64,
    /// The Bayesian one.
    pub bic: f64,
}

impl ModelFit {
    fn new(model: Model, parameters: u32, log_likelihood: f64, packets: u64) -> Self {
        let weight = f64::from(parameters);
        Self {
            model,
            parameters,
            log_likelihood,
            aic: 2.0 * weight - 2.0 * log_likelihood,
            bic: weight * count(packets).ln() - 2.0 * log_likelihood,
        }
    }
}

/// A bin of time with what was sent and lost in it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimeBin {
    /// The time at which it begins, from the first packet on.
    pub start_s: f64,
    /// Packets that were sent in it.
    pub packets: u64,
    /// Packets of these that were lost.
    pub losses: u64,
}

impl DirectionLosses {
    /// The losses of what `sender` sent.
    #[must_use]
    pub fn of(connections: &[Connection], sender: End) -> Self {
        let sequence = LossSequence::of(connections, sender);
        Self {
            path: MeasuredPath::of(connections, sender),
            ..Self::of_sequence(&sequence)
        }
    }

    /// The losses of a sequence.
    #[must_use]
    pub fn of_sequence(sequence: &LossSequence) -> Self {
        let runs = sequence.runs();
        let (packets, losses) = (sequence.lost.len() as u64, sequence.losses());
        let fits = ModelFits::of(&runs);
        let rate = Estimate::proportion(losses, packets);
        let drawn_by = rate.and_then(|it| fits.parameters(it.value));
        let periodicity =
            drawn_by.and_then(|it| Periodicity::of(&sequence.sent, &sequence.lost, &it));
        let spread = fits.simplified_gilbert.and_then(|it| it.spread());
        let worth = spread.map(|it| count(packets) / it);
        Self {
            packets,
            losses,
            queue_drops: sequence.queue_drops,
            unexplained: sequence.unexplained,
            undecided: sequence.undecided,
            duration_s: seconds(sequence.sent.last().copied().unwrap_or(0)),
            rate,
            rate_in_bursts: worth
                .zip(rate)
                .and_then(|(worth, rate)| Estimate::wilson(rate.value * worth, worth)),
            simplified_gilbert: fits.simplified_gilbert,
            gilbert_elliott: fits.gilbert_elliott,
            preferred: fits.preferred(),
            models: fits.models,
            bursts: Lengths::of_bursts(&runs),
            gaps: Lengths::of_gaps(&runs),
            tests: (losses > 0).then(|| MarkovTests::of(&runs)),
            periodicity,
            over_time: over_time(sequence),
            path: MeasuredPath::default(),
        }
    }
}

/// The models, fitted to one sequence.
struct ModelFits {
    simplified_gilbert: Option<SimplifiedGilbert>,
    gilbert_elliott: Option<GilbertElliott>,
    models: Vec<ModelFit>,
}

impl ModelFits {
    fn of(runs: &[LossRun]) -> Self {
        let packets = runs.iter().map(|it| it.length).sum::<u64>();
        let losses = runs.iter().filter(|it| it.lost);
        let losses = losses.map(|it| it.length).sum::<u64>();
        let seen = Transitions::of(runs);
        let simple = seen.and_then(|it| SimplifiedGilbert::fit(&it));
        let hidden = GilbertElliott::fit(runs);
        let mut models = Vec::new();
        if 0 < losses && losses < packets {
            let rate = count(losses) / count(packets);
            let alike = gilbert::log_power(rate, losses);
            let alike = alike + gilbert::log_power(1.0 - rate, packets - losses);
            models.push(ModelFit::new(Model::Uniform, 1, alike, packets));
            if let Some((seen, simple)) = seen.zip(simple) {
                let fits = simple.log_likelihood(&seen);
                // A sequence that begins with the only loss is impossible for the fit of the rest.
                if fits.is_finite() {
                    models.push(ModelFit::new(Model::SimplifiedGilbert, 2, fits, packets));
                }
            }
            if let Some(hidden) = hidden {
                let fits = hidden.log_likelihood;
                models.push(ModelFit::new(Model::GilbertElliott, 4, fits, packets));
            }
        }
        Self {
            simplified_gilbert: simple,
            gilbert_elliott: hidden,
            models,
        }
    }

    /// The model with the least BIC.
    fn preferred(&self) -> Option<Model> {
        let models = self.models.iter();
        let best = models.min_by(|one, other| one.bic.total_cmp(&other.bic));
        best.map(|it| it.model)
    }

    /// The preferred model as the special case of Gilbert–Elliott that it is.
    fn parameters(&self, rate: f64) -> Option<Parameters> {
        match self.preferred()? {
            Model::Uniform => Some(Parameters::uniform(rate)),
            Model::SimplifiedGilbert => self.simplified_gilbert.map(|it| Parameters {
                p_bad_given_good: it.p_bad_given_good.value,
                p_good_given_bad: it.p_good_given_bad.value,
                loss_in_good: 0.0,
                loss_in_bad: 1.0,
            }),
            Model::GilbertElliott => self.gilbert_elliott.map(|it| it.parameters()),
        }
    }
}

fn over_time(sequence: &LossSequence) -> Vec<TimeBin> {
    let Some(last) = sequence.sent.last() else {
        return Vec::new();
    };
    let width = last / TIME_BINS + 1;
    let bins = (0..TIME_BINS).map(|bin| TimeBin {
        start_s: seconds(bin * width),
        packets: 0,
        losses: 0,
    });
    let mut bins: Vec<_> = bins.collect();
    for (sent, lost) in sequence.sent.iter().zip(&sequence.lost) {
        let bin = usize::try_from(sent / width).expect("none is sent before the first");
        bins[bin].packets += 1;
        bins[bin].losses += u64::from(*lost);
    }
    bins
}
