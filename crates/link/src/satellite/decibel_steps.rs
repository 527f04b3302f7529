//! Decibels over time: Es/N0, attenuation.

use std::path::Path;

use bentpipe_units::{Decibel, Span, Time};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::fields::{Entry, Problem};
use crate::packed_text::file_text;
use crate::steps;

/// Decibels over time.
///
/// Written `"12 dB"`, `{ steps = [["0 s", "12 dB"], ["30 s", "4 dB"]] }` or `{ trace = "rain.csv"
/// }`. The file has the header `time_s,value_db` and a row for each step. A value holds from its
/// time on until the next; the last one for ever, or, with `period = "60 s"`, until the steps begin
/// again. A relative path is relative to the scenario file. In JSON the content travels along as
/// `steps`, and the file is not read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecibelSteps {
    /// The file that the steps come from.
    pub trace: Option<String>,
    /// The values, each with the time from which on it holds; not empty, from time 0, in order.
    pub steps: Vec<(Time, Decibel)>,
    /// The time after which the steps begin again; None: never.
    pub period: Option<Span>,
}

const HEADER: &str = "time_s,value_db";
const EXAMPLES: &str = "\"12 dB\", { steps = [[\"0 s\", \"12 dB\"], [\"30 s\", \"4 dB\"]] } \
                        or { trace = \"rain.csv\" }";

impl DecibelSteps {
    /// A value that never changes.
    #[must_use]
    pub fn fixed(value: Decibel) -> Self {
        Self {
            trace: None,
            steps: vec![(Time::ZERO, value)],
            period: None,
        }
    }

    pub(crate) fn read(entry: Entry, folder: &Path) -> Result<Self, Problem> {
        if !entry.is_table() {
            return entry.parse().map(Self::fixed);
        }
        let unknown = entry.problem(&format!("not decibels over time; write {EXAMPLES}"));
        let mut fields = entry.table()?;
        let trace = fields.take("trace");
        let given = fields.take("steps");
        let steps = match (&trace, &given) {
            (_, Some(given)) => steps::read(given, ["12 dB", "4 dB"])?,
            (Some(file), None) => {
                let path = folder.join(file.text()?);
                read_file(&path).map_err(|wrong| file.problem(&wrong))?
            }
            (None, None) => return Err(unknown),
        };
        let period = steps::read_period(&mut fields, &steps)?;
        let trace = trace.map(|it| it.text()).transpose()?;
        fields.finish()?;
        Ok(Self {
            trace,
            steps,
            period,
        })
    }

    /// The value that holds at a time, and until when.
    pub(crate) fn at(&self, at: Time) -> (Decibel, Time) {
        steps::at(&self.steps, self.period, at)
    }

    /// A time from which on no pair of values of both is new.
    pub(crate) fn repeats_with(&self, other: &Self) -> Time {
        let length = |it: &Self| match it.period {
            Some(period) => period.as_nanos(),
            None => it.steps[it.steps.len() - 1].0.as_nanos() + 1,
        };
        let (own, others) = (length(self), length(other));
        let end = match (self.period, other.period) {
            // Two periods come together again after their least common multiple.
            (Some(_), Some(_)) => (own / gcd(own, others)).saturating_mul(others),
            _ => own.saturating_add(others),
        };
        Time::from_nanos(end)
    }

    /// The highest value, and the lowest.
    pub(crate) fn extremes(&self) -> (Decibel, Decibel) {
        let values = || self.steps.iter().map(|(_, value)| *value);
        let highest = values().max().expect("there is a step");
        (highest, values().min().expect("there is a step"))
    }
}

fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 {
        one
    } else {
        gcd(other, one % other)
    }
}

fn read_file(path: &Path) -> Result<Vec<(Time, Decibel)>, String> {
    let text =
        file_text(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut lines = text.lines().enumerate();
    if lines.next().is_none_or(|(_, line)| line.trim() != HEADER) {
        return Err(format!("the first line must be {HEADER}"));
    }
    let mut steps = Vec::new();
    for (index, line) in lines {
        let wrong = |what: &str| format!("line {}: {line}: {what}", index + 1);
        let step = line.split_once(',').and_then(|(time, value)| {
            let time = format!("{}s", time.trim()).parse().ok()?;
            let value = format!("{}dB", value.trim()).parse().ok()?;
            Some((time, value))
        });
        let example = "a line is a time in seconds and decibels, like 30,4.25";
        steps.push(step.ok_or_else(|| wrong(example))?);
        steps::check_order(&steps).map_err(|what| wrong(&what))?;
    }
    if steps.is_empty() {
        return Err("has no row".to_owned());
    }
    Ok(steps)
}

impl Serialize for DecibelSteps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let (None, [(_, value)]) = (&self.trace, &self.steps[..]) {
            return value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        if let Some(trace) = &self.trace {
            map.serialize_entry("trace", trace)?;
        }
        map.serialize_entry("steps", &self.steps)?;
        if let Some(period) = &self.period {
            map.serialize_entry("period", period)?;
        }
        map.end()
    }
}
