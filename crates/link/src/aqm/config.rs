//! Queue disciplines as scenario files describe them.

use std::mem::discriminant;

use bentpipe_units::{Ratio, Size, Span};

use super::keys::{is_on, on_or_off, value, within};
use super::{DualPi2Config, Pi2Config};
use crate::fields::{Entry, Fields, Problem};
use crate::queue_size::QueueSize;

/// A queue discipline other than drop-tail, as `aqm` of a queue names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqm {
    /// `aqm = "head-drop"`: where the queue is full, the oldest packet is dropped.
    HeadDrop,
    /// `aqm = "step"`: packets that waited for longer than `mark_above` are marked.
    Step(StepMarking),
    /// `aqm = "red"`: Random Early Detection (Floyd and Jacobson 1993).
    Red(RedConfig),
    /// `aqm = "pie"`: Proportional Integral controller Enhanced (RFC 8033).
    Pie(PieConfig),
    /// `aqm = "pi2"`: Proportional Integral Improved with a Square (RFC 9332, appendix A).
    Pi2(Pi2Config),
    /// `aqm = "dualpi2"`: two queues that are coupled, for L4S and others (RFC 9332, appendix A).
    DualPi2(DualPi2Config),
    /// `aqm = "codel"`: Controlled Delay over all flows (RFC 8289).
    CoDel(CoDelConfig),
    /// `aqm = "fq-codel"`: a queue for each flow, under CoDel (RFC 8290). `aqm = "fq"`: without.
    FairQueue(FairQueueing),
}

/// Marking above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMarking {
    /// The sojourn time above which packets are marked.
    pub mark_above: Span,
}

/// The parameters of RED (Floyd and Jacobson 1993, section IV).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedConfig {
    /// The mean length from which packets are dropped.
    pub min: QueueSize,
    /// The mean length at which the probability is `max_probability`.
    pub max: QueueSize,
    /// The probability of a drop at `max`; 10 % if left out.
    pub max_probability: Ratio,
    /// The mean takes in a `weight`th of each new length; 512 if left out.
    pub weight: u64,
    /// Whether packets are marked in place of dropped below `max`; on if left out.
    pub ecn: bool,
}

/// The parameters of PIE (RFC 8033, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieConfig {
    /// The delay to keep, `QDELAY_REF`; 15 ms if left out.
    pub target: Span,
    /// How often the probability is updated, `T_UPDATE`; 15 ms if left out.
    pub update: Span,
    /// For how long nothing is dropped after a calm, `MAX_BURST`; 150 ms if left out.
    pub max_burst: Span,
    /// Whether packets are marked in place of dropped while the probability is at most 10 %; on if
    /// left out.
    pub ecn: bool,
}

/// The parameters of CoDel (RFC 8289, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// The sojourn time that is acceptable; 5 ms if left out.
    pub target: Span,
    /// How long it may be above the target; 100 ms if left out, in the order of the longest round
    /// trip.
    pub interval: Span,
    /// Whether packets of senders that can handle it are marked in place of dropped; on if left
    /// out.
    pub ecn: bool,
}

/// The parameters of flow queueing (RFC 8290, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairQueueing {
    /// CoDel over the queue of each flow; None: none.
    pub codel: Option<CoDelConfig>,
    /// The number of queues that flows are hashed to, 1 to 65536; 1024 if left out.
    pub flows: u64,
    /// The bytes that a flow may send in a turn; 1514 bytes if left out.
    pub quantum: Size,
}

const NAMES: [&str; 9] = [
    "codel",
    "dualpi2",
    "fq",
    "fq-codel",
    "head-drop",
    "pi2",
    "pie",
    "red",
    "step",
];
const ABOVE_0: &str = "above 0 ms";
const MOST_FLOWS: u64 = 65_536;
const MOST_WEIGHT: u64 = 65_536;
const LARGEST_QUANTUM: u64 = 1 << 30;

impl Aqm {
    /// Reads the discipline that `name` says, with its parameters.
    pub(crate) fn read(
        name: &Entry,
        fields: &mut Fields,
        size: QueueSize,
    ) -> Result<Self, Problem> {
        let text = name.text()?;
        Ok(match text.as_str() {
            "head-drop" => Self::HeadDrop,
            "step" => {
                let mark_above = fields.required("mark_above", "\"5 ms\"")?.parse()?;
                Self::Step(StepMarking { mark_above })
            }
            "red" => Self::Red(RedConfig::read(fields, size)?),
            "pie" => Self::Pie(PieConfig::read(fields)?),
            "pi2" => Self::Pi2(Pi2Config::read(fields)?),
            "dualpi2" => Self::DualPi2(DualPi2Config::read(fields)?),
            "codel" => Self::CoDel(CoDelConfig::read(fields)?),
            "fq" => Self::FairQueue(FairQueueing::read(None, fields)?),
            "fq-codel" => {
                let codel = CoDelConfig::read(fields)?;
                Self::FairQueue(FairQueueing::read(Some(codel), fields)?)
            }
            _ => {
                let known = NAMES.map(|name| format!("\"{name}\"")).join(", ");
                return Err(
                    name.problem(&format!("unknown queue discipline; write one of {known}"))
                );
            }
        })
    }

    /// Its name in scenario files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::HeadDrop => "head-drop",
            Self::Step(_) => "step",
            Self::Red(_) => "red",
            Self::Pie(_) => "pie",
            Self::Pi2(_) => "pi2",
            Self::DualPi2(_) => "dualpi2",
            Self::CoDel(_) => "codel",
            Self::FairQueue(config) if config.codel.is_some() => "fq-codel",
            Self::FairQueue(_) => "fq",
        }
    }

    /// Whether it marks packets of senders that can handle it.
    #[must_use]
    pub fn marks(&self) -> bool {
        match self {
            Self::HeadDrop => false,
            Self::Step(_) | Self::DualPi2(_) => true,
            Self::Red(config) => config.ecn,
            Self::Pie(config) => config.ecn,
            Self::Pi2(config) => config.ecn,
            Self::CoDel(config) => config.ecn,
            Self::FairQueue(config) => config.codel.is_some_and(|it| it.ecn),
        }
    }

    /// Its keys and values in scenario files, without its name.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::HeadDrop => Vec::new(),
            Self::Step(config) => vec![("mark_above", config.mark_above.to_string())],
            Self::Red(config) => config.parameters(),
            Self::Pie(config) => config.parameters(),
            Self::Pi2(config) => config.parameters(),
            Self::DualPi2(config) => config.parameters(),
            Self::CoDel(config) => config.parameters(),
            Self::FairQueue(config) => {
                let codel = config.codel.iter().flat_map(CoDelConfig::parameters);
                let own = [
                    ("flows", config.flows.to_string()),
                    ("quantum", config.quantum.to_string()),
                ];
                codel.chain(own).collect()
            }
        }
    }
}

impl RedConfig {
    fn read(fields: &mut Fields, size: QueueSize) -> Result<Self, Problem> {
        let mut threshold = |name| {
            let entry = fields.required(name, &format!("\"{size}\""))?;
            let found: QueueSize = entry.parse()?;
            if discriminant(&found) == discriminant(&size) {
                return Ok((entry, found));
            }
            Err(entry.problem(&format!("write it in the unit of the queue's size, {size}")))
        };
        let (_, min) = threshold("min")?;
        let (entry, max) = threshold("max")?;
        if min >= max {
            return Err(entry.problem("not valid: max is above min"));
        }
        let tenth = Ratio::from_ppb(100_000_000);
        Ok(Self {
            min,
            max,
            max_probability: value(
                fields,
                "max_probability",
                tenth,
                |it| *it > Ratio::ZERO,
                "above 0 %",
            )?,
            weight: within(fields, "weight", 512, [1, MOST_WEIGHT])?,
            ecn: is_on(fields, "ecn")?,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("min", self.min.to_string()),
            ("max", self.max.to_string()),
            ("max_probability", self.max_probability.to_string()),
            ("weight", self.weight.to_string()),
            ("ecn", on_or_off(self.ecn)),
        ]
    }
}

impl PieConfig {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let is_some = |it: &Span| *it > Span::ZERO;
        let usual = Span::from_millis(15);
        Ok(Self {
            target: value(fields, "target", usual, is_some, ABOVE_0)?,
            update: value(fields, "update", usual, is_some, ABOVE_0)?,
            max_burst: value(fields, "max_burst", Span::from_millis(150), |_| true, "")?,
            ecn: is_on(fields, "ecn")?,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("target", self.target.to_string()),
            ("update", self.update.to_string()),
            ("max_burst", self.max_burst.to_string()),
            ("ecn", on_or_off(self.ecn)),
        ]
    }
}

impl CoDelConfig {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let is_some = |it: &Span| *it > Span::ZERO;
        let target = value(fields, "target", Span::from_millis(5), is_some, ABOVE_0)?;
        let is_longer = |it: &Span| *it > target;
        let usual = Span::from_millis(100);
        let interval = value(fields, "interval", usual, is_longer, "above the target")?;
        Ok(Self {
            target,
            interval,
            ecn: is_on(fields, "ecn")?,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("target", self.target.to_string()),
            ("interval", self.interval.to_string()),
            ("ecn", on_or_off(self.ecn)),
        ]
    }
}

impl FairQueueing {
    fn read(codel: Option<CoDelConfig>, fields: &mut Fields) -> Result<Self, Problem> {
        let flows = within(fields, "flows", 1024, [1, MOST_FLOWS])?;
        let fits = |it: &Size| (1..=LARGEST_QUANTUM).contains(&it.bytes());
        let usual = Size::from_bytes(1514);
        let quantum = value(fields, "quantum", usual, fits, "from 1 B to 1 GiB")?;
        Ok(Self {
            codel,
            flows,
            quantum,
        })
    }
}
