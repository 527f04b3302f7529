//! Which packets are lost on the way.

use std::fmt;

use bentpipe_units::{Ratio, Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::intervals::Intervals;
use crate::node::{Node, Step, Transit};
use crate::packets::Packets;
use crate::random::Dice;
use crate::steps;

/// Loss of whole IP packets that have passed the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// `"none"`.
    #[default]
    None,
    /// `"1 %"`: each packet alike, independent of the others.
    Uniform(Ratio),
    /// `{ model = "gilbert-elliott", p_bad_given_good = "1.7 %", p_bad_given_bad = "6.5 %" }`: a
    /// Markov chain of two states with a step for every packet, from the good state before the
    /// first. It is Gilbert's simplified model unless the last two, `loss_in_good` and
    /// `loss_in_bad`, say else.
    GilbertElliott {
        /// The probability that a packet finds the bad state after one that found the good state.
        p_bad_given_good: Ratio,
        /// The probability that a packet finds the bad state after one that found the bad state.
        p_bad_given_bad: Ratio,
        /// The loss ratio in the good state, 0 % if left out.
        loss_in_good: Ratio,
        /// The loss ratio in the bad state, 100 % if left out.
        loss_in_bad: Ratio,
    },
    /// `{ model = "periodic", every = "100 packets", burst = "2 packets" }`: of every 100 packets
    /// the last two. `burst` is one packet if left out.
    Periodic {
        /// The period.
        every: Packets,
        /// How many packets at its end are lost.
        burst: Packets,
    },
    /// `{ model = "handover", every = "15 s", lasts = "100 ms", loss = "50 %" }`: for 100 ms after
    /// each change of the intervals, packets whose last bit is sent then are lost, each alike; none
    /// at other times.
    Handover {
        /// When there is a handover.
        intervals: Intervals,
        /// How long packets are lost after it.
        lasts: Span,
        /// The loss ratio then, 100 % if left out.
        loss: Ratio,
    },
    /// `{ model = "steps", steps = [["0 s", "0 %"], ["5 s", "100 %"], ["6 s", "0 %"]] }`: the loss
    /// ratio changes with time; a packet gets that of the instant at which its last bit is sent,
    /// each alike.
    Steps {
        /// The ratios, each with the time from which on it holds; not empty, from time 0, in order.
        steps: Vec<(Time, Ratio)>,
        /// The time after which the steps begin again; None: the last one holds for ever.
        period: Option<Span>,
    },
}

const MODELS: &str = "\"gilbert-elliott\", \"periodic\", \"handover\" or \"steps\"";
const EXAMPLES: &str = "\"none\", \"1 %\" or { model = \"gilbert-elliott\", \
                        p_bad_given_good = \"1.7 %\", p_bad_given_bad = \"6.5 %\" }";

impl Loss {
    pub(crate) fn read(entry: Entry) -> Result<Self, Problem> {
        if entry.is_text("none") {
            return Ok(Self::None);
        }
        if !entry.is_table() {
            return entry.parse().map(Self::Uniform);
        }
        let mut fields = entry.table()?;
        let model = fields.required("model", MODELS)?;
        let loss = if model.is_text("gilbert-elliott") {
            Self::read_gilbert_elliott(&mut fields)?
        } else if model.is_text("periodic") {
            Self::read_periodic(&mut fields)?
        } else if model.is_text("handover") {
            Self::read_handover(&mut fields)?
        } else if model.is_text("steps") {
            Self::read_steps(&mut fields)?
        } else {
            return Err(model.problem(&format!("unknown model of loss; write {EXAMPLES}")));
        };
        fields.finish()?;
        Ok(loss)
    }

    fn read_gilbert_elliott(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self::GilbertElliott {
            p_bad_given_good: fields.required("p_bad_given_good", "\"1.7 %\"")?.parse()?,
            p_bad_given_bad: fields.required("p_bad_given_bad", "\"6.5 %\"")?.parse()?,
            loss_in_good: fields.optional("loss_in_good")?.unwrap_or(Ratio::ZERO),
            loss_in_bad: fields.optional("loss_in_bad")?.unwrap_or(Ratio::ONE),
        })
    }

    fn read_periodic(fields: &mut Fields) -> Result<Self, Problem> {
        let every = fields.required("every", "\"100 packets\"")?;
        let period = every.parse()?;
        let burst = fields.optional("burst")?.unwrap_or(Packets(1));
        if period == Packets(0) || burst > period {
            return Err(every.problem("a period has at least 1 packet, and as many as the burst"));
        }
        Ok(Self::Periodic {
            every: period,
            burst,
        })
    }
}

impl Loss {
    fn read_steps(fields: &mut Fields) -> Result<Self, Problem> {
        let example = "[[\"0 s\", \"0 %\"], [\"5 s\", \"100 %\"]]";
        let steps = steps::read(&fields.required("steps", example)?, ["0 %", "100 %"])?;
        let period = steps::read_period(fields, &steps)?;
        Ok(Self::Steps { steps, period })
    }

    fn read_handover(fields: &mut Fields) -> Result<Self, Problem> {
        let intervals = Intervals::required(fields, "15 s")?;
        let entry = fields.required("lasts", "\"100 ms\"")?;
        let lasts: Span = entry.parse()?;
        if lasts > intervals.every {
            let message = format!(
                "longer than from one handover to the next, {}",
                intervals.every
            );
            return Err(entry.problem(&message));
        }
        Ok(Self::Handover {
            intervals,
            lasts,
            loss: fields.optional("loss")?.unwrap_or(Ratio::ONE),
        })
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::Uniform(ratio) => ratio.serialize(serializer),
            Self::GilbertElliott {
                p_bad_given_good,
                p_bad_given_bad,
                loss_in_good,
                loss_in_bad,
            } => serializer.collect_map([
                ("model", "gilbert-elliott".to_owned()),
                ("p_bad_given_good", p_bad_given_good.to_string()),
                ("p_bad_given_bad", p_bad_given_bad.to_string()),
                ("loss_in_good", loss_in_good.to_string()),
                ("loss_in_bad", loss_in_bad.to_string()),
            ]),
            Self::Periodic { every, burst } => serializer.collect_map([
                ("model", "periodic".to_owned()),
                ("every", every.to_string()),
                ("burst", burst.to_string()),
            ]),
            Self::Handover {
                intervals,
                lasts,
                loss,
            } => {
                let fields = [
                    ("model", "handover".to_owned()),
                    ("lasts", lasts.to_string()),
                    ("loss", loss.to_string()),
                ];
                serializer.collect_map(fields.into_iter().chain(intervals.fields()))
            }
            Self::Steps { steps, period } => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("model", "steps")?;
                map.serialize_entry("steps", steps)?;
                if let Some(period) = period {
                    map.serialize_entry("period", period)?;
                }
                map.end()
            }
        }
    }
}

/// For people.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Uniform(ratio) => ratio.fmt(f),
            Self::GilbertElliott {
                p_bad_given_good,
                p_bad_given_bad,
                loss_in_good,
                loss_in_bad,
            } => {
                write!(
                    f,
                    "bursts (Gilbert-Elliott, P(b|g) {p_bad_given_good}, P(b|b) {p_bad_given_bad}"
                )?;
                if (*loss_in_good, *loss_in_bad) != (Ratio::ZERO, Ratio::ONE) {
                    write!(f, ", lost {loss_in_good} in g, {loss_in_bad} in b")?;
                }
                f.write_str(")")
            }
            Self::Periodic { every, burst } => write!(f, "{burst} of {every}"),
            Self::Handover {
                intervals,
                lasts,
                loss,
            } => write!(f, "{loss} for {lasts} every {}", intervals.every),
            Self::Steps { steps, period } => {
                let ratios = || steps.iter().map(|(_, ratio)| *ratio);
                let least = ratios().min().unwrap_or(Ratio::ZERO);
                let most = ratios().max().unwrap_or(Ratio::ZERO);
                write!(f, "{least} to {most} in {} steps", steps.len())?;
                match period {
                    Some(period) => write!(f, ", again every {period}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// The losses of one link.
pub(crate) struct Losses {
    model: Loss,
    dice: Dice,
    /// Whether the last packet found the bad state.
    bad: bool,
    /// Packets since the period began.
    count: u64,
}

impl Losses {
    pub fn new(model: Loss, dice: Dice) -> Self {
        Self {
            model,
            dice,
            bad: false,
            count: 0,
        }
    }

    /// Whether the next packet is lost, whose last bit is sent at `departure`.
    fn next(&mut self, departure: Time) -> bool {
        match &self.model {
            Loss::None => false,
            Loss::Uniform(ratio) => self.dice.chance(*ratio),
            Loss::GilbertElliott {
                p_bad_given_good,
                p_bad_given_bad,
                loss_in_good,
                loss_in_bad,
            } => {
                let to_bad = if self.bad {
                    p_bad_given_bad
                } else {
                    p_bad_given_good
                };
                self.bad = self.dice.chance(*to_bad);
                let ratio = if self.bad { loss_in_bad } else { loss_in_good };
                self.dice.chance(*ratio)
            }
            Loss::Periodic { every, burst } => {
                self.count = self.count % every.0 + 1;
                self.count > every.0 - burst.0
            }
            Loss::Handover {
                intervals,
                lasts,
                loss,
            } => {
                let since = intervals.since_change(departure);
                let during = since.is_some_and(|since| since < *lasts);
                self.dice.chance(if during { *loss } else { Ratio::ZERO })
            }
            Loss::Steps { steps, period } => {
                self.dice.chance(steps::at(steps, *period, departure).0)
            }
        }
    }
}

impl Node for Losses {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        transit.is_lost |= self.next(now);
        Step::Leave { at: now }
    }
}

/// Where packets end that are lost, before a node that they must not reach.
pub(crate) struct EndOfLost;

impl Node for EndOfLost {
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        if transit.is_lost {
            return Step::Lose;
        }
        Step::Leave { at: now }
    }
}
