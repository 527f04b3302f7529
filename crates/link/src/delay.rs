//! How long a packet travels.

use std::fmt;
use std::path::Path;

use bentpipe_units::{Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Fields, Problem};
use crate::intervals::{Drawn, Intervals};
use crate::node::{Node, Step, Transit};
use crate::packed_text::file_text;
use crate::random::Dice;
use crate::steps;

/// The time that a packet travels, counted from its last bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// `"300 ms"`.
    Fixed(Span),
    /// `{ steps = [["0 s", "30 ms"], ["15 s", "34 ms"]] }`, or `{ trace = "file.csv" }`.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// The least.
    pub base: Span,
    /// The most that is added to it.
    pub jitter: Span,
    /// The intervals for which a drawn delay holds; None: it is drawn for each packet.
    pub intervals: Option<Intervals>,
}

/// A delay that changes in steps. It holds from its time on until the next, the last one for ever,
/// or until the steps begin again: `period = "60 s"`. A packet gets the delay of the instant at
/// which its last bit is sent, and waits for the one before: where the delay falls, those sent just
/// after arrive together.
///
/// `{ trace = "file.csv" }` takes the steps from a file. It has the header `time_s,delay_ms` and a
/// row for each step, both columns decimal numbers that are whole nanoseconds. The first time is 0
/// and they increase. A relative path is relative to the scenario file. In JSON the content travels
/// along as `steps`, and the file is not read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelaySteps {
    /// The file that the steps come from.
    pub trace: Option<String>,
    /// The delays, each with the time from which on it holds; not empty, from time 0, in order.
    pub steps: Vec<(Time, Span)>,
    /// The time after which the steps begin again; None: never.
    pub period: Option<Span>,
}

const HEADER: &str = "time_s,delay_ms";
const EXAMPLES: &str = "\"300 ms\", { base = \"300 ms\", jitter = \"20 ms\" }, \
                        { steps = [[\"0 s\", \"300 ms\"], [\"15 s\", \"280 ms\"]] } \
                        or { trace = \"file.csv\" }";
const STEPS: [&str; 2] = ["300 ms", "280 ms"];

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
            Self::Steps(steps) => steps.delays().min().unwrap_or(Span::ZERO),
            Self::Jitter(jitter) => jitter.base,
        }
    }

    pub(crate) fn read(entry: Entry, folder: &Path) -> Result<Self, Problem> {
        if !entry.is_table() {
            return entry.parse().map(Self::Fixed);
        }
        let unknown = entry.problem(&format!("not a delay; write {EXAMPLES}"));
        let mut fields = entry.table()?;
        let delay = if fields.has("trace") || fields.has("steps") {
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

impl DelaySteps {
    fn read(fields: &mut Fields, folder: &Path) -> Result<Self, Problem> {
        let file = fields.take("trace");
        let trace = file.as_ref().map(Entry::text).transpose()?;
        let steps = match (fields.take("steps"), &file, &trace) {
            (None, Some(file), Some(name)) => {
                read_file(&folder.join(name)).map_err(|wrong| file.problem(&wrong))?
            }
            (Some(entry), ..) => steps::read(&entry, STEPS)?,
            (None, ..) => return Err(fields.missing("steps", EXAMPLES)),
        };
        let period = steps::read_period(fields, &steps)?;
        Ok(Self {
            trace,
            steps,
            period,
        })
    }

    fn delays(&self) -> impl Iterator<Item = Span> {
        self.steps.iter().map(|(_, delay)| *delay)
    }
}

impl Jitter {
    fn read(fields: &mut Fields) -> Result<Self, Problem> {
        Ok(Self {
            base: fields.required("base", "\"300 ms\"")?.parse()?,
            jitter: fields.required("jitter", "\"20 ms\"")?.parse()?,
            intervals: Intervals::read(fields, "15 s")?,
        })
    }
}

fn read_file(path: &Path) -> Result<Vec<(Time, Span)>, String> {
    let text =
        file_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, header)| header) != Some(HEADER) {
        return Err(format!("line 1: the header must be \"{HEADER}\""));
    }
    let mut steps = Vec::new();
    for (index, line) in lines {
        let wrong = |what: &str| format!("line {}: {line}: {what}", index + 1);
        let step = line.split_once(',').and_then(|(time, delay)| {
            Some((
                format!("{time}s").parse().ok()?,
                format!("{delay}ms").parse().ok()?,
            ))
        });
        let step = step.ok_or_else(|| {
            wrong("a row is a time in seconds and a delay in milliseconds, like 15,300")
        })?;
        steps.push(step);
        steps::check_order(&steps).map_err(|what| wrong(&what))?;
    }
    if steps.is_empty() {
        Err("no row after the header".to_owned())
    } else {
        Ok(steps)
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(span) => span.serialize(serializer),
            Self::Steps(steps) => {
                let mut map = serializer.serialize_map(None)?;
                if let Some(trace) = &steps.trace {
                    map.serialize_entry("trace", trace)?;
                }
                map.serialize_entry("steps", &steps.steps)?;
                if let Some(period) = steps.period {
                    map.serialize_entry("period", &period)?;
                }
                map.end()
            }
            Self::Jitter(jitter) => {
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("base", &jitter.base)?;
                map.serialize_entry("jitter", &jitter.jitter)?;
                for (name, value) in jitter.intervals.iter().flat_map(Intervals::fields) {
                    map.serialize_entry(name, &value)?;
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
            Self::Steps(steps) => {
                if let Some(file) = &steps.trace {
                    write!(f, "as in the trace {file}")?;
                } else {
                    let most = steps.delays().max().unwrap_or(Span::ZERO);
                    let count = steps.steps.len();
                    write!(f, "{} to {most} in {count} steps", self.min())?;
                }
                match steps.period {
                    Some(period) => write!(f, ", again every {period}"),
                    None => Ok(()),
                }
            }
            Self::Jitter(Jitter {
                base,
                jitter,
                intervals,
            }) => {
                write!(f, "{base} to {}", *base + *jitter)?;
                match intervals {
                    Some(intervals) => write!(f, ", drawn every {}", intervals.every),
                    None => f.write_str(", drawn for each packet"),
                }
            }
        }
    }
}

/// The delays of one link, which keep the order of packets.
pub(crate) struct Delays {
    delay: DelayOverTime,
    /// The smallest of them.
    min: Span,
    /// When the last packet arrives.
    last: Time,
}

enum DelayOverTime {
    Fixed(Span),
    Steps(DelaySteps),
    /// The base, and what is added for each packet, at most.
    PerPacket(Span, u64, Box<Dice>),
    /// The base, and what is added for an interval.
    PerInterval(Span, Box<Drawn>),
}

impl DelayOverTime {
    fn new(delay: Delay, dice: Dice) -> Self {
        match delay {
            Delay::Fixed(span) => Self::Fixed(span),
            Delay::Steps(steps) => Self::Steps(steps),
            Delay::Jitter(Jitter {
                base,
                jitter,
                intervals,
            }) => match intervals {
                None => Self::PerPacket(base, jitter.as_nanos(), Box::new(dice)),
                Some(intervals) => {
                    let drawn = Drawn::new(intervals, jitter.as_nanos(), dice);
                    Self::PerInterval(base, Box::new(drawn))
                }
            },
        }
    }

    /// The delay of the next packet, whose last bit is sent at `departure`.
    fn next(&mut self, departure: Time) -> Span {
        match self {
            Self::Fixed(span) => *span,
            Self::Steps(DelaySteps { steps, period, .. }) => steps::at(steps, *period, departure).0,
            Self::PerPacket(base, most, dice) => *base + Span::from_nanos(dice.up_to(*most)),
            Self::PerInterval(base, drawn) => *base + Span::from_nanos(drawn.at(departure).0),
        }
    }
}

impl Delays {
    pub fn new(delay: Delay, dice: Dice) -> Self {
        Self {
            min: delay.min(),
            delay: DelayOverTime::new(delay, dice),
            last: Time::ZERO,
        }
    }
}

impl Node for Delays {
    /// A packet that is lost has its delay, too, so that those of the others do not depend on which
    /// are lost, but nobody waits for it.
    fn enqueue(&mut self, now: Time, transit: &mut Transit) -> Step {
        let at = self.last.max(now + self.delay.next(now));
        if transit.is_lost {
            return Step::Lose;
        }
        self.last = at;
        Step::Leave { at }
    }

    fn min_delay(&self) -> Span {
        self.min
    }
}
