//! Queue disciplines as scenario files describe them.

use std::fmt::Display;
use std::str::FromStr;

use bentpipe_units::{Size, Span};

use crate::fields::{Entry, Fields, Problem};

/// A queue discipline other than drop-tail, as `aqm` of a queue names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aqm {
    /// `aqm = "head-drop"`: where the queue is full, the oldest packet is dropped.
    HeadDrop,
    /// `aqm = "step"`: packets that waited for longer than `mark_above` are marked.
    Step(StepMarking),
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
    /// What a flow may send in a turn; 1514 bytes if left out.
    pub quantum: Size,
}

const NAMES: [&str; 5] = ["codel", "fq", "fq-codel", "head-drop", "step"];
const MOST_FLOWS: u64 = 65_536;
const LARGEST_QUANTUM: u64 = 1 << 30;

impl Aqm {
    /// Reads the discipline that `name` says, with its parameters.
    pub(crate) fn read(name: &Entry, fields: &mut Fields) -> Result<Self, Problem> {
        let text = name.text()?;
        Ok(match text.as_str() {
            "head-drop" => Self::HeadDrop,
            "step" => {
                let mark_above = fields.required("mark_above", "\"5 ms\"")?.parse()?;
                Self::Step(StepMarking { mark_above })
            }
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

    /// What it is called in scenario files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::HeadDrop => "head-drop",
            Self::Step(_) => "step",
            Self::CoDel(_) => "codel",
            Self::FairQueue(config) if config.codel.is_some() => "fq-codel",
            Self::FairQueue(_) => "fq",
        }
    }

    /// Its keys and values in scenario files, without its name.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::HeadDrop => Vec::new(),
            Self::Step(config) => vec![("mark_above", config.mark_above.to_string())],
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

impl CoDelConfig {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        let target = value(fields, "target", Span::from_millis(5), |it| {
            *it > Span::ZERO
        })?;
        let interval = value(fields, "interval", Span::from_millis(100), |it| {
            *it > target
        })?;
        let ecn = match fields.take("ecn") {
            None => true,
            Some(entry) if entry.is_text("on") => true,
            Some(entry) if entry.is_text("off") => false,
            Some(entry) => return Err(entry.problem("write \"on\" or \"off\"")),
        };
        Ok(Self {
            target,
            interval,
            ecn,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("target", self.target.to_string()),
            ("interval", self.interval.to_string()),
            ("ecn", if self.ecn { "on" } else { "off" }.to_owned()),
        ]
    }
}

impl FairQueueing {
    fn read(codel: Option<CoDelConfig>, fields: &mut Fields) -> Result<Self, Problem> {
        let flows = value(fields, "flows", 1024, |it| (1..=MOST_FLOWS).contains(it))?;
        let quantum = value(fields, "quantum", Size::from_bytes(1514), |it| {
            (1..=LARGEST_QUANTUM).contains(&it.bytes())
        })?;
        Ok(Self {
            codel,
            flows,
            quantum,
        })
    }
}

/// A value that may be left out, and that must be in its range.
fn value<T: FromStr<Err: Display>>(
    fields: &mut Fields,
    key: &'static str,
    usual: T,
    is_valid: impl Fn(&T) -> bool,
) -> Result<T, Problem> {
    let Some(entry) = fields.take(key) else {
        return Ok(usual);
    };
    let value = entry.parse()?;
    let range = match key {
        "target" => "above 0 ms",
        "interval" => "above the target",
        "flows" => "from 1 to 65536",
        _ => "from 1 B to 1 GiB",
    };
    if is_valid(&value) {
        return Ok(value);
    }
    Err(entry.problem(&format!("not valid: {key} is {range}")))
}
