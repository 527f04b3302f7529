//! How long a packet travels.

use std::path::Path;

use bentpipe_units::{Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use toml::Value;

use crate::fields::{Entry, Problem};

/// The time that a packet travels, counted from its last bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// `"300 ms"`.
    Fixed(Span),
    /// `{ trace = "file.csv" }`.
    Trace(DelayTrace),
}

/// A delay that changes in steps.
///
/// The file has the header `time_s,delay_ms` and a row for each step, both columns decimal numbers
/// that are whole nanoseconds. The first time is 0 and they increase. A delay holds from its time on
/// until the next, the last one for ever; a packet gets the delay of the instant at which its
/// last bit is sent. A relative path is relative to the scenario file. In JSON the content travels
/// along as `steps`, and the file is not read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTrace {
    /// The file that the steps come from.
    pub trace: String,
    /// From when on which delay holds; not empty, from time 0, in order.
    pub steps: Vec<(Time, Span)>,
}

const HEADER: &str = "time_s,delay_ms";

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
            Self::Trace(trace) => trace
                .steps
                .iter()
                .map(|(_, delay)| *delay)
                .min()
                .unwrap_or(Span::ZERO),
        }
    }

    pub(crate) fn read(entry: Entry, folder: &Path) -> Result<Self, Problem> {
        if !entry.is_table() {
            return entry.parse().map(Self::Fixed);
        }
        let mut fields = entry.table()?;
        let file = fields.required("trace", "\"file.csv\"")?;
        let trace = file.text()?;
        let steps = match fields.take("steps") {
            Some(entry) => read_steps(&entry)?,
            None => read_file(&folder.join(&trace)).map_err(|wrong| file.problem(&wrong))?,
        };
        fields.finish()?;
        Ok(Self::Trace(DelayTrace { trace, steps }))
    }
}

fn read_file(path: &Path) -> Result<Vec<(Time, Span)>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
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
        check_order(&steps).map_err(|what| wrong(&what))?;
    }
    if steps.is_empty() {
        Err("no row after the header".to_owned())
    } else {
        Ok(steps)
    }
}

/// Whether the last step may follow those before it.
fn check_order(steps: &[(Time, Span)]) -> Result<(), String> {
    match steps {
        [(first, _)] if *first > Time::ZERO => Err("the first time must be 0".to_owned()),
        [.., (before, _), (last, _)] if before >= last => Err("times must increase".to_owned()),
        _ => Ok(()),
    }
}

fn read_steps(entry: &Entry) -> Result<Vec<(Time, Span)>, Problem> {
    let wrong =
        || entry.problem("write steps like [[\"0 s\", \"300 ms\"], [\"15 s\", \"280 ms\"]]");
    let mut steps = Vec::new();
    for row in entry.value().as_array().ok_or_else(wrong)? {
        let row: Option<Vec<_>> = row
            .as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(Value::as_str)
            .collect();
        let Some([time, delay]) = row.as_deref() else {
            return Err(wrong());
        };
        steps.push((
            time.parse().map_err(|_| wrong())?,
            delay.parse().map_err(|_| wrong())?,
        ));
        check_order(&steps).map_err(|what| entry.problem(&what))?;
    }
    if steps.is_empty() {
        Err(wrong())
    } else {
        Ok(steps)
    }
}

impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(span) => span.serialize(serializer),
            Self::Trace(trace) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("trace", &trace.trace)?;
                map.serialize_entry("steps", &trace.steps)?;
                map.end()
            }
        }
    }
}

/// The delays of one link, which keep the order of packets.
pub(crate) struct Delays {
    delay: Delay,
    /// The step that holds.
    step: usize,
    /// When the last packet arrives.
    last: Time,
}

impl Delays {
    pub fn new(delay: Delay) -> Self {
        Self {
            delay,
            step: 0,
            last: Time::ZERO,
        }
    }

    /// When a packet arrives whose last bit is sent at `departure`.
    pub fn arrival(&mut self, departure: Time) -> Time {
        let delay = match &self.delay {
            Delay::Fixed(span) => *span,
            Delay::Trace(trace) => {
                while trace
                    .steps
                    .get(self.step + 1)
                    .is_some_and(|(from, _)| *from <= departure)
                {
                    self.step += 1;
                }
                trace.steps[self.step].1
            }
        };
        self.last = self.last.max(departure + delay);
        self.last
    }
}
