//! How long a packet travels.

use std::fmt;
use std::path::Path;

use bentpipe_units::Span;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::delay_steps::DelaySteps;
use crate::fields::{Entry, Fields, Problem};
use crate::intervals::Intervals;

/// The time that a packet travels, counted from its last bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// `"300 ms"`.
    Fixed(Span),
    /// `{ steps = [["0 s", "30 ms"], ["15 s", "28 ms"]] }`, or from a file.
    Steps(DelaySteps),
    /// `{ base = "300 ms", jitter = "20 ms" }`.
    Jitter(Jitter),
}

/// A delay that is drawn from the trial's seed: any whole number of nanoseconds from `base` to
/// `base + jitter`, all alike.
///
/// It is drawn for each packet, or, with `every = "15 s"`, for each interval: a packet gets what
/// holds at the instant at which its last bit is sent. The order is kept, so a packet waits for the
/// one before: where packets are close together, most of them arrive as late as the latest of those
/// around them, and the delay that is seen is nearer to `base + jitter` than to the middle.
///
/// `within = [{ jitter = "3 ms", every = "20 ms" }]` adds further jitter, drawn for intervals of
/// its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The least.
    pub base: Span,
    /// The most that is added to it.
    pub jitter: Span,
    /// The intervals for which a drawn delay holds; None: it is drawn for each packet.
    pub intervals: Option<Intervals>,
    /// Further additions, each with its maximum and the intervals for which a value holds.
    pub within: Vec<(Span, Intervals)>,
}

const EXAMPLES: &str = "\"300 ms\", { base = \"300 ms\", jitter = \"20 ms\" }, { steps = [[\"0 \
                        s\", \"300 ms\"], \
     [\"15 s\", \"280 ms\"]] } or { trace = \"file.csv\" }";

impl Default for Delay {
    /// None.
    fn default() -> Self {
        Self::Fixed(Span::ZERO)
    }
}

impl Delay {
    /// The smallest delay there will be.
    #[must_use]
    pub fn min(&self) -> Span {
        match self {
            Self::Fixed(span) => *span,
            Self::Steps(steps) => steps.least(),
            Self::Jitter(jitter) => jitter.base,
        }
    }

    pub(crate) fn read(entry: Entry, folder: &Path) -> Result<Self, Problem> {
        if !entry.is_table() {
            return entry.parse().map(Self::Fixed);
        }
        let unknown = entry.problem(&format!("not a delay; write {EXAMPLES}"));
        let mut fields = entry.table()?;
        let delay = if fields.has("steps") || fields.has("trace") {
            Self::Steps(DelaySteps::read(&mut fields, folder)?)
        } else if fields.has("base") {
            Self::Jitter(Jitter::read(&mut fields)?)
        } else {
            return Err(unknown);
        };
        fields.finish()?;
        Ok(delay)
    }
}

impl Jitter {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            base: fields.required("base", "\"300 ms\"")?.parse()?,
            jitter: fields.required("jitter", "\"20 ms\"")?.parse()?,
            intervals: Intervals::read(fields, "15 s")?,
            within: Intervals::read_within(fields, |fields| {
                fields.required("jitter", "\"3 ms\"")?.parse()
            })?,
        })
    }

    /// The most that is added to the base.
    fn most(&self) -> Span {
        self.jitter + self.within.iter().map(|(jitter, _)| *jitter).sum()
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(span) => span.serialize(serializer),
            Self::Steps(steps) => steps.serialize(serializer),
            Self::Jitter(jitter) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("base", &jitter.base)?;
                map.serialize_entry("jitter", &jitter.jitter)?;
                for (name, value) in jitter.intervals.iter().flat_map(Intervals::fields) {
                    map.serialize_entry(name, &value)?;
                }
                if !jitter.within.is_empty() {
                    let rows = jitter.within.iter();
                    let rows = rows.map(|(most, every)| every.row("jitter", most.to_string()));
                    map.serialize_entry("within", &rows.collect::<Vec<_>>())?;
                }
                map.end()
            }
        }
    }
}

/// For people.
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Fixed(span) => span.fmt(f),
            Self::Steps(steps) => steps.fmt(f),
            Self::Jitter(jitter) => {
                write!(f, "{} to {}", jitter.base, jitter.base + jitter.most())?;
                match &jitter.intervals {
                    Some(intervals) => write!(f, ", drawn {intervals}")?,
                    None => f.write_str(", drawn for each packet")?,
                }
                let mut each = jitter.within.iter();
                each.try_for_each(|(_, every)| write!(f, " and {every}"))
            }
        }
    }
}
